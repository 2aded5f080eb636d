"""The emulator's runtime at the level of CANN's C functions: memory, copies, streams, events, descriptors, executors, faults."""

from __future__ import annotations

import ctypes
import shutil
import signal
import threading
import time

import ml_dtypes
import numpy as np
import pytest
from _emulator import D2D, D2H, DTYPES, H2D, H2H, Emulator, built, run

PARAM, CONTEXT, STREAM_CONTEXT, HANDLE, UNSUPPORTED, MEMORY = 107000, 107002, 107003, 107017, 207000, 207001
NULLPTR, INVALID, RUNTIME, INNER, INNER_NULLPTR = 161001, 161002, 361001, 561000, 561103


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """A copy of the library: state of its own, apart from an emulator that the process uses as its NPU."""
    path, reason = built()
    if path is None:
        pytest.skip(reason)
    return shutil.copy(path, tmp_path_factory.mktemp("emulator") / path.name)


@pytest.fixture
def lib(library, monkeypatch):
    monkeypatch.setenv("MINDTORCH_NPU_EMULATOR_MEMORY", str(64 << 20))
    for name in ("DEVICES", "SOC", "CANN", "TRACE"):
        monkeypatch.delenv(f"MINDTORCH_NPU_EMULATOR_{name}", raising=False)
    emulator = Emulator(library)
    emulator.ok("aclInit", None)
    emulator.ok("aclrtSetDevice", 0)
    emulator.message()
    yield emulator
    emulator.emClearFaults()
    emulator.ok("aclFinalize")


def ints(*values):
    return (ctypes.c_int64 * len(values))(*values)


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


# streams and events


class Slow:
    """A test operator that takes `seconds`, launched on a stream."""

    def __init__(self, lib, stream, seconds):
        self.lib = lib
        self.blocks = lib.upload(np.arange(4, dtype=np.float32)), lib.upload(np.zeros(4, np.float32))
        self.tensors = [lib.tensor(block, (4,)) for block in self.blocks]
        lib.emFault(b"slow:emCopy", 1, int(seconds * 1e6))
        lib.copy(*self.tensors, stream)
        self.result = self.blocks[1]

    def release(self):
        for tensor in self.tensors:
            self.lib.ok("aclDestroyTensor", tensor)
        for block in self.blocks:
            self.lib.ok("aclrtFree", block)


def test_streams_run_beside_each_other(lib):
    one, two = lib.stream(), lib.stream()
    start = time.monotonic()
    slow = Slow(lib, one, 0.4)
    quick = Slow(lib, two, 0)
    lib.ok("aclrtSynchronizeStream", two)
    assert time.monotonic() - start < 0.3
    assert (lib.query("aclrtStreamQuery", one), lib.query("aclrtStreamQuery", two)) == (1, 0)
    assert lib.aclrtSynchronizeStreamWithTimeout(one, 10) == 507046
    assert lib.emLive(b"threads") == 2
    lib.ok("aclrtSynchronizeDevice")
    assert time.monotonic() - start >= 0.4
    assert (lib.download(slow.result, (4,), np.float32) == np.arange(4)).all()
    for made in (slow, quick):
        made.release()
    for stream in (one, two):
        lib.ok("aclrtDestroyStream", stream)
    assert (lib.emLive(b"threads"), lib.emLive(b"streams")) == (0, 0)


def test_an_event_orders_two_streams(lib):
    one, two, event = lib.stream(), lib.stream(), lib.event()
    slow = Slow(lib, one, 0.2)
    lib.ok("aclrtRecordEvent", event, one)
    after = Slow(lib, one, 0.2)  # the event does not wait for what comes behind it
    copied = lib.malloc(16)
    lib.ok("aclrtStreamWaitEvent", two, event)
    lib.ok("aclrtMemcpyAsync", copied, 16, slow.result, 16, D2D, two)
    assert lib.query("aclrtQueryEventStatus", event) == 0
    lib.ok("aclrtSynchronizeStream", two)
    assert lib.query("aclrtQueryEventStatus", event) == 1
    assert lib.query("aclrtStreamQuery", one) == 1
    assert (lib.download(copied, (4,), np.float32) == np.arange(4)).all()
    lib.ok("aclrtDestroyEvent", event)
    lib.ok("aclrtSynchronizeStream", one)
    for made in (slow, after):
        made.release()
    lib.ok("aclrtFree", copied)
    for stream in (one, two):
        lib.ok("aclrtDestroyStream", stream)


def test_events(lib):
    stream = lib.stream()
    event, timing = lib.event(), [lib.event(11), lib.event(11)]
    assert lib.query("aclrtQueryEventStatus", event) == 1  # never recorded
    lib.ok("aclrtSynchronizeEvent", event)
    lib.ok("aclrtStreamWaitEvent", stream, event)
    ms, plain, cell = ctypes.c_float(), lib.event(2), ctypes.c_int()
    assert lib.aclrtEventElapsedTime(ctypes.byref(ms), *timing) == 107006
    lib.ok("aclrtRecordEvent", timing[0], stream)
    slow = Slow(lib, stream, 0.1)
    lib.ok("aclrtRecordEvent", timing[1], stream)
    assert lib.aclrtEventElapsedTime(ctypes.byref(ms), *timing) == 507006
    assert lib.aclrtSynchronizeEventWithTimeout(timing[1], 5) == 507047
    lib.ok("aclrtSynchronizeEvent", timing[1])
    lib.ok("aclrtEventElapsedTime", ctypes.byref(ms), *timing)
    assert 100 <= ms.value < 1000
    assert lib.aclrtEventElapsedTime(ctypes.byref(ms), *timing[::-1]) == 107007
    lib.ok("aclrtRecordEvent", plain, stream)
    assert lib.aclrtStreamWaitEvent(stream, plain) == PARAM and "ACL_EVENT_SYNC" in lib.message()
    assert lib.aclrtEventElapsedTime(ctypes.byref(ms), plain, timing[1]) == 107006
    for name in ("aclrtQueryEvent", "aclrtQueryEventWaitStatus"):
        assert getattr(lib, name)(event, ctypes.byref(cell)) == UNSUPPORTED
    assert lib.aclrtResetEvent(event, stream) == UNSUPPORTED
    old = lib.make("aclrtCreateEvent")
    lib.ok("aclrtRecordEvent", old, stream)
    lib.ok("aclrtSynchronizeStream", stream)
    assert lib.query("aclrtQueryEvent", old) == 0  # the old enum: 0 is complete
    lib.ok("aclrtResetEvent", old, stream)
    for handle in (event, plain, old, *timing):
        lib.ok("aclrtDestroyEvent", handle)
    assert lib.aclrtDestroyEvent(old) == HANDLE
    slow.release()
    lib.ok("aclrtDestroyStream", stream)


def test_a_stream_belongs_to_a_device(lib):
    stream = lib.stream()
    lib.ok("aclrtSetDevice", 1)
    assert lib.aclrtSynchronizeStream(stream) == STREAM_CONTEXT
    assert lib.aclrtSynchronizeStream(stream + 8) == HANDLE
    lib.ok("aclrtDestroyStream", stream)
    assert lib.aclrtDestroyStream(stream) == HANDLE
    assert lib.aclrtCreateStreamWithConfig(ctypes.byref(ctypes.c_void_p()), 8, 0) == PARAM


def test_an_aborted_stream_drops_its_work(lib):
    stream, event = lib.stream(), lib.event()
    slow = Slow(lib, stream, 0.1)
    target = lib.upload(np.zeros(4, np.uint8))
    lib.ok("aclrtMemsetAsync", target, 4, 1, 4, stream)
    lib.ok("aclrtRecordEvent", event, stream)
    lib.ok("aclrtStreamAbort", stream)
    lib.ok("aclrtSynchronizeEvent", event)
    assert not lib.download(target, (4,), np.uint8).any()
    lib.ok("aclrtMemsetAsync", target, 4, 2, 4, stream)
    lib.ok("aclrtDestroyStream", stream)  # waits
    assert (lib.download(target, (4,), np.uint8) == 2).all()
    lib.ok("aclrtDestroyEvent", event)
    lib.ok("aclrtFree", target)
    slow.release()


def test_copies_on_a_stream_wait_for_pageable_memory_only(lib):
    stream = lib.stream()
    pinned, device = lib.make("aclrtMallocHost", 64), lib.malloc(64)
    pageable = np.full(64, 3, np.uint8)
    ctypes.memset(pinned, 5, 64)
    slow = Slow(lib, stream, 0.2)
    start = time.monotonic()
    lib.ok("aclrtMemcpyAsync", device, 64, pinned, 64, H2D, stream)
    assert time.monotonic() - start < 0.1 and lib.query("aclrtStreamQuery", stream) == 1
    lib.ok("aclrtMemcpyAsync", device, 32, pageable.ctypes.data, 32, H2D, stream)
    assert time.monotonic() - start >= 0.15
    assert lib.download(device, (64,), np.uint8).tolist() == [3] * 32 + [5] * 32
    assert lib.aclrtMemcpyAsync(pinned, 64, pageable.ctypes.data, 64, H2H, stream) == UNSUPPORTED
    lib.ok("aclrtFreeHost", pinned)
    lib.ok("aclrtFree", device)
    slow.release()
    lib.ok("aclrtDestroyStream", stream)


def test_functions_of_the_host_run_in_order(lib):
    stream, seen = lib.stream(), []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(seen.append)
    slow = Slow(lib, stream, 0.05)
    address = ctypes.cast(callback, ctypes.c_void_p)
    lib.ok("aclrtLaunchHostFunc", stream, address, 7)
    lib.ok("aclrtSynchronizeStream", stream)
    assert seen == [7]
    assert lib.aclrtLaunchCallback(address, 8, 1, stream) == 107015
    lib.ok("aclrtSubscribeReport", threading.get_ident(), stream)
    lib.ok("aclrtLaunchCallback", address, 9, 1, stream)
    assert lib.aclrtSynchronizeStreamWithTimeout(stream, 20) == 507046  # it waits for the callback
    lib.ok("aclrtProcessReport", 1000)
    lib.ok("aclrtSynchronizeStream", stream)
    assert seen == [7, 9]
    assert lib.aclrtProcessReport(1) == 507012
    lib.ok("aclrtUnSubscribeReport", threading.get_ident(), stream)
    slow.release()
    lib.ok("aclrtDestroyStream", stream)


# descriptors


def test_destroying_twice_or_something_else(lib):
    value = ctypes.c_double(2.5)
    made = {
        "Tensor": lib.tensor(lib.upload(np.zeros(4, np.float32)), (4,)),
        "Scalar": lib.aclCreateScalar(ctypes.byref(value), DTYPES["float64"]),
        "IntArray": lib.aclCreateIntArray(ints(1, 2), 2),
        "BoolArray": lib.aclCreateBoolArray((ctypes.c_bool * 2)(True, False), 2),
        "FloatArray": lib.aclCreateFloatArray((ctypes.c_float * 2)(1, 2), 2),
    }
    foreign = ctypes.create_string_buffer(512)
    for name, descriptor in made.items():
        destroy = getattr(lib, f"aclDestroy{name}")
        for other in made:
            if other != name:
                assert getattr(lib, f"aclDestroy{other}")(descriptor) == INVALID
        assert (destroy(descriptor), destroy(descriptor), destroy(None)) == (0, INVALID, 0)
        assert "no live" in lib.message()
        assert destroy(ctypes.addressof(foreign)) == INVALID
        assert destroy(12345) == INVALID
    assert [lib.emLive(what) for what in (b"tensors", b"scalars", b"arrays", b"lists", b"nothing")] == [0, 0, 0, 0, -1]


def test_a_list_destroys_its_items(lib):
    block = lib.upload(np.zeros(4, np.float32))
    items = (ctypes.c_void_p * 2)(lib.tensor(block, (4,)), lib.tensor(block, (2, 2)))
    made = lib.aclCreateTensorList(items, 2)
    size = ctypes.c_uint64()
    lib.ok("aclGetTensorListSize", made, ctypes.byref(size))
    assert (size.value, lib.emLive(b"lists"), lib.emLive(b"tensors")) == (2, 1, 2)
    lib.ok("aclDestroyTensorList", made)
    assert (lib.emLive(b"lists"), lib.emLive(b"tensors")) == (0, 0)
    assert lib.aclDestroyTensor(items[0]) == INVALID
    assert lib.aclCreateTensorList(items, 2) is None  # of dead tensors
    again = (ctypes.c_void_p * 1)(lib.tensor(block, (4,)))
    made = lib.aclCreateTensorList(again, 1)
    lib.ok("aclDestroyTensor", again[0])
    assert lib.aclDestroyTensorList(made) == INVALID  # its item was destroyed already
    lib.ok("aclrtFree", block)


def test_what_a_tensor_says_of_itself(lib):
    block = lib.upload(np.zeros(24, np.float32))
    tensor = lib.tensor(block, (2, 3), strides=(1, 4), offset=5, stored=24)
    dims, size, offset, dtype = ctypes.POINTER(ctypes.c_int64)(), ctypes.c_uint64(), ctypes.c_int64(), ctypes.c_int()
    free = ctypes.CDLL(None).free
    found = []
    for name in ("aclGetViewShape", "aclGetViewStrides", "aclGetStorageShape"):
        lib.ok(name, tensor, ctypes.byref(dims), ctypes.byref(size))
        found.append(dims[: size.value])
        free(dims)
    lib.ok("aclGetViewOffset", tensor, ctypes.byref(offset))
    lib.ok("aclGetDataType", tensor, ctypes.byref(dtype))
    assert (found, offset.value, dtype.value) == ([[2, 3], [1, 4], [24]], 5, 0)
    assert lib.aclGetViewShape(None, ctypes.byref(dims), ctypes.byref(size)) == NULLPTR
    lib.ok("aclDestroyTensor", tensor)
    assert lib.aclGetViewShape(tensor, ctypes.byref(dims), ctypes.byref(size)) == INVALID
    lib.ok("aclrtFree", block)


def test_tensors_that_are_refused(lib):
    block = lib.malloc(256)
    assert lib.tensor(block + 4, (4,)) is None and "aligned" in lib.message()
    assert lib.tensor(block, (-1,)) is None and "negative" in lib.message()
    assert lib.tensor(block, (1,) * 9) is None
    assert lib.aclCreateTensor(ints(4), 1, 13, None, 0, 2, ints(4), 1, block) is None and "dtype" in lib.message()
    assert lib.emLive(b"tensors") == 0
    lib.ok("aclrtFree", block)


# executors


@pytest.fixture
def pair(lib):
    """(lib, self, out, address of out): tensors of the test operator."""
    blocks = lib.upload(np.arange(6, dtype=np.float32)), lib.upload(np.zeros(6, np.float32))
    tensors = [lib.tensor(block, (2, 3)) for block in blocks]
    yield lib, *tensors, blocks[1]
    for tensor in tensors:
        lib.ok("aclDestroyTensor", tensor)
    for block in blocks:
        lib.ok("aclrtFree", block)


def test_an_executor_runs_once(pair):
    lib, source, target, result = pair
    _, executor, size = lib.phase1("emCopy", source, 0, target)
    assert (size, lib.emLive(b"executors")) == (0, 1)
    before = lib.emLaunches(b"emCopy")
    lib.ok("emCopy", None, 0, executor, None)
    assert lib.emLive(b"executors") == 0
    assert lib.emCopy(None, 0, executor, None) == INNER_NULLPTR and "run or destroyed before" in lib.message()
    assert lib.aclDestroyAclOpExecutor(executor) == INNER_NULLPTR
    assert lib.emLaunches(b"emCopy") == lib.emLaunches(b"") == before + 1 or lib.emLaunches(b"emCopy") == before + 1
    lib.ok("aclrtSynchronizeStream", None)
    assert (lib.download(result, (6,), np.float32) == np.arange(6)).all()


def test_the_second_phase_deletes_the_executor_on_errors_too(pair):
    lib, source, target, result = pair
    workspace = lib.malloc(100)
    for given, size, stream, status in [
        (None, 100, None, NULLPTR),
        (workspace, 50, None, INVALID),
        (workspace + 4, 96, None, INVALID),
        (workspace, 200, None, RUNTIME),  # more than the block has
        (workspace, 100, 12345, RUNTIME),
    ]:
        _, executor, needed = lib.phase1("emCopy", source, 96, target)
        assert needed == 96
        assert lib.emCopy(given, size, executor, stream) == status
        assert lib.emLive(b"executors") == 0
        assert lib.emCopy(workspace, 100, executor, None) == INNER_NULLPTR
    _, executor, _ = lib.phase1("emCopy", source, 0, target)
    assert lib.emTake(None, 0, executor, None) == INNER and "is of emCopy" in lib.message()
    lib.ok("aclrtSynchronizeDevice")
    assert not lib.download(result, (6,), np.float32).any()
    _, executor, _ = lib.phase1("emCopy", source, 96, target)
    lib.ok("emCopy", workspace, 96, executor, None)
    lib.ok("aclrtSynchronizeDevice")
    assert lib.download(workspace, (100,), np.uint8).tolist() == [1] * 96 + [255] * 4
    lib.ok("aclrtFree", workspace)


def test_descriptors_may_go_after_the_second_phase(lib):
    stream = lib.stream()
    slow = Slow(lib, stream, 0.05)
    for tensor in slow.tensors:
        lib.ok("aclDestroyTensor", tensor)
    slow.tensors = []
    lib.ok("aclrtSynchronizeStream", stream)
    assert (lib.download(slow.result, (4,), np.float32) == np.arange(4)).all()
    slow.release()
    lib.ok("aclrtDestroyStream", stream)


def test_a_repeatable_executor(pair):
    lib, source, target, result = pair
    _, executor, _ = lib.phase1("emCopy", source, 0, target)
    lib.ok("aclSetAclOpExecutorRepeatable", executor)
    lib.ok("emCopy", None, 0, executor, None)
    other = lib.upload(np.full(6, 9, np.float32))
    own = ctypes.c_void_p()
    lib.ok("aclGetRawTensorAddr", source, ctypes.byref(own))
    lib.ok("aclSetInputTensorAddr", executor, 0, source, other)
    lib.ok("emCopy", None, 0, executor, None)
    lib.ok("aclrtSynchronizeDevice")
    assert (lib.download(result, (6,), np.float32) == 9).all()
    lib.ok("aclDestroyAclOpExecutor", executor)
    lib.ok("aclrtFree", other)
    gone = lib.tensor(own, (2, 3))
    _, executor, _ = lib.phase1("emCopy", gone, 0, target)
    lib.ok("aclSetAclOpExecutorRepeatable", executor)
    lib.ok("aclDestroyTensor", gone)
    assert lib.emCopy(None, 0, executor, None) == INNER_NULLPTR
    lib.ok("aclDestroyAclOpExecutor", executor)


def test_the_first_phase_checks(pair):
    lib, source, target, _ = pair
    block = lib.malloc(64)
    beyond, empty, wrong = lib.tensor(block, (4, 4), stored=15), lib.tensor(None, (2, 3)), lib.tensor(block, (2, 2))
    for a, b, status in [
        (None, target, NULLPTR),
        (source, wrong, INVALID),
        (beyond, beyond, INVALID),
        (source, empty, INVALID),
    ]:
        code, executor, _ = lib.phase1("emCopy", a, 0, b)
        assert (code, executor) == (status, None) and lib.message()
    for tensor in (beyond, empty, wrong):
        lib.ok("aclDestroyTensor", tensor)
    assert lib.phase1("emCopy", source, 0, wrong)[0] != 0  # a destroyed one
    assert lib.emLive(b"executors") == 0
    lib.ok("aclrtFree", block)


def test_a_result_whose_shape_is_known_afterwards(lib):
    blocks = lib.upload(np.arange(6, dtype=np.float32)), lib.upload(np.zeros(6, np.float32))
    source, target = (lib.tensor(block, (6,)) for block in blocks)
    _, executor, _ = lib.phase1("emTake", source, 4, target)
    lib.ok("emTake", None, 0, executor, None)
    lib.ok("aclrtSynchronizeDevice")
    dims, size = ctypes.POINTER(ctypes.c_int64)(), ctypes.c_uint64()
    lib.ok("aclGetViewShape", target, ctypes.byref(dims), ctypes.byref(size))
    assert dims[: size.value] == [4]
    ctypes.CDLL(None).free(dims)
    assert lib.download(blocks[1], (6,), np.float32).tolist() == [0, 1, 2, 3, 0, 0]
    for tensor in (source, target):
        lib.ok("aclDestroyTensor", tensor)
    for block in blocks:
        lib.ok("aclrtFree", block)


USED_AFTER_FREE = """
stream = lib.stream()
data = np.zeros(4, np.float32)
blocks = lib.upload(data), lib.upload(data)
source, target = (lib.tensor(block, (4,)) for block in blocks)
workspace = lib.malloc(64)
pinned = lib.make("aclrtMallocHost", 64)
lib.emFault(b"slow:emCopy", 1, 100000)
status, executor, _ = lib.phase1("emCopy", source, 64, target)
lib.ok("emCopy", workspace, 64, executor, stream)
lib.ok("aclrtMemcpyAsync", workspace, 64, pinned, 64, 1, stream)
{free}
lib.ok("aclrtSynchronizeStream", stream)
print("not here")
"""


@pytest.mark.parametrize(
    ("free", "name"),
    [
        ('lib.ok("aclrtFree", blocks[0])', "emCopy"),
        ('lib.ok("aclrtFree", workspace)', "emCopy"),
        (
            'lib.ok("aclrtFree", blocks[1]); assert lib.malloc(16) == blocks[1]',
            "emCopy",
        ),  # another block at its address
        ('lib.ok("aclrtFreeHost", pinned)', "aclrtMemcpyAsync"),
    ],
)
def test_memory_that_is_freed_while_in_use_aborts(library, free, name):
    done = run(library, USED_AFTER_FREE.format(free=free))
    assert done.returncode == -signal.SIGABRT
    assert f"{name} uses" in done.stderr and "freed before it was done" in done.stderr and not done.stdout


# elements


@pytest.mark.parametrize("dtype", list(DTYPES))
def test_values_of_every_dtype(lib, dtype):
    real = np.dtype(getattr(ml_dtypes, dtype) if dtype == "bfloat16" else dtype)
    rng = np.random.default_rng(0)
    values = np.concatenate(
        [rng.normal(scale=100, size=50), [0.0, -0.0, 1.0, 65504.0, 65520.0, 6e-8, 3e-8, 2.9e-8, 1e-40, 3.4e38]]
    )
    if dtype in ("float32", "float64", "float16", "bfloat16"):
        values = np.concatenate([values, [np.inf, -np.inf, np.nan]])
    elif dtype.startswith("uint"):
        values = np.abs(values[:50])
    elif dtype != "bool" and not dtype.startswith("complex"):
        values = values[:50]
    with np.errstate(over="ignore"):
        expected = values.astype(real)
    source, target = lib.upload(values), lib.upload(np.zeros(len(values), real))
    a, b = lib.tensor(source, values.shape, "float64"), lib.tensor(target, values.shape, dtype)
    lib.copy(a, b)
    lib.ok("aclrtSynchronizeDevice")
    found = lib.download(target, values.shape, real)
    if dtype != "int8":  # numpy's conversion of what does not fit is not defined
        np.testing.assert_array_equal(found.astype(np.complex128), expected.astype(np.complex128))
    # and back
    lib.copy(b, a)
    lib.ok("aclrtSynchronizeDevice")
    np.testing.assert_array_equal(lib.download(source, values.shape, np.float64), found.astype(np.complex128).real)
    for tensor in (a, b):
        lib.ok("aclDestroyTensor", tensor)
    for block in (source, target):
        lib.ok("aclrtFree", block)


@pytest.mark.parametrize(
    ("shape", "strides", "offset"),
    [
        ((2, 3, 4), (12, 4, 1), 0),
        ((4, 3, 2), (1, 4, 12), 3),
        ((2, 1, 3), (8, 99, 2), 5),
        ((3, 4), (0, 1), 2),
        ((), (), 7),
        ((2, 0, 3), (3, 3, 1), 0),
    ],
)
def test_views(lib, shape, strides, offset):
    base = np.arange(40, dtype=np.float32)
    expected = np.lib.stride_tricks.as_strided(base[offset:], shape, [4 * s for s in strides]).copy()
    source, target = lib.upload(base), lib.upload(np.zeros(max(expected.size, 1), np.float64))
    a, b = (
        lib.tensor(source, shape, strides=strides, offset=offset, stored=40),
        lib.tensor(target, shape, "float64", stored=max(expected.size, 1)),
    )
    lib.copy(a, b)
    lib.ok("aclrtSynchronizeDevice")
    assert (lib.download(target, shape, np.float64) == expected).all()
    for tensor in (a, b):
        lib.ok("aclDestroyTensor", tensor)
    for block in (source, target):
        lib.ok("aclrtFree", block)


def test_random_numbers(lib):
    def uniform(seed, offset, count):
        values = np.empty(count)
        lib.emUniform(seed, offset, count, values.ctypes.data)
        return values

    values = uniform(7, 3, 10001)
    assert (
        values.min() >= 0 and values.max() < 1 and abs(values.mean() - 0.5) < 0.02 and abs(values.var() - 1 / 12) < 0.01
    )
    assert (uniform(7, 3, 100) == values[:100]).all()
    assert not (uniform(7, 4, 100) == values[:100]).any() and not (uniform(8, 3, 100) == values[:100]).any()
    # The known answer of Philox 4x32-10 for a counter and a key of zeros (Random123's test vectors).
    words = 0x6627E8D5E169C58D, 0xBC57AC4C9B00DBD8
    assert uniform(0, 0, 2).tolist() == [(word >> 11) * 2.0**-53 for word in words]


# faults


def test_faults(pair):
    lib, source, target, result = pair
    cell = ctypes.c_void_p()
    lib.emFault(b"malloc", 2, 0)
    assert [lib.aclrtMalloc(ctypes.byref(cell), 8, 0) for _ in range(2)] == [MEMORY, MEMORY]
    lib.ok("aclrtFree", lib.malloc(8))
    lib.emFault(b"phase1:emCopy", 1, 0)
    assert lib.phase1("emCopy", source, 0, target)[:2] == (INVALID, None)
    lib.emFault(b"phase1:emCopy", -1, INNER_NULLPTR)
    assert [lib.phase1("emCopy", source, 0, target)[0] for _ in range(3)] == [INNER_NULLPTR] * 3
    lib.emClearFaults()
    lib.emFault(b"workspace:emCopy", 1, -1)
    status, executor, size = lib.phase1("emCopy", source, 0, target)
    assert (status, size) == (0, (1 << 64) - 1)
    lib.ok("aclDestroyAclOpExecutor", executor)
    lib.copy(source, target)
    lib.ok("aclrtSynchronizeDevice")


@pytest.mark.parametrize(("value", "code"), [(0, 507015), (507018, 507018)])
@pytest.mark.parametrize("wait", ["aclrtSynchronizeStream", "aclrtSynchronizeDevice"])
def test_a_kernels_failure_surfaces_once(pair, value, code, wait):
    lib, source, target, result = pair
    stream = lib.stream()
    arguments = (stream,) if wait == "aclrtSynchronizeStream" else ()
    lib.emFault(b"kernel:emCopy", 1, value)
    lib.copy(source, target, stream)
    assert getattr(lib, wait)(*arguments) == code and "emCopy" in lib.message()
    assert not lib.download(result, (6,), np.float32).any()
    lib.ok(wait, *arguments)
    lib.copy(source, target, stream)
    lib.ok(wait, *arguments)
    assert (lib.download(result, (6,), np.float32) == np.arange(6)).all()
    lib.ok("aclrtDestroyStream", stream)


def test_a_stream_that_stops_on_failure(pair):
    lib, source, target, result = pair
    stream = lib.stream()
    lib.ok("aclrtSetStreamFailureMode", stream, 1)
    lib.emFault(b"kernel:emCopy", 1, 0)
    for _ in range(2):
        lib.copy(source, target, stream)
    assert lib.aclrtSynchronizeStream(stream) == 507015
    assert not lib.download(result, (6,), np.float32).any()
    lib.ok("aclrtDestroyStream", stream)


def test_leaks_are_reported_at_the_end(library):
    code = """
    tensor = lib.tensor(lib.malloc(16), (4,))
    lib.aclCreateIntArray((ctypes.c_int64 * 1)(1), 1)
    lib.phase1("emCopy", tensor, 0, tensor)
    lib.stream(), lib.event(), lib.make("aclrtMallocHost", 8)
    lib.ok("aclFinalize")
    lib.ok("aclInit", None)
    lib.ok("aclFinalize")
    """
    done = run(library, code)
    assert done.returncode == 0, done.stderr
    lines = [
        line.removeprefix("emulator: leaked at aclFinalize: ") for line in done.stderr.splitlines() if "leaked" in line
    ]
    assert lines == [
        "1 aclTensor",
        "1 arrays",
        "1 executors",
        "1 streams",
        "1 events",
        "1 blocks of device memory",
        "1 blocks of pinned host memory",
    ]


def test_nothing_is_reported_without_leaks(library):
    done = run(
        library, 'lib.ok("aclrtFree", lib.malloc(8)); lib.ok("aclrtDestroyStream", lib.stream()); lib.ok("aclFinalize")'
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_many_threads(lib):
    """Descriptors, memory and launches from several threads at once."""
    failures = []

    def work(seed):
        try:
            lib.ok("aclrtSetDevice", seed % 2)
            stream = lib.stream()
            for turn in range(30):
                data = np.full(100, seed * 1000 + turn, np.float32)
                blocks = lib.upload(data), lib.malloc(400)
                tensors = [lib.tensor(block, (100,)) for block in blocks]
                lib.copy(*tensors, stream)
                for tensor in tensors:
                    lib.ok("aclDestroyTensor", tensor)
                lib.ok("aclrtSynchronizeStream", stream)
                assert (lib.download(blocks[1], (100,), np.float32) == data).all()
                for block in blocks:
                    lib.ok("aclrtFree", block)
            lib.ok("aclrtDestroyStream", stream)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert [lib.emLive(what) for what in (b"tensors", b"executors", b"device_blocks", b"streams")] == [0, 0, 0, 0]
