"""The kernels of the C extension that read and write at positions give what the numpy kernels behind them give."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from _native_outcomes import needs_extension

from mindtorch_v2._backends.cpu.ops import indexing, pointwise
from mindtorch_v2._dispatch import native

pytestmark = needs_extension

DTYPES = [
    np.float32,
    np.float64,
    np.int64,
    np.int32,
    np.int16,
    np.uint8,
    bool,
    np.float16,
    ml_dtypes.bfloat16,
    np.complex128,
]


def _filled(dtype: Any, *sizes: int) -> np.ndarray:
    count = int(np.prod(sizes))
    return ((np.arange(count) * 7 + 3) % 101 - 40).astype(np.float32).astype(dtype).reshape(sizes)


def _layouts(x: np.ndarray) -> Iterator[np.ndarray]:
    yield x.copy()
    yield np.asfortranarray(x)
    yield np.repeat(x, 2, axis=-1)[..., ::2]
    yield np.ascontiguousarray(x[::-1])[::-1]


def _outcome(kernel: Any, arguments: list) -> Any:
    with np.errstate(all="ignore"):
        try:
            return kernel(*arguments)
        except Exception as error:  # noqa: BLE001 (the error is what is compared)
            return type(error), str(error)


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal elements; NaN equals NaN."""
    return bool(((a == b) | ((a != a) & (b != b))).all())


def check(kernel: Any, *arguments: Any, writes: bool = False) -> None:
    """Compare the kernel in C and the Python function behind it. `writes`: they write to their first argument."""
    assert isinstance(kernel, native.extension.Kernel)
    mine, theirs = list(arguments), list(arguments)
    if writes:
        mine[0], theirs[0] = _copy(arguments[0]), _copy(arguments[0])
    a, b = _outcome(kernel, mine), _outcome(kernel.__wrapped__, theirs)
    if isinstance(b, tuple):
        assert a == b, (kernel, arguments)
    else:
        assert (a.dtype, a.shape) == (b.dtype, b.shape), (kernel, arguments)
        assert _same(a, b), (kernel, arguments, a, b)
    if writes:
        assert _same(mine[0], theirs[0]), (kernel, arguments)
        assert isinstance(b, tuple) or a is mine[0]


def _copy(x: np.ndarray) -> np.ndarray:
    """Equal elements with equal strides."""
    low = (
        np.empty(x.shape, x.dtype)
        if not x.size
        else np.lib.stride_tricks.as_strided(np.zeros(8 * x.size + 64, x.dtype)[4 * x.size :], x.shape, x.strides)
    )
    low[...] = x
    return low


K = np.array([0, 2, 1, 2, -1])
PAIR = np.array([[0, 1], [-2, 0], [1, 1]])
ROWS = np.array([True, False, True, True])
KEYS: list[list] = [
    *(
        [K],
        [None, K],
        [None, None, K],
        [K.astype(np.int32)],
        [PAIR],
        [None, PAIR],
        [K, K],
        [K, None, K],
        [None, K, K],
        [K[::2]],
    ),
    *(
        [PAIR, PAIR],
        [PAIR, K[:2]],
        [K[:1], None, PAIR],
        [K, K, K],
        [np.array(1)],
        [np.array(-1), K],
        [K[:0]],
        [PAIR[:0], None, K[:2]],
    ),
    *(
        [ROWS],
        [None, np.array([True, False, True])],
        [ROWS, None, K[:3]],
        [ROWS, K[:1]],
        [ROWS.view(np.uint8)],
        [ROWS & False],
    ),
    *(
        [np.arange(12).reshape(4, 3) % 5 == 0],
        [None, np.arange(15).reshape(3, 5) % 2 == 0],
        [np.arange(60).reshape(4, 3, 5) % 3 == 0],
    ),
    *(
        [np.array(7)],
        [np.array([0, -5])],
        [None, K + 9],
        [ROWS, K[:2]],
        [K, PAIR],
        [np.array(True)],
        [K.astype(np.int8)],
    ),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_index(dtype: Any) -> None:
    for x in _layouts(_filled(dtype, 4, 3, 5)):
        for key in KEYS:
            check(indexing.index, x, key)
    check(indexing.index, np.zeros((4, 0, 5), dtype), [K])
    check(indexing.index, np.zeros((0, 3, 5), dtype), [K])
    check(indexing.index, _filled(dtype, 40), [_filled(np.int64, 900) % 40])
    check(indexing.index, _filled(dtype, 300, 300), [_filled(np.int64, 300, 300) > 0])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_index_put(dtype: Any) -> None:
    one = np.asarray(_filled(dtype, 1)[0])
    for x in _layouts(_filled(dtype, 4, 3, 5)):
        for key in KEYS:
            found = _outcome(indexing.index.__wrapped__, [x, key])
            shapes = (
                [()] if isinstance(found, tuple) else [(), found.shape, found.shape[-1:], (1, *found.shape[1:]), (9, 9)]
            )
            for shape in shapes:
                values = one if shape == () else (_filled(dtype, *shape) if 0 not in shape else np.zeros(shape, dtype))
                for accumulate in (False, True):
                    if accumulate and np.dtype(dtype).kind == "V" and shape == ():
                        continue
                    check(indexing.index_put_, x, key, values, accumulate, writes=True)


def test_values_that_share_memory_are_read_first() -> None:
    x = np.arange(6.0)
    indexing.index_put_(x, [np.array([1, 2, 3])], x[:3])
    assert x.tolist() == [0, 0, 1, 2, 4, 5]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_whole_slices(dtype: Any) -> None:
    for x, dim in itertools.product(_layouts(_filled(dtype, 4, 3, 5)), (0, 1, 2, -1)):
        for index in (
            np.array([0, 2, 2, 1]),
            np.array([1, 0], np.int32),
            np.array(2),
            K[:0],
            np.array([5]),
            np.array([-1]),
        ):
            check(indexing.index_select, x, dim, index)
            sizes = list(x.shape)
            sizes[dim] = index.size
            source = _filled(dtype, *sizes) if index.size else np.zeros(sizes, dtype)
            for alpha in (1, 2):
                check(indexing.index_add_, x, dim, index, source, alpha, writes=True)
            check(indexing.index_copy_, x, dim, index, source, writes=True)
            check(indexing.index_fill_, x, dim, index, 3, writes=True)
    check(indexing.index_select, _filled(dtype, 6), 0, K[:4])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gather_and_scatter(dtype: Any) -> None:
    for number, (x, dim) in enumerate(itertools.product(_layouts(_filled(dtype, 4, 3, 5)), (0, 1, -1))):
        size = x.shape[dim]
        for sizes in ((4, 3, 5), (2, 3, 4), (0, 3, 5)) if number < 6 else ((2, 2, 2),):
            index = np.arange(np.prod(sizes)).reshape(sizes) * 5 % size
            for places in (index, np.asfortranarray(index), index.astype(np.int32), index + 1):
                source = _filled(dtype, 4, 4, 5)
                check(indexing.gather, x, dim, places)
                check(indexing.scatter_src, x, dim, places, source, writes=True)
                check(indexing.scatter_value, x, dim, places, 2, writes=True)
                check(indexing.scatter_add_, x, dim, places, source, writes=True)
                for reduce in ("add", "multiply"):
                    check(indexing.scatter_reduce, x, dim, places, source, reduce, writes=True)
                for reduce, include in itertools.product(("sum", "amax", "amin", "mean", "prod"), (True, False)):
                    if np.dtype(dtype).kind == "c" and reduce in ("amax", "amin"):
                        continue
                    check(indexing.scatter_reduce_, x, dim, places, source, reduce, include, writes=True)
    check(indexing.gather, _filled(dtype, 5), 0, np.array(3))
    check(indexing.gather, np.asarray(_filled(dtype, 1)[0]), 0, np.array([0, 0]))
    check(indexing.gather, _filled(dtype, 300, 300), 1, _filled(np.int64, 300, 300) % 300)


def test_extrema_keep_what_is_no_number() -> None:
    x, source = np.array([1.0, np.nan, 3.0, 4.0]), np.array([np.nan, 5.0, -np.inf, 7.0])
    for reduce in ("amax", "amin"):
        check(indexing.scatter_reduce_, x, 0, np.array([0, 1, 2, 2]), source, reduce, True, writes=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_masks(dtype: Any) -> None:
    x = _filled(dtype, 4, 3, 5)
    mask = np.arange(60).reshape(4, 3, 5) % 3 == 0
    value = np.asarray(_filled(dtype, 1)[0])
    for a, m in itertools.product(
        _layouts(x), [*_layouts(mask), mask[0], mask[:, :1], mask[0, 0, 0], mask.view(np.uint8)]
    ):
        check(indexing.masked_fill, a, m, value)
        check(indexing.masked_fill, a, m, 3)
        check(indexing.masked_fill, a, m, True)
        if np.dtype(dtype).kind not in "iub":
            check(indexing.masked_fill, a, m, -0.5)
        if m.dtype == bool:
            place = a.copy("K")
            expected = indexing.masked_fill.__wrapped__(a, m, 1)
            assert indexing.masked_fill(place, m, 1, place) is place
            np.testing.assert_array_equal(place, expected)
            check(indexing.masked_select, a, m)
        for b in (a[::-1], value, a[:1, :1, :1]):
            check(pointwise.where, m, a, b)
            check(pointwise.where, m, b, a)
    check(indexing.masked_fill, x[0], mask, 1)
    check(indexing.masked_select, x[0], mask)
    check(pointwise.where, mask, value, value)
    check(pointwise.where, mask[:0], x[:0], x[:0])
    check(pointwise.where, np.asarray(True), x, value)
    check(pointwise.where, _filled(np.int64, 300, 300) > 0, _filled(dtype, 300, 300), _filled(dtype, 300, 300).T)


def test_one_hot() -> None:
    for classes in (K[:4], PAIR[[0, 2]], np.array(2), np.array([5, 0], np.int32), np.array([-1]), np.array([9])):
        for count in (-1, 6):
            if classes.min() >= 0 or count == 6:
                check(indexing.one_hot, classes, count)


@needs_extension
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int16, np.int32, np.int64, np.float32, np.float64])
def test_nonzero(dtype: type) -> None:
    draw = np.random.default_rng(2)
    for shape in ((7,), (4, 4), (2, 3, 5), (1, 1), (0, 3), (2000,)):
        for most in (1, 2, 5):
            x = draw.integers(0, most, shape).astype(dtype)
            if np.issubdtype(dtype, np.floating) and x.size > 2:
                x.flat[0], x.flat[1] = -0.0, np.nan
            for array in (x, x.T, x[..., ::2]):
                found, wanted = indexing.nonzero(array), indexing.nonzero.__wrapped__(array)
                assert found.dtype == wanted.dtype and found.shape == wanted.shape and np.array_equal(found, wanted)
                assert found.strides == wanted.strides or found.size < 2 or 1 in found.shape
