"""The emulator's descriptors and executors, at the level of CANN's C functions."""

from __future__ import annotations

import ctypes
import signal

import numpy as np
import pytest
from _emulator import DTYPES, run
from _emulator_runtime import INNER, INNER_NULLPTR, INVALID, NULLPTR, RUNTIME, Slow, ints

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
