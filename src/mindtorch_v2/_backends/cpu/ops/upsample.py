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
        return _interpolate_bytes(self, output_size, align_corners, scales, rule)
    for axis, out, factor in zip(_axes(len(scales), self.ndim), output_size, scales, strict=True):
        self = _resize(self, axis, rule(self.shape[axis], out, factor, align_corners))
    return self


def _interpolate_bytes(
    self: ndarray, output_size: Any, align_corners: bool, scales: tuple, rule: Callable[..., Taps]
) -> ndarray:
    """Rows first, then columns, rounded each time, as PyTorch does."""
    for axis, out, factor in reversed(list(zip(_axes(len(scales), self.ndim), output_size, scales, strict=True))):
        taps = rule(self.shape[axis], out, factor, align_corners)
        resized = _resize(self.astype(np.float32), axis, taps)
        self = np.clip(np.floor(resized + np.float32(0.5)), 0, 255).astype(np.uint8)
    return self


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
