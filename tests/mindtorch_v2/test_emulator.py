"""The emulator's devices, errors and memory, at the level of CANN's C functions."""

from __future__ import annotations

import ctypes
import signal
import threading

import numpy as np
from _emulator import D2D, D2H, H2D, H2H, run
from _emulator_runtime import CONTEXT, INVALID, MEMORY, PARAM

# start, devices, errors


def test_initialised_twice_and_finalised_twice(lib):
    assert lib.aclInit(None) == 100002
    address = lib.malloc(100)
    lib.ok("aclFinalize")
    assert lib.aclFinalize() == 100037
    assert lib.aclrtFree(address) == 100001
    lib.ok("aclInit", None)
    assert lib.aclrtMalloc(ctypes.byref(ctypes.c_void_p()), 8, 0) == CONTEXT  # the thread's device is forgotten
    lib.ok("aclrtSetDevice", 0)
    assert lib.emLive(b"device_blocks") == 0


def test_a_thread_has_no_device_until_it_sets_one(lib):
    seen = []

    def other():
        cell = ctypes.c_int32()
        seen.append(lib.aclrtGetDevice(ctypes.byref(cell)))
        lib.ok("aclrtSetDevice", 1)
        lib.ok("aclrtGetDevice", ctypes.byref(cell))
        seen.append(cell.value)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    cell = ctypes.c_int32()
    lib.ok("aclrtGetDevice", ctypes.byref(cell))
    assert (seen, cell.value) == ([CONTEXT, 1], 0)
    assert lib.aclrtSetDevice(2) == 107001


def test_the_message_is_given_once(lib):
    assert lib.aclrtSetDevice(99) == 107001
    assert "no device 99" in lib.message()
    assert lib.message() == ""
    assert lib.aclrtPeekAtLastError(0) == 107001
    assert (lib.aclrtGetLastError(0), lib.aclrtGetLastError(0)) == (107001, 0)


def test_settings(library):
    code = """
    count = ctypes.c_uint32()
    lib.ok("aclrtGetDeviceCount", ctypes.byref(count))
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    lib.ok("aclrtGetMemInfo", 0, ctypes.byref(free), ctypes.byref(total))
    lacks = [lib.emMissing(name) for name in (b"aclrtStreamGetPriority", b"aclnnSquareGetWorkspaceSize", b"aclnnSquare", b"aclrtMalloc", b"aclnnAddGetWorkspaceSize")]
    tensor = lib.tensor(lib.malloc(64), (4,), "bfloat16")
    print(count.value, total.value, lib.aclrtGetSocName(), lacks, lib.phase1("emCopy", tensor, 0, tensor)[0], lib.message())
    """
    environment = {"DEVICES": "3", "MEMORY": "4096", "SOC": "Ascend310P3", "CANN": "8.1"}
    done = run(library, code, **{f"MINDTORCH_NPU_EMULATOR_{name}": value for name, value in environment.items()})
    old = b"CANN 8.1.RC1"
    start = f"3 4096 {b'Ascend310P3'} {[old, old, old, None, None]} {INVALID} "
    assert done.stdout.startswith(start) and "dtype" in done.stdout, done


# memory


def test_the_host_cannot_read_device_memory(library):
    done = run(library, "print('here', flush=True); ctypes.string_at(lib.malloc(64), 1); print('not here')")
    assert done.stdout == "here\n"
    assert done.returncode == -signal.SIGSEGV or "SEGV" in done.stderr  # AddressSanitizer reports it


def test_memory_is_aligned_poisoned_and_counted(lib):
    address = lib.malloc(1000)
    assert address % 32 == 0
    assert (lib.download(address, (1000,), np.uint8) == 0xFF).all()
    assert np.isnan(lib.download(address, (10,), np.float16)).all()
    assert (lib.emLive(b"device_blocks"), lib.emLive(b"device_bytes")) == (1, 1024)
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    lib.ok("aclrtGetMemInfo", 1, ctypes.byref(free), ctypes.byref(total))
    assert (free.value, total.value) == ((64 << 20) - 1024, 64 << 20)
    lib.ok("aclrtMemset", address, 1000, 1, 1000)
    lib.ok("aclrtFree", address)
    again = lib.malloc(1000)
    assert again == address and (lib.download(again, (1000,), np.uint8) == 0xFF).all()
    lib.ok("aclrtFree", again)


def test_freeing_what_is_no_block(lib):
    address = lib.malloc(64)
    assert lib.aclrtFree(address + 32) == PARAM
    assert lib.aclrtFree(None) == PARAM
    lib.ok("aclrtFree", address)
    assert lib.aclrtFree(address) == PARAM and "no live block" in lib.message()
    assert lib.aclrtMalloc(ctypes.byref(ctypes.c_void_p()), 0, 0) == PARAM


def test_out_of_memory_and_recovery(lib):
    cell = ctypes.c_void_p()
    block = lib.malloc(40 << 20)
    assert lib.aclrtMalloc(ctypes.byref(cell), 40 << 20, 0) == MEMORY and cell.value is None
    assert "out of memory" in lib.message()
    assert lib.aclrtMalloc(ctypes.byref(cell), (1 << 64) - 1, 0) == MEMORY
    lib.ok("aclrtFree", block)
    small = [lib.malloc(1 << 20) for _ in range(64)]
    assert lib.aclrtMalloc(ctypes.byref(cell), 1, 0) == MEMORY
    for address in small[::2]:
        lib.ok("aclrtFree", address)
    large = lib.malloc(32 << 20)  # no hole is so large, but the sum of blocks counts
    for address in (large, *small[1::2]):
        lib.ok("aclrtFree", address)


def test_devices_have_memory_of_their_own(lib):
    first = lib.upload(np.arange(8.0))
    lib.ok("aclrtSetDevice", 1)
    second = lib.upload(np.zeros(8))
    assert lib.aclrtMemcpy(second, 64, first, 64, D2D) == 207006  # no access to the peer yet
    lib.ok("aclrtDeviceEnablePeerAccess", 0, 0)
    lib.ok("aclrtMemcpy", second, 64, first, 64, D2D)
    assert (lib.download(second, (8,), np.float64) == np.arange(8)).all()
    assert lib.emLive(b"device_blocks") == 2
    for address in (first, second):
        lib.ok("aclrtFree", address)


def test_copies_check_their_arguments(lib):
    host = np.zeros(64, np.uint8)
    device = lib.malloc(64)
    at = host.ctypes.data
    assert lib.aclrtMemcpy(device, 32, at, 64, H2D) == PARAM  # too small
    assert lib.aclrtMemcpy(device, 100, at, 65, H2D) == PARAM  # beyond the block
    assert lib.aclrtMemcpy(at, 64, device, 64, H2D) == PARAM
    assert lib.aclrtMemcpy(at, 64, device, 64, H2H) == PARAM
    assert lib.aclrtMemcpy(device, 64, at, 64, D2D) == PARAM
    assert lib.aclrtMemcpy(device, 64, None, 64, H2D) == PARAM
    assert lib.aclrtMemcpy(device, 64, at, 64, 9) == PARAM
    lib.ok("aclrtMemcpy", device, 64, at, 64, 4)  # the kind by the addresses
    lib.ok("aclrtFree", device)
    assert lib.aclrtMemcpy(at, 64, device, 64, D2H) == PARAM
    assert lib.aclrtMemset(device, 64, 0, 64) == PARAM


def test_rows_are_copied(lib):
    source = np.arange(24, dtype=np.uint8).reshape(4, 6)
    device = lib.malloc(4 * 8)
    lib.ok("aclrtMemset", device, 32, 0, 32)
    lib.ok("aclrtMemcpy2d", device, 8, source.ctypes.data, 6, 5, 4, H2D)
    result = lib.download(device, (4, 8), np.uint8)
    assert (result[:, :5] == source[:, :5]).all() and not result[:, 5:].any()
    lib.ok("aclrtFree", device)


def test_pinned_memory(lib):
    host = lib.make("aclrtMallocHost", 100)
    assert ctypes.string_at(host, 100) == b"\xff" * 100
    assert lib.emLive(b"host_blocks") == 1
    assert lib.aclrtFreeHost(host + 8) == PARAM
    lib.ok("aclrtFreeHost", host)
    assert lib.aclrtFreeHost(host) == PARAM
    assert lib.emLive(b"host_blocks") == 0
