"""Kernels in C that order rows and divide integers, against the Python functions behind them."""

from __future__ import annotations

import numpy as np
import pytest
from _native_outcomes import needs_extension

from mindtorch_v2._backends.cpu.ops import pointwise, sorting

DTYPES = [np.float32, np.float64, np.float16, np.int64, np.int32, np.int16, np.int8, np.uint8]


def _arrays(dtype: type) -> list[np.ndarray]:
    draw = np.random.default_rng(5)
    made = []
    for shape in [(7,), (4, 4), (3, 1), (2, 3, 64), (5, 200), (2, 700), (0, 3), (3, 0), ()]:
        values = draw.integers(-4 if np.dtype(dtype).kind != "u" else 0, 5, shape).astype(dtype)
        if np.issubdtype(dtype, np.floating) and values.size > 3:
            values.flat[1], values.flat[2], values.flat[3] = np.nan, np.inf, -0.0
        made += [values, values.T]
    if np.dtype(dtype).itemsize == 8:  # keys of 64 bits
        made.append((draw.standard_normal((2, 300)) * 2.0**60).astype(dtype))
    return made


def _same(found: object, wanted: object) -> None:
    for one, other in zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]:
        assert (
            one.dtype == other.dtype
            and one.shape == other.shape
            and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
        )


@needs_extension
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("descending", [False, True])
def test_order(dtype: type, descending: bool) -> None:
    for x in _arrays(dtype):
        for dim in range(-1, max(x.ndim, 1)):
            _same(sorting.sort(x, dim, descending), sorting.sort.__wrapped__(x, dim, descending))
            _same(
                sorting.sort_stable(x, True, dim, descending), sorting.sort_stable.__wrapped__(x, True, dim, descending)
            )
            _same(sorting.argsort(x, dim, descending), sorting.argsort.__wrapped__(x, dim, descending))
            for k in (0, 1, 2, 5, 80):
                if x.ndim and k <= x.shape[dim]:  # of equal elements any may be taken
                    values, places = sorting.topk(x, k, dim, descending, True)
                    wanted, others = sorting.topk.__wrapped__(x, k, dim, descending, True)
                    _same((values, np.take_along_axis(x, places, dim)), (wanted, np.take_along_axis(x, others, dim)))


@needs_extension
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_that_differ(dtype: type) -> None:
    for x in _arrays(dtype):
        for flags in ((True, True), (False, False)):
            _same(sorting.unique2(x, True, *flags), sorting.unique2.__wrapped__(x, True, *flags))
            _same(sorting.unique_consecutive(x, *flags), sorting.unique_consecutive.__wrapped__(x, *flags))


@needs_extension
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8, np.float32])
@pytest.mark.parametrize("function", [pointwise.floor_divide, pointwise.remainder])
def test_division(function: object, dtype: type) -> None:
    lowest = np.iinfo(dtype).min if np.issubdtype(dtype, np.integer) else -1e30
    left = np.array([[7, -7, 0, lowest], [5, -5, 1, -1]], dtype)
    for right in ([3], [-3], [[2], [-2]], [1, -1, 4, -4]):
        other = np.array(right, dtype)
        with np.errstate(all="ignore"):
            for one, two in (
                (left, other),
                (left.T, np.array(3, dtype)),
                (left[:, ::2], other[..., :1]),
                (other, np.array(2, dtype)),
            ):
                wanted = function.__wrapped__(one, two)
                _same(function(one, two), wanted)
                out = np.empty(wanted.shape[::-1], dtype).T
                assert function(one, two, out=out) is out
                _same(out, wanted)
    whole = left.copy()
    function(whole, np.array(3, dtype), out=whole)
    _same(whole, function.__wrapped__(left, np.array(3, dtype)))


@needs_extension
@pytest.mark.parametrize("function", [pointwise.floor_divide, pointwise.remainder])
def test_a_division_by_zero_is_refused(function: object) -> None:
    for divisor in (np.array(0), np.array([1, 0, 2])):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            function(np.array([1, 2, 3]), divisor)
