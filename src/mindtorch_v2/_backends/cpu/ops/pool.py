"""Pooling: a reduction over the places of a kernel, one strided slice a place."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from ...._dispatch import native
from .conv import Sizes, per_dim
from .view import FEW


def _pooled_size(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (span + (stride - 1 if ceil_mode else 0)) // stride + 1
    # With ceil_mode the last window must start inside the input or its left padding.
    return count - 1 if ceil_mode and (count - 1) * stride >= size + padding else count


class _Geometry:
    """Sizes of one pooling, and the slices of the padded input that meet at each place of the kernel."""

    def __init__(
        self, spatial: Sequence[int], kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, dims: int
    ):
        self.spatial = tuple(spatial)
        self.kernel = per_dim(kernel, dims)
        self.stride = (
            self.kernel
            if stride is None or (not isinstance(stride, int) and not len(stride))
            else per_dim(stride, dims)
        )
        self.padding = per_dim(padding, dims)
        self.dilation = per_dim(dilation, dims)
        self.out: Sizes = tuple(
            _pooled_size(n, k, s, p, d, ceil_mode)
            for n, k, s, p, d in zip(self.spatial, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        )
        # A window may be far larger than the input: its places behind the input's end have nothing in them.
        self.reach: Sizes = tuple(
            min(k, max(n + p - 1, 0) // d + 1)
            for n, k, p, d in zip(self.spatial, self.kernel, self.padding, self.dilation, strict=True)
        )
        self.padded = tuple(
            max(n + p, (o - 1) * s + d * (r - 1) + 1)
            for n, p, o, s, d, r in zip(
                self.spatial, self.padding, self.out, self.stride, self.dilation, self.reach, strict=True
            )
        )

    def inner(self) -> tuple[slice, ...]:
        return tuple([slice(p, p + n) for p, n in zip(self.padding, self.spatial, strict=True)])

    def pad(self, x: ndarray, value: Any) -> ndarray:
        if self.padded == self.spatial:
            return x
        result = np.full((*x.shape[: x.ndim - len(self.spatial)], *self.padded), value, x.dtype)
        result[(..., *self.inner())] = x
        return result

    def places(self) -> Iterator[tuple[Sizes, tuple]]:
        """(place in the kernel in input steps, index of the padded input's elements at this place)."""
        for place in itertools.product(*[range(r) for r in self.reach]):
            shift = tuple(p * d for p, d in zip(place, self.dilation, strict=True))
            index = [slice(f, f + (o - 1) * s + 1, s) for f, o, s in zip(shift, self.out, self.stride, strict=True)]
            yield shift, (..., *index)


def _flat_index(geometry: _Geometry, shift: Sizes) -> ndarray:
    """Element numbers in the unpadded input of what each window has at `shift`."""
    total: Any = 0
    for axis, (f, o, s, p, n) in enumerate(
        zip(shift, geometry.out, geometry.stride, geometry.padding, geometry.spatial, strict=True)
    ):
        line = (np.arange(o) * s + (f - p)).reshape((-1,) + (1,) * (len(geometry.out) - 1 - axis))
        total = total * n + line
    return total


@functools.lru_cache(64)
def _windows(*sizes: Any) -> tuple[_Geometry, ndarray, ndarray]:
    """Of the windows of a small pooling: its geometry, and the elements in the padded and in the unpadded input, (window, place)."""
    geometry = _Geometry(*sizes)
    padded = np.arange(math.prod(geometry.padded)).reshape(geometry.padded)
    inside = np.full(geometry.padded, -1)
    inside[geometry.inner()] = np.arange(math.prod(geometry.spatial)).reshape(geometry.spatial)
    places = [index[1:] for _, index in geometry.places()]
    return geometry, *[np.stack([numbers[at].reshape(-1) for at in places], 1) for numbers in (padded, inside)]


def _few_max_pool(x: ndarray, lowest: Any, *sizes: Any) -> tuple[ndarray, ndarray] | None:
    """`_max_pool` of few elements, all windows at once; None where NaN or the lowest value is the largest of a window."""
    geometry, padded, inside = _windows(*sizes)
    flat = geometry.pad(x, lowest).reshape(-1, math.prod(geometry.padded))
    found = flat.take(padded, 1)
    best = found.argmax(2)
    numbers = np.arange(len(padded))
    shape = (*x.shape[: x.ndim - len(geometry.out)], *geometry.out)
    values = np.ascontiguousarray(found[np.arange(len(found))[:, None], numbers, best]).reshape(shape)
    if not (values > lowest).all():
        return None
    return values, np.ascontiguousarray(inside[numbers, best]).reshape(shape)


def _max_pool(x: ndarray, geometry: _Geometry, lowest: Any) -> tuple[ndarray, ndarray]:
    padded = geometry.pad(x, lowest)
    best = index = None
    for shift, places in geometry.places():
        value = padded[places]
        where = _flat_index(geometry, shift)
        inside = _inside(geometry, shift)
        if best is None or index is None:
            best = np.full(value.shape, lowest, x.dtype)
            index = np.full(value.shape, -1, np.int64)
        better = (value > best) | np.isnan(value) | (index < 0)
        better &= inside
        np.copyto(best, value, where=better)
        np.copyto(index, where, where=better)
    assert best is not None and index is not None
    return best, index


def _inside(geometry: _Geometry, shift: Sizes) -> ndarray:
    """Whether each window's element at `shift` is an element of the input, not padding."""
    dims = len(geometry.out)
    result: Any = True
    for axis, (f, o, s, p, n) in enumerate(
        zip(shift, geometry.out, geometry.stride, geometry.padding, geometry.spatial, strict=True)
    ):
        line = np.arange(o) * s + (f - p)
        result = result & ((line >= 0) & (line < n)).reshape((-1,) + (1,) * (dims - 1 - axis))
    return result


def _max_pool_nd(self: ndarray, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, dims: int):
    lowest = -np.inf if self.dtype.kind == "f" else np.iinfo(self.dtype).min
    if 0 < self.size <= FEW:
        each = [tuple(size) if isinstance(size, Sequence) else size for size in (kernel, stride, padding, dilation)]
        found = _few_max_pool(self, lowest, self.shape[-dims:], *each, ceil_mode, dims)
        if found is not None:
            return found
    return _max_pool(self, _Geometry(self.shape[-dims:], kernel, stride, padding, dilation, ceil_mode, dims), lowest)


@native.kernel
def max_pool2d_with_indices(
    self: ndarray, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> tuple[ndarray, ndarray]:
    return _max_pool_nd(self, kernel_size, stride, padding, dilation, ceil_mode, 2)


@native.kernel
def max_pool1d_with_indices(
    self: ndarray, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> tuple[ndarray, ndarray]:
    return _max_pool_nd(self, kernel_size, stride, padding, dilation, ceil_mode, 1)


@native.kernel
def max_pool3d_with_indices(
    self: ndarray, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> tuple[ndarray, ndarray]:
    return _max_pool_nd(self, kernel_size, stride, padding, dilation, ceil_mode, 3)


def _scatter_windows(grad: ndarray, shape: tuple[int, ...], indices: ndarray, dims: int) -> ndarray:
    """Add each window's gradient to the element that it came from."""
    if not grad.size:
        return np.zeros(shape, grad.dtype)
    cells = math.prod(shape[-dims:])
    planes = math.prod(shape[:-dims])
    result = np.zeros(planes * cells, grad.dtype)
    places = indices.reshape(planes, -1) + (np.arange(planes) * cells)[:, None]
    np.add.at(result, places.reshape(-1), np.ascontiguousarray(grad).reshape(-1))
    return result.reshape(shape)


@native.kernel
def max_pool2d_with_indices_backward(
    grad_output: ndarray,
    self: ndarray,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: ndarray,
) -> ndarray:
    return _scatter_windows(grad_output, self.shape, indices, 2)


@native.kernel
def max_pool3d_with_indices_backward(
    grad_output: ndarray,
    self: ndarray,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: ndarray,
) -> ndarray:
    return _scatter_windows(grad_output, self.shape, indices, 3)


# --------------------------------------------------------------------------------------------------------------------- average


def _divisors(geometry: _Geometry, count_include_pad: bool, divisor_override: int | None) -> Any:
    """How many elements each window counts."""
    if divisor_override is not None:
        return divisor_override
    dims = len(geometry.out)
    total: Any = 1
    for axis, (o, s, p, n, k) in enumerate(
        zip(geometry.out, geometry.stride, geometry.padding, geometry.spatial, geometry.kernel, strict=True)
    ):
        start = np.arange(o) * s - p
        end = np.minimum(start + k, n + p)
        if not count_include_pad:
            start, end = np.maximum(start, 0), np.minimum(end, n)
        total = total * (end - start).reshape((-1,) + (1,) * (dims - 1 - axis))
    return total


def _avg_pool(x: ndarray, geometry: _Geometry, count_include_pad: bool, divisor_override: int | None) -> ndarray:
    padded = geometry.pad(x, 0)
    result = np.zeros((*x.shape[: x.ndim - len(geometry.out)], *geometry.out), x.dtype)
    for _, places in geometry.places():
        result += padded[places]
    divisors = _divisors(geometry, count_include_pad, divisor_override)
    return np.divide(result, divisors).astype(x.dtype, copy=False)


def _avg_pool_backward(
    grad: ndarray, shape: tuple[int, ...], geometry: _Geometry, count_include_pad: bool, divisor_override: int | None
) -> ndarray:
    share = np.divide(grad, _divisors(geometry, count_include_pad, divisor_override)).astype(grad.dtype, copy=False)
    result = np.zeros((*shape[: len(shape) - len(geometry.out)], *geometry.padded), grad.dtype)
    for _, places in geometry.places():
        result[places] += share
    return result[(..., *geometry.inner())]


@native.kernel
def avg_pool2d(
    self: ndarray,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> ndarray:
    geometry = _Geometry(self.shape[-2:], kernel_size, stride, padding, 1, ceil_mode, 2)
    return _avg_pool(self, geometry, count_include_pad, divisor_override)


@native.kernel
def avg_pool3d(
    self: ndarray,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> ndarray:
    geometry = _Geometry(self.shape[-3:], kernel_size, stride, padding, 1, ceil_mode, 3)
    return _avg_pool(self, geometry, count_include_pad, divisor_override)


@native.kernel
def avg_pool2d_backward(
    grad_output: ndarray,
    self: ndarray,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> ndarray:
    geometry = _Geometry(self.shape[-2:], kernel_size, stride, padding, 1, ceil_mode, 2)
    return _avg_pool_backward(grad_output, self.shape, geometry, count_include_pad, divisor_override)


@native.kernel
def avg_pool3d_backward(
    grad_output: ndarray,
    self: ndarray,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> ndarray:
    geometry = _Geometry(self.shape[-3:], kernel_size, stride, padding, 1, ceil_mode, 3)
    return _avg_pool_backward(grad_output, self.shape, geometry, count_include_pad, divisor_override)


# -------------------------------------------------------------------------------------------------------------------- adaptive


def _cells(size: int, out: int) -> list[slice]:
    """The inputs of each output along one dimension: from floor(i n / out) to ceil((i + 1) n / out)."""
    return [slice(i * size // out, -((-(i + 1) * size) // out)) for i in range(out)]


def _adaptive_avg(x: ndarray, output_size: Any, dims: int) -> ndarray:
    if not math.prod(x.shape[:-dims]):  # however many cells there would be
        return np.empty((*x.shape[:-dims], *per_dim(output_size, dims)), x.dtype)
    for axis, out in zip(range(x.ndim - dims, x.ndim), per_dim(output_size, dims), strict=True):
        front = (slice(None),) * axis
        parts = [x[(*front, cell)].mean(axis, keepdims=True) for cell in _cells(x.shape[axis], out)]
        x = np.concatenate(parts, axis) if parts else x[(*front, slice(0))]
    return x


def _adaptive_avg_backward(grad: ndarray, shape: tuple[int, ...], dims: int) -> ndarray:
    if not grad.size:
        return np.zeros(shape, grad.dtype)
    for axis in range(len(shape) - dims, len(shape)):
        front = (slice(None),) * axis
        result = np.zeros((*grad.shape[:axis], shape[axis], *grad.shape[axis + 1 :]), grad.dtype)
        for place, cell in enumerate(_cells(shape[axis], grad.shape[axis])):
            result[(*front, cell)] += grad[(*front, slice(place, place + 1))] / (cell.stop - cell.start)
        grad = result
    return grad


@native.kernel
def adaptive_avg_pool2d(self: ndarray, output_size: Any) -> ndarray:
    return _adaptive_avg(self, output_size, 2)


@native.kernel
def adaptive_avg_pool2d_backward(grad_output: ndarray, self: ndarray) -> ndarray:
    return _adaptive_avg_backward(grad_output, self.shape, 2)


@native.kernel
def adaptive_avg_pool3d(self: ndarray, output_size: Any) -> ndarray:
    return _adaptive_avg(self, output_size, 3)


@native.kernel
def adaptive_avg_pool3d_backward(grad_output: ndarray, self: ndarray) -> ndarray:
    return _adaptive_avg_backward(grad_output, self.shape, 3)


def _adaptive_max(x: ndarray, output_size: Any, dims: int) -> tuple[ndarray, ndarray]:
    out = per_dim(output_size, dims)
    spatial = x.shape[-dims:]
    values = np.empty((*x.shape[:-dims], *out), x.dtype)
    indices = np.empty(values.shape, np.int64)
    if not values.size:  # however many cells there would be
        return values, indices
    numbers = np.arange(math.prod(spatial)).reshape(spatial)
    cells = [_cells(n, o) for n, o in zip(spatial, out, strict=True)]
    for place in itertools.product(*[range(o) for o in out]):
        window = (..., *[cells[axis][at] for axis, at in enumerate(place)])
        part = x[window]
        flat = part.reshape(*x.shape[:-dims], math.prod(part.shape[-dims:]))
        best = flat.argmax(-1)
        values[(..., *place)] = np.take_along_axis(flat, best[..., None], -1)[..., 0]
        indices[(..., *place)] = numbers[window].reshape(-1)[best]
    return values, indices


@native.kernel
def adaptive_max_pool2d(self: ndarray, output_size: Any) -> tuple[ndarray, ndarray]:
    return _adaptive_max(self, output_size, 2)


@native.kernel
def adaptive_max_pool3d(self: ndarray, output_size: Any) -> tuple[ndarray, ndarray]:
    return _adaptive_max(self, output_size, 3)


@native.kernel
def adaptive_max_pool2d_backward(grad_output: ndarray, self: ndarray, indices: ndarray) -> ndarray:
    return _scatter_windows(grad_output, self.shape, indices, 2)


@native.kernel
def adaptive_max_pool3d_backward(grad_output: ndarray, self: ndarray, indices: ndarray) -> ndarray:
    return _scatter_windows(grad_output, self.shape, indices, 3)


def _max_unpool(self: ndarray, indices: ndarray, output_size: Sequence[int]) -> ndarray:
    """The maxima at the places that they came from. RuntimeError for a place outside."""
    dims = len(output_size)
    cells = math.prod(output_size)
    planes = math.prod(self.shape[:-dims])
    outside = (indices < 0) | (indices >= cells)
    if outside.any():
        raise RuntimeError(
            f"Found an invalid max index: {indices[outside][0]} (output volumes are of size "
            f"{'x'.join(map(str, map(int, output_size)))})"
        )
    result = np.zeros((planes, cells), self.dtype)
    if self.size:
        np.put_along_axis(result, indices.reshape(planes, -1), self.reshape(planes, -1), 1)
    return result.reshape(*self.shape[:-dims], *map(int, output_size))


def max_unpool2d(self: ndarray, indices: ndarray, output_size: Sequence[int]) -> ndarray:
    return _max_unpool(self, indices, output_size)


def max_unpool3d(self: ndarray, indices: ndarray, output_size: Sequence[int], stride: Any, padding: Any) -> ndarray:
    return _max_unpool(self, indices, output_size)


def fractional_max_pool(
    self: ndarray, kernel_size: Sequence[int], output_size: Sequence[int], random_samples: ndarray
) -> tuple[ndarray, ndarray]:
    """(maxima, places in the flat image); the samples say, for each image and dimension, where the windows begin."""
    ndim = len(output_size)
    lead, spatial = self.shape[:-ndim], self.shape[-ndim:]
    images = self.reshape(math.prod(lead), *spatial)
    samples = random_samples[: lead[0]] if len(lead) == 2 else random_samples[:1]
    samples = samples.reshape(-1, ndim)
    if ndim == 2:  # PyTorch's samples are (width, height), but (time, height, width)
        samples = samples[:, ::-1]
    places = np.zeros((len(images), *output_size, *kernel_size), np.int64)
    for dim, (size, count, window) in enumerate(zip(spatial, output_size, kernel_size, strict=True)):
        starts = _starts(samples[:, dim], size, count, window)
        at = starts[:, :, None] + np.arange(window)
        shape = [len(images)] + [1] * (2 * ndim)
        shape[1 + dim], shape[1 + ndim + dim] = count, window
        places = places * size + at.reshape(shape)
    flat = images.reshape(len(images), math.prod(spatial))
    places = places.reshape(len(images), math.prod(output_size), math.prod(kernel_size))
    values = np.take_along_axis(flat[:, None, :], places, -1)
    chosen = values.argmax(-1)[..., None]
    shape = (*lead, *output_size)
    found = np.take_along_axis(values, chosen, -1), np.take_along_axis(places, chosen, -1)
    return found[0].reshape(shape), found[1].reshape(shape)


def _starts(samples: ndarray, size: int, count: int, window: int) -> ndarray:
    """Where the windows begin along one dimension, (image, window); the last ends with the image."""
    starts = np.full((len(samples), count), size - window, np.int64)
    if count > 1:
        kind = samples.dtype if samples.dtype.kind == "f" and samples.dtype.itemsize > 2 else np.dtype(np.float32)
        sample = samples.astype(kind)[:, None]
        step = kind.type((size - window) / (count - 1))
        begin = np.arange(count - 1, dtype=kind)
        starts[:, :-1] = ((begin + sample) * step).astype(np.int64) - (sample * step).astype(np.int64)
    return starts
