"""Loops over integers: bounds, signs, shifts, products of vectors, and conversions to narrower types, with each set of vector instructions."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from _native_outcomes import needs_extension, outcome

from mindtorch_v2._backends.cpu.ops import conversion, indexing, matmul, pointwise
from mindtorch_v2._generated import kernels

INTEGERS = (np.int64, np.int32, np.int16, np.int8, np.uint8)
SIZES = [(), (0,), (1,), (7,), (33,), (5, 67), (40_000,)]

pytestmark = needs_extension


def _integers(dtype: Any, size: tuple[int, ...]) -> np.ndarray:
    info = np.iinfo(dtype)
    made = np.asarray(np.random.default_rng(5).integers(info.min, info.max, size, dtype, endpoint=True))
    if made.size > 6:
        made.reshape(-1)[:6] = 0, 1, info.min, info.max, 0, 3
    return made


def _same(found: Any, wanted: Any) -> None:
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("size", SIZES)
def test_bounds(dtype: Any, size: tuple[int, ...], vectors: int) -> None:
    x = _integers(dtype, size)
    info = np.iinfo(dtype)
    for low, high in [(1, 5), (5, 1), (None, 7), (2, None), (info.min, info.max)]:
        wanted, given = x, [None if bound is None else np.array(bound, dtype) for bound in (low, high)]
        if low is not None:
            wanted = np.maximum(wanted, given[0])
        if high is not None:
            wanted = np.minimum(wanted, given[1])
        _same(kernels.clamp_Tensor(x, *given), wanted)
        out = np.empty_like(x)
        assert kernels.clamp_Tensor(x, *given, out) is out
        _same(out, wanted)
        own = x.copy()
        assert kernels.clamp_Tensor(own, *given, own) is own
        _same(own, wanted)
    _same(pointwise.clamp_min(x, np.array(4, dtype)), np.maximum(x, dtype(4)))
    _same(pointwise.clamp_max(x, np.array(4, dtype)), np.minimum(x, dtype(4)))
    _same(kernels.relu(x), np.maximum(x, dtype(0)))
    _same(pointwise.sign(x), np.sign(x).astype(dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bounds_that_the_loops_leave_to_numpy(dtype: Any) -> None:
    x = _integers(dtype, (6, 8))
    info = np.iinfo(dtype)
    whole = x[::-1].copy()
    for args in [
        (x, whole, None),
        (x.T, 1, 5),
        (x[:, ::2], 1, None),
        (x, info.max + 1, None),
        (x, None, info.min - 1),
        (x, x[0], 5),
        (x, 2**70, None),
    ]:
        found, wanted = outcome(kernels.clamp_Tensor, args, {}), outcome(kernels.clamp_Tensor.__wrapped__, args, {})
        if isinstance(wanted, tuple):
            assert found == wanted
        else:
            _same(found, wanted)
    one, low, high = x.reshape(-1).copy(), np.array(1, dtype), np.array(5, dtype)
    _same(kernels.clamp_Tensor(one[:-1], low, high, one[1:]), np.minimum(np.maximum(x.reshape(-1)[:-1], 1), 5))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_by_a_number(dtype: Any) -> None:
    x = _integers(dtype, (1000,))
    bits = np.iinfo(dtype).bits
    for by in (0, 1, bits // 2, bits - 1, bits, bits + 3, *((-1,) if np.iinfo(dtype).min else ())):
        number = np.array(by, dtype)
        is_within = 0 <= by < bits
        exact = [int(v) for v in x]
        left = np.array([(v << by if is_within else 0) & (2**bits - 1) for v in exact], f"u{bits // 8}").astype(dtype)
        right = np.array([v >> (by if is_within else bits - 1 if np.iinfo(dtype).min else bits) for v in exact], dtype)
        _same(pointwise.left_shift(x, number), left)
        _same(pointwise.right_shift(x, number), right)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_products_of_vectors_wrap_around(dtype: Any) -> None:
    bits = np.iinfo(dtype).bits
    for n in (1, 3, 100, 50_000):
        a, b = _integers(dtype, (n,)), _integers(dtype, (n,))[::-1].copy()
        exact = sum(int(x) * int(y) for x, y in zip(a, b, strict=True)) & (2**bits - 1)
        wanted = np.array(exact, f"u{bits // 8}").astype(dtype)
        for right in (b, np.repeat(b, 2)[::2]):
            _same(np.asarray(matmul.matmul(a, right)), wanted)
            _same(np.asarray(matmul.dot(a, right)), wanted)
    rows, one = _integers(dtype, (40, 900)), _integers(dtype, (900,))
    wanted = np.array(
        [sum(int(x) * int(y) for x, y in zip(row, one, strict=True)) & (2**bits - 1) for row in rows], f"u{bits // 8}"
    )
    _same(matmul.matmul(rows, one), wanted.astype(dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_products_of_matrices_wrap_around(dtype: Any) -> None:
    """Also those that float64 holds exactly, and the dtype does not."""
    bits = np.iinfo(dtype).bits
    for most in (100, np.iinfo(dtype).max):
        a, b = (np.minimum(_integers(dtype, size), most) for size in ((50, 300), (300, 40)))
        exact = (a.astype(object) @ b.astype(object)) & (2**bits - 1)
        _same(matmul.matmul(a, b), exact.astype(f"u{bits // 8}").astype(dtype))
        _same(matmul.mm.__wrapped__(a, b), exact.astype(f"u{bits // 8}").astype(dtype))


@pytest.mark.parametrize("source", [np.bool_, *INTEGERS, np.float64])
@pytest.mark.parametrize("target", [np.bool_, np.int8, np.uint8, np.int16, ml_dtypes.bfloat16])
def test_conversions_to_narrower_types(source: Any, target: Any, vectors: int) -> None:
    for n in (1, 15, 300, 5000):
        if source is np.float64:
            x = np.random.default_rng(1).uniform(-100, 100, n)
        else:
            x = np.arange(n) % 3 == 1 if source is np.bool_ else _integers(source, (n,))
        for one in (x, np.repeat(x, 3)[::3]):
            wanted = one.astype(np.float32) if target is ml_dtypes.bfloat16 else one
            if source is np.float64 and target is np.uint8:
                wanted = wanted.astype(np.int32)
            _same(conversion.copy_(np.empty(n, target), one), wanted.astype(target))


@pytest.mark.parametrize("dtype", [np.bool_, *INTEGERS])
@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin"])
def test_elements_that_meet(dtype: Any, reduce: str) -> None:
    """Several go to one place: sums and products wrap around, and those of truths are whether one holds, and whether all do."""
    draws = np.random.default_rng(2)
    source = draws.integers(0, 2, (30, 40)).astype(bool) if dtype is np.bool_ else _integers(dtype, (30, 40))
    target, index = source[::-1, :20].copy(), draws.integers(0, 20, (30, 40))
    wanted = target.copy()
    of = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}[reduce]
    for row, column in np.ndindex(index.shape):
        place = row, index[row, column]
        with np.errstate(over="ignore"):
            wanted[place] = of(wanted[place], source[row, column])
    _same(indexing.scatter_reduce(target.copy(), 1, index, source, reduce), wanted)
    if reduce == "sum":
        _same(indexing.scatter_add_(target.copy(), 1, index, source), wanted)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32])
def test_lines_backwards(dtype: Any, vectors: int) -> None:
    for n in (1, 2, 15, 31, 32, 33, 64, 1001):
        x = np.arange(3 * n).reshape(3, n).astype(dtype)
        _same(conversion.copy_(np.empty((3, n), dtype), x[:, ::-1]), np.array([row[::-1].tolist() for row in x], dtype))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.bool_, *INTEGERS])
def test_elements_that_are_not_zero(dtype: Any) -> None:
    for n in (1, 7, 8, 9, 40, 1000):
        x = np.random.default_rng(n).integers(0, 3, (2, n)).astype(dtype)
        if x.dtype.kind not in "biu":
            x[x == 2] = -0.0
            x[0, n // 2] = np.nan
        wanted = [[row, column] for row, column in np.ndindex(x.shape) if float(x[row, column]) != 0]
        assert indexing.nonzero(x).tolist() == wanted
