"""Resizing of the spatial dimensions, one dimension after the other: each output is a weighted sum of a few inputs along the dimension."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from ...._dispatch import native

Taps = list[tuple[ndarray, ndarray]]
"""(input positions, weights) for every output along one dimension, one pair for each term of the sum."""


def _scale(size: int, out: int, factor: float | None) -> float:
    return 1.0 / factor if factor is not None and factor > 0 else size / out


def _nearest(size: int, out: int, factor: float | None) -> ndarray:
    scale = np.float32(_scale(size, out, factor))
    return np.minimum((np.arange(out, dtype=np.float32) * scale).astype(np.int64), size - 1)


def _nearest_exact(size: int, out: int, factor: float | None) -> ndarray:
    scale = np.float32(_scale(size, out, factor))
    places = (np.arange(out, dtype=np.float32) + np.float32(0.5)) * scale
    return np.minimum(places.astype(np.int64), size - 1)


def _positions(size: int, out: int, factor: float | None, align_corners: bool, clip: bool) -> ndarray:
    """Where in the input each output lies."""
    if align_corners:
        return np.arange(out) * ((size - 1) / (out - 1) if out > 1 else 0.0)
    places = (np.arange(out) + 0.5) * _scale(size, out, factor) - 0.5
    return np.maximum(places, 0) if clip else places


def _linear(size: int, out: int, factor: float | None, align_corners: bool) -> Taps:
    if size == out:
        return [(np.arange(out), np.ones(out))]
    places = _positions(size, out, factor, align_corners, True)
    low = np.minimum(places.astype(np.int64), size - 1)
    high = np.minimum(low + 1, size - 1)
    part = np.minimum(places - low, 1.0)
    return [(low, 1 - part), (high, part)]


def _cubic(size: int, out: int, factor: float | None, align_corners: bool) -> Taps:
    places = _positions(size, out, factor, align_corners, False)
    base = np.floor(places).astype(np.int64)
    taps = []
    for step in range(-1, 3):
        distance = np.abs(places - (base + step))
        taps.append((np.clip(base + step, 0, size - 1), _cubic_weight(distance)))
    return taps


def _cubic_weight(distance: ndarray, a: float = -0.75) -> ndarray:
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))


def _triangle(distance: ndarray) -> ndarray:
    return np.maximum(1 - np.abs(distance), 0)


def _keys(distance: ndarray) -> ndarray:
    """The cubic of windows that grow, which is another one than that of `_cubic`."""
    return _cubic_weight(np.abs(distance), -0.5)


def _lanczos3(distance: ndarray) -> ndarray:
    return np.where(np.abs(distance) < 3, np.sinc(distance) * np.sinc(distance / 3), 0)


def _smooth(window: Callable[[ndarray], ndarray], reach: float) -> Callable[..., Taps]:
    """Taps of a window of `reach` elements to either side, which grows with the image so that nothing aliases."""

    def taps(size: int, out: int, factor: float | None, align_corners: bool) -> Taps:
        if align_corners:
            scale = (size - 1) / (out - 1) if out > 1 else 0.0
        else:
            scale = _scale(size, out, factor)
        grown = max(scale, 1.0)
        support = reach * grown
        centre = scale * (np.arange(out) + 0.5)
        first = np.maximum((centre - support + 0.5).astype(np.int64), 0)
        # At least one element, though a factor that is not the sizes' ratio may put the centre beyond the last one.
        first = np.minimum(first, size - 1)
        count = np.maximum(np.minimum((centre + support + 0.5).astype(np.int64), size) - first, 1)
        steps = np.arange(count.max())[:, None]
        inside = steps < count
        places = np.where(inside, first + steps, first)
        weights = np.where(inside, window((steps + first - centre + 0.5) / grown), 0)
        total = weights.sum(0)
        weights = weights / np.where(total == 0, 1, total)
        return list(zip(places, weights, strict=True))

    return taps


_smooth_linear = _smooth(_triangle, 1)
_smooth_cubic = _smooth(_keys, 2)
_smooth_lanczos = _smooth(_lanczos3, 3)


def _resize(x: ndarray, axis: int, taps: Taps) -> ndarray:
    shape = (-1,) + (1,) * (x.ndim - 1 - axis)
    total = None
    for places, weights in taps:
        term = x.take(places, axis) * weights.astype(x.dtype).reshape(shape)
        total = term if total is None else np.add(total, term, out=total)
    assert total is not None
    return total


def _resize_backward(grad: ndarray, axis: int, size: int, taps: Taps) -> ndarray:
    """The adjoint of `_resize`, as one product with the matrix of weights."""
    matrix = np.zeros((size, grad.shape[axis]), grad.dtype)
    for places, weights in taps:
        np.add.at(matrix, (places, np.arange(len(places))), weights.astype(grad.dtype))
    return np.moveaxis(np.tensordot(matrix, grad, (1, axis)), 0, axis)


def _axes(count: int, ndim: int) -> range:
    return range(ndim - count, ndim)


def _nearest_nd(self: ndarray, output_size: Sequence[int], scales: tuple, rule: Callable[..., ndarray]) -> ndarray:
    for axis, out, factor in zip(_axes(len(scales), self.ndim), output_size, scales, strict=True):
        self = self.take(rule(self.shape[axis], out, factor), axis)
    return self


def _nearest_nd_backward(
    grad: ndarray, output_size: Sequence[int], input_size: Sequence[int], scales: tuple, rule: Callable[..., ndarray]
) -> ndarray:
    for axis, out, factor in zip(_axes(len(scales), grad.ndim), output_size, scales, strict=True):
        size = input_size[axis]
        shape = (*grad.shape[:axis], size, *grad.shape[axis + 1 :])
        places = rule(size, out, factor)
        repeat, rest = divmod(out, size)
        if not rest and np.array_equal(places, np.repeat(np.arange(size), repeat)):
            grad = grad.reshape(*grad.shape[:axis], size, repeat, *grad.shape[axis + 1 :]).sum(axis + 1)
        else:
            result = np.zeros(shape, grad.dtype)
            np.add.at(np.moveaxis(result, axis, 0), places, np.moveaxis(grad, axis, 0))
            grad = result
    return grad


@native.kernel
def upsample_nearest1d(self: ndarray, output_size: Any, scales: float | None = None) -> ndarray:
    return _nearest_nd(self, output_size, (scales,), _nearest)


@native.kernel
def upsample_nearest2d(
    self: ndarray, output_size: Any, scales_h: float | None = None, scales_w: float | None = None
) -> ndarray:
    return _nearest_nd(self, output_size, (scales_h, scales_w), _nearest)


@native.kernel
def upsample_nearest3d(
    self: ndarray,
    output_size: Any,
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> ndarray:
    return _nearest_nd(self, output_size, (scales_d, scales_h, scales_w), _nearest)


@native.kernel
def upsample_nearest_exact1d(self: ndarray, output_size: Any, scales: float | None = None) -> ndarray:
    return _nearest_nd(self, output_size, (scales,), _nearest_exact)


@native.kernel
def upsample_nearest_exact2d(
    self: ndarray, output_size: Any, scales_h: float | None = None, scales_w: float | None = None
) -> ndarray:
    return _nearest_nd(self, output_size, (scales_h, scales_w), _nearest_exact)


@native.kernel
def upsample_nearest_exact3d(
    self: ndarray,
    output_size: Any,
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> ndarray:
    return _nearest_nd(self, output_size, (scales_d, scales_h, scales_w), _nearest_exact)


@native.kernel
def upsample_nearest_exact3d_backward(
    grad_output: ndarray,
    output_size: Any,
    input_size: Any,
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> ndarray:
    return _nearest_nd_backward(grad_output, output_size, input_size, (scales_d, scales_h, scales_w), _nearest_exact)


@native.kernel
def upsample_nearest1d_backward(
    grad_output: ndarray, output_size: Any, input_size: Any, scales: float | None = None
) -> ndarray:
    return _nearest_nd_backward(grad_output, output_size, input_size, (scales,), _nearest)


@native.kernel
def upsample_nearest2d_backward(
    grad_output: ndarray,
    output_size: Any,
    input_size: Any,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> ndarray:
    return _nearest_nd_backward(grad_output, output_size, input_size, (scales_h, scales_w), _nearest)


@native.kernel
def upsample_nearest3d_backward(
    grad_output: ndarray,
    output_size: Any,
    input_size: Any,
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> ndarray:
    return _nearest_nd_backward(grad_output, output_size, input_size, (scales_d, scales_h, scales_w), _nearest)


@native.kernel
def upsample_nearest_exact1d_backward(
    grad_output: ndarray, output_size: Any, input_size: Any, scales: float | None = None
) -> ndarray:
    return _nearest_nd_backward(grad_output, output_size, input_size, (scales,), _nearest_exact)


@native.kernel
def upsample_nearest_exact2d_backward(
    grad_output: ndarray,
    output_size: Any,
    input_size: Any,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> ndarray:
    return _nearest_nd_backward(grad_output, output_size, input_size, (scales_h, scales_w), _nearest_exact)


def _interpolate(
    self: ndarray, output_size: Any, align_corners: bool, scales: tuple, rule: Callable[..., Taps]
) -> ndarray:
    if not math.prod(self.shape):
        return np.empty((*self.shape[: self.ndim - len(scales)], *output_size), self.dtype)
    if self.dtype == np.uint8:
        return _interpolate_smoothly(self, output_size, align_corners, scales, rule)
    if self.dtype == np.float32 and rule is _linear and len(scales) == 2 and self.ndim == 4:
        return _blend(self, output_size, align_corners, scales)
    for axis, out, factor in zip(_axes(len(scales), self.ndim), output_size, scales, strict=True):
        self = _resize(self, axis, rule(self.shape[axis], out, factor, align_corners))
    return self


def _interpolate_smoothly(
    self: ndarray, output_size: Any, align_corners: bool, scales: tuple, rule: Callable[..., Taps]
) -> ndarray:
    """Columns first, as PyTorch does, which tells with bytes. A dimension that keeps its size stays as it is, whatever its scale."""
    if not math.prod(self.shape):
        return np.empty((*self.shape[: self.ndim - len(scales)], *output_size), self.dtype)
    resize = _resize_whole if self.dtype == np.uint8 else _resize
    for axis, out, factor in reversed(list(zip(_axes(len(scales), self.ndim), output_size, scales, strict=True))):
        if out != self.shape[axis]:
            self = resize(self, axis, rule(self.shape[axis], out, factor, align_corners))
    return self


def _resize_whole(x: ndarray, axis: int, taps: Taps) -> ndarray:
    """`_resize` of bytes by integers: the weights are of 16 bits, as PyTorch's are."""
    weights = np.stack([weight for _, weight in taps])
    for at in range(1, len(taps)):  # what stands for several elements beyond an edge has the sum of their weights
        again = taps[at][0] == taps[at - 1][0]
        weights[at] += np.where(again, weights[at - 1], 0)
        weights[at - 1, again] = 0
    bits = 0
    while bits < 22 and int(0.5 + weights.max() * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    scaled = weights * (1 << bits)
    whole = (np.where(scaled < 0, scaled - 0.5, scaled + 0.5)).astype(np.int64)
    shape = (-1,) + (1,) * (x.ndim - 1 - axis)
    total = np.full((*x.shape[:axis], weights.shape[1], *x.shape[axis + 1 :]), 1 << (bits - 1), np.int64)
    for (places, _), weight in zip(taps, whole, strict=True):
        total += x.take(places, axis).astype(np.int64) * weight.reshape(shape)
    return np.clip(total >> bits, 0, 255).astype(np.uint8)


def _fused(a: ndarray, b: ndarray, c: ndarray) -> ndarray:
    """a * b + c, rounded once: a product of single precision is exact in double precision."""
    return (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(np.float32)


def _single(
    size: int, out: int, factor: float | None, align_corners: bool
) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    """For every output along one dimension its two inputs and their weights, in single precision."""
    steps = np.arange(out, dtype=np.float32)
    if size == out:
        return np.arange(out), np.arange(out), np.ones_like(steps), np.zeros_like(steps)
    if align_corners:
        places = steps * np.float32((size - 1) / (out - 1) if out > 1 else 0.0)
    else:
        scale = np.full_like(steps, _scale(size, out, factor))
        places = np.maximum(_fused(scale, steps + np.float32(0.5), np.full_like(steps, -0.5)), 0)
    low = np.minimum(places.astype(np.int64), size - 1)
    part = np.clip(places - low.astype(np.float32), 0, 1)
    return low, np.minimum(low + 1, size - 1), 1 - part, part


def _blend(self: ndarray, output_size: Sequence[int], align_corners: bool, scales: tuple) -> ndarray:
    """Images of single precision with PyTorch's roundings: see Note [Bilinear roundings] in `bilinear_loops.h`."""
    upper, lower, h0, h1 = _single(self.shape[2], output_size[0], scales[0], align_corners)
    low, high, w0, w1 = _single(self.shape[3], output_size[1], scales[1], align_corners)
    rows = self.take(upper, 2), self.take(lower, 2)
    h0, h1 = h0[:, None], h1[:, None]
    a, b, c, d = (row.take(places, 3) for row in rows for places in (low, high))
    channels = self.shape[1]
    innermost = self.transpose(0, 2, 3, 1).flags.c_contiguous
    if channels > 3 and sum(output_size) > 128 and not innermost:
        above, below = _fused(a, w0, b * w1), _fused(c, w0, d * w1)
        return _fused(above, h0, below * h1)
    from_right = _fused(d, h1 * w1, _fused(c, h1 * w0, _fused(a, h0 * w0, b * (h0 * w1))))
    full = channels - channels % 8
    if full:
        from_below = _fused(a, h0 * w0, _fused(b, h0 * w1, _fused(d, h1 * w1, c * (h1 * w0))))
        from_right[:, :full] = from_below[:, :full]
    return from_right


def _interpolate_backward(
    grad: ndarray, output_size: Any, input_size: Any, align_corners: bool, scales: tuple, rule: Callable[..., Taps]
) -> ndarray:
    for axis, out, factor in zip(_axes(len(scales), grad.ndim), output_size, scales, strict=True):
        size = input_size[axis]
        grad = _resize_backward(grad, axis, size, rule(size, out, factor, align_corners))
    return grad


@native.kernel
def upsample_linear1d(self: ndarray, output_size: Any, align_corners: bool, scales: float | None = None) -> ndarray:
    return _interpolate(self, output_size, align_corners, (scales,), _linear)


@native.kernel
def upsample_linear1d_backward(
    grad_output: ndarray, output_size: Any, input_size: Any, align_corners: bool, scales: float | None = None
) -> ndarray:
    return _interpolate_backward(grad_output, output_size, input_size, align_corners, (scales,), _linear)


@native.kernel
def upsample_bilinear2d(
    self: ndarray,
    output_size: Any,
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> ndarray:
    return _interpolate(self, output_size, align_corners, (scales_h, scales_w), _linear)


@native.kernel
def upsample_bilinear2d_backward(
    grad_output: ndarray,
    output_size: Any,
    input_size: Any,
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> ndarray:
    return _interpolate_backward(grad_output, output_size, input_size, align_corners, (scales_h, scales_w), _linear)


@native.kernel
def upsample_bicubic2d(
    self: ndarray,
    output_size: Any,
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> ndarray:
    return _interpolate(self, output_size, align_corners, (scales_h, scales_w), _cubic)


@native.kernel
def upsample_bicubic2d_backward(
    grad_output: ndarray,
    output_size: Any,
    input_size: Any,
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> ndarray:
    return _interpolate_backward(grad_output, output_size, input_size, align_corners, (scales_h, scales_w), _cubic)


@native.kernel
def upsample_trilinear3d(
    self: ndarray,
    output_size: Any,
    align_corners: bool,
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> ndarray:
    return _interpolate(self, output_size, align_corners, (scales_d, scales_h, scales_w), _linear)


@native.kernel
def upsample_trilinear3d_backward(
    grad_output: ndarray,
    output_size: Any,
    input_size: Any,
    align_corners: bool,
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> ndarray:
    scales = (scales_d, scales_h, scales_w)
    return _interpolate_backward(grad_output, output_size, input_size, align_corners, scales, _linear)


@native.kernel
def upsample_bilinear2d_aa(
    self: ndarray,
    output_size: Any,
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> ndarray:
    return _interpolate_smoothly(self, output_size, align_corners, (scales_h, scales_w), _smooth_linear)


@native.kernel
def upsample_bilinear2d_aa_backward(
    grad_output: ndarray,
    output_size: Any,
    input_size: Any,
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> ndarray:
    scales = (scales_h, scales_w)
    return _interpolate_backward(grad_output, output_size, input_size, align_corners, scales, _smooth_linear)


@native.kernel
def upsample_bicubic2d_aa(
    self: ndarray,
    output_size: Any,
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> ndarray:
    return _interpolate_smoothly(self, output_size, align_corners, (scales_h, scales_w), _smooth_cubic)


@native.kernel
def upsample_bicubic2d_aa_backward(
    grad_output: ndarray,
    output_size: Any,
    input_size: Any,
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> ndarray:
    scales = (scales_h, scales_w)
    return _interpolate_backward(grad_output, output_size, input_size, align_corners, scales, _smooth_cubic)


@native.kernel
def upsample_lanczos2d_aa(
    self: ndarray,
    output_size: Any,
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> ndarray:
    return _interpolate_smoothly(self, output_size, align_corners, (scales_h, scales_w), _smooth_lanczos)


@native.kernel
def upsample_lanczos2d_aa_backward(
    grad_output: ndarray,
    output_size: Any,
    input_size: Any,
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> ndarray:
    scales = (scales_h, scales_w)
    return _interpolate_backward(grad_output, output_size, input_size, align_corners, scales, _smooth_lanczos)
