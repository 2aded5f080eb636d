"""The emulator's elements and faults, at the level of CANN's C functions."""

from __future__ import annotations

import ctypes
import threading

import ml_dtypes
import numpy as np
import pytest
from _emulator import DTYPES, run
from _emulator_runtime import INNER_NULLPTR, INVALID, MEMORY

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
def test_a_kernels_failure_stays_until_the_device_is_reset(pair, value, code, wait):
    lib, source, target, result = pair
    stream = lib.stream()
    arguments = (stream,) if wait == "aclrtSynchronizeStream" else ()
    lib.emFault(b"kernel:emCopy", 1, value)
    lib.copy(source, target, stream)
    for _ in range(2):
        assert getattr(lib, wait)(*arguments) == code and "emCopy" in lib.message()
    assert not lib.download(result, (6,), np.float32).any()
    lib.ok("aclrtResetDevice", 0)
    lib.ok("aclrtSetDevice", 0)
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
