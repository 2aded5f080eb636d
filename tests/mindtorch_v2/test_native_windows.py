"""Pooling and convolution of the C extension give what the numpy kernels give."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from _native_outcomes import assert_close, needs_extension

from mindtorch_v2._backends.cpu.ops import conv, pool

pytestmark = needs_extension


def _array(shape: tuple, dtype: str = "float32", seed: int = 1) -> np.ndarray:
    generator = np.random.default_rng(seed)
    if dtype.startswith("float"):
        return generator.normal(size=shape).astype(dtype)
    return generator.integers(0, 100, shape).astype(dtype)


def _layouts(array: np.ndarray) -> Iterator[np.ndarray]:
    """The same elements with other strides."""
    yield array
    yield np.moveaxis(np.moveaxis(array, 1, -1).copy(), -1, 1)
    yield np.repeat(array, 2, -1)[..., ::2]


def _same(kernel: Any, *args: Any) -> Any:
    found, wanted = kernel(*args), kernel.__wrapped__(*args)
    what = f"{kernel.__name__} {[(a.dtype, a.shape, a.strides) if isinstance(a, np.ndarray) else a for a in args]}"
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
    for one, other in pairs:
        assert (one is None) == (other is None), what
        if one is not None:
            assert one.dtype == other.dtype and one.shape == other.shape, what
            assert_close(one, other, what, 200)
    return found


_SHAPES = [(2, 3, 9, 8), (3, 8, 8), (1, 2, 5, 4), (0, 3, 6, 6)]
_WINDOWS = list(
    itertools.product([2, (3, 2), [3]], [(), None, 1, (2, 1), 3], [0, 1, (1, 0)], [1, (1, 2)], [False, True])
)


def _fitting(shape: tuple) -> Iterator[tuple]:
    """Windows that rules let through: each has a place in the padded input, and half of it or more is no padding."""
    for kernel, stride, padding, dilation, ceil_mode in _WINDOWS:
        geometry = pool._Geometry(shape[-2:], kernel, stride, padding, dilation, ceil_mode, 2)
        small = all(2 * p <= k for p, k in zip(geometry.padding, geometry.kernel))
        if small and all(
            n + 2 * p > d * (k - 1)
            for n, p, d, k in zip(shape[-2:], geometry.padding, geometry.dilation, geometry.kernel)
        ):
            yield kernel, stride, padding, dilation, ceil_mode


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8"])
def test_max_pool(dtype: str) -> None:
    for shape in _SHAPES:
        for window, x in itertools.product(_fitting(shape), _layouts(_array(shape, dtype))):
            if dtype.startswith("float") and x.size:
                x[..., 1, 1], x[..., 2, 2] = np.nan, -np.inf
            best, index = _same(pool.max_pool2d_with_indices, x, *window)
            _same(pool.max_pool2d_with_indices_backward, best, x, *window, index)
    line = _array((2, 3, 12), dtype)
    _same(pool.max_pool1d_with_indices, line, 3, 2, 1, 1, True)
    room = _array((2, 3, 5, 6, 4), dtype)
    best, index = _same(pool.max_pool3d_with_indices, room, (2, 3, 2), 2, (1, 1, 0), 1, False)
    _same(pool.max_pool3d_with_indices_backward, best, room, (2, 3, 2), 2, (1, 1, 0), 1, False, index)


def test_a_place_outside_raises_as_numpy_does() -> None:
    x, grad = _array((1, 1, 4, 4)), _array((1, 1, 2, 2))
    with pytest.raises(IndexError):
        pool.max_pool2d_with_indices_backward(grad, x, 2, 2, 0, 1, False, np.full((1, 1, 2, 2), 16))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("counting", [(True, None), (False, None), (True, 3)])
def test_avg_pool(dtype: str, counting: tuple) -> None:
    for shape in _SHAPES:
        for window, x in itertools.product(_fitting(shape), _layouts(_array(shape, dtype))):
            kernel, stride, padding, _, ceil_mode = window
            args = (kernel, stride, padding, ceil_mode, *counting)
            out = _same(pool.avg_pool2d, x, *args)
            _same(pool.avg_pool2d_backward, out, x, *args)
    room = _array((2, 3, 5, 6, 4), dtype)
    out = _same(pool.avg_pool3d, room, (2, 3, 2), 2, (1, 1, 0), True, *counting)
    _same(pool.avg_pool3d_backward, out, room, (2, 3, 2), 2, (1, 1, 0), True, *counting)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("counting", [(True, None), (False, None), (False, -3)])
def test_means_of_long_rows(dtype: str, counting: tuple, vectors: int) -> None:
    for width, ceil_mode in itertools.product((9, 40, 603), (False, True)):
        x = _array((1, 2, 5, width), dtype)
        for window in ((2, 2, 0), (3, 1, 1), (3, 2, 1), ((2, 5), (1, 3), (1, 2)), (4, 4, 2)):
            out = _same(pool.avg_pool2d, x, *window, ceil_mode, *counting)
            _same(pool.avg_pool2d_backward, out, x, *window, ceil_mode, *counting)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_adaptive_pools(dtype: str) -> None:
    for shape, size in itertools.product(_SHAPES, [1, (1, 1), (3, 2), [5, 7], (0, 2)]):
        for x in _layouts(_array(shape, dtype)):
            out = _same(pool.adaptive_avg_pool2d, x, size)
            _same(pool.adaptive_avg_pool2d_backward, out, x)
            if x.size and size != (0, 2):
                x[..., 2, 1] = np.nan
                best, index = _same(pool.adaptive_max_pool2d, x, size)
                _same(pool.adaptive_max_pool2d_backward, best, x, index)
    room = _array((2, 3, 5, 6, 4), dtype)
    out = _same(pool.adaptive_avg_pool3d, room, (2, 3, 4))
    _same(pool.adaptive_avg_pool3d_backward, out, room)
    _same(pool.adaptive_max_pool3d, room, (2, 3, 4))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("shape", "weight", "groups"),
    [
        ((1, 3, 8, 8), (4, 3, 3, 3), 1),
        ((3, 8, 7), (2, 3, 3, 2), 1),
        ((2, 4, 6, 5), (6, 2, 2, 3), 2),
        ((2, 4, 40, 30), (4, 1, 3, 3), 4),
        ((2, 6, 9), (3, 2, 4), 3),
        ((5, 11), (4, 5, 3), 1),
        ((1, 2, 4, 5, 6), (3, 2, 2, 2, 3), 1),
        ((0, 3, 8, 8), (4, 3, 3, 3), 1),
        ((2, 3, 8, 8), (5, 3, 1, 1), 1),
    ],
)
def test_convolution(shape: tuple, weight: tuple, groups: int, dtype: str) -> None:
    x, w, b = _array(shape, dtype), _array(weight, dtype, 2), _array(weight[:1], dtype, 3)
    for stride, padding, dilation, bias in itertools.product([1, 2], [0, 1, 2], [1, 2], [None, b]):
        spatial = shape[-(len(weight) - 2) :]
        if all(n + 2 * padding >= dilation * (k - 1) + 1 for n, k in zip(spatial, weight[2:])):
            _same(conv.convolution, x, w, bias, stride, padding, dilation, False, 0, groups)
    sizes = tuple(range(1, len(weight) - 1))
    _same(conv.convolution, x, w, b, sizes, sizes, (1,), False, (0,), groups)
    _same(conv.convolution, x[..., ::1], w[::-1][::-1], b, [1], [1], [1], False, [0], groups)
