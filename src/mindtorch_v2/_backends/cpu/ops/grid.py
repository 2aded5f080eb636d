"""Sampling of images at the places of a grid, and the grids of affine maps.

Along each dimension a place has a few neighbours with a weight each (`_taps`); a sample is the sum over the neighbours in all dimensions of the product
of weights and the element there, and its derivative by the place that with one weight replaced by its slope.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from ...._dispatch import native

BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)

Tap = tuple[ndarray, ndarray, ndarray, ndarray]
"""Of one neighbour along a dimension, [batch, places] each: its place, whether that is inside, its weight, and the slope of the weight."""


def _reflected(place: ndarray, low: float, span: float) -> tuple[ndarray, ndarray]:
    """`place` folded into [low, low + span], and the sign of the slope there."""
    kind = place.dtype.type
    if span <= 0:
        return np.zeros_like(place), np.zeros_like(place)
    away = place - kind(low)
    sign = np.where(away < 0, kind(-1), kind(1))
    away = np.abs(away)
    turns = np.floor(away / kind(span))
    rest = away - turns * kind(span)
    even = np.fmod(turns, 2) == 0
    folded = np.where(even, rest + kind(low), kind(span) - rest + kind(low))
    return folded, np.where(even, sign, -sign)


def _padded(place: ndarray, size: int, padding_mode: int, align_corners: bool, dims: int) -> tuple[ndarray, Any]:
    """Places moved into the image where the padding says so, and the slope of that. NaN goes where PyTorch's comparisons send it."""
    if padding_mode == ZEROS:
        return place, 1
    slope: Any = 1
    if padding_mode == REFLECTION:
        low, span = (0, size - 1) if align_corners else (-0.5, size)
        place, slope = _reflected(place, low, span)
    last = place.dtype.type(size - 1)
    slope = slope * ((place > 0) & (place < last))
    held = np.fmax(place, 0) if dims == 2 else np.maximum(place, 0)
    return np.fmin(held, last), slope


def _cubic(part: ndarray) -> tuple[list[ndarray], list[ndarray]]:
    """The weights of the neighbours at -1, 0, 1 and 2, and their slopes."""
    a = -0.75
    weights, slopes = [], []
    for step in range(-1, 3):
        x = np.abs(part - step)
        sign = -1 if step > 0 else 1
        if step in (0, 1):
            weights.append(((a + 2) * x - (a + 3)) * x * x + 1)
            slopes.append(sign * (3 * (a + 2) * x - 2 * (a + 3)) * x)
        else:
            weights.append(((a * x - 5 * a) * x + 8 * a) * x - 4 * a)
            slopes.append(sign * ((3 * a * x - 10 * a) * x + 8 * a))
    return weights, slopes


def _taps(at: ndarray, size: int, modes: tuple[int, int, bool], dims: int) -> list[Tap]:
    """The neighbours of the coordinates `at` (from -1 to 1) along a dimension of `size` elements."""
    mode, padding, corners = modes
    kind = at.dtype.type
    half = kind((size - 1) / 2 if corners else size / 2)
    place = (at + kind(1)) * half
    if not corners:
        place = place - kind(0.5)
    if mode == BICUBIC:
        base = np.floor(place)
        weights, slopes = _cubic(place - base)
        steps = [_padded(base + kind(step), size, padding, corners, dims)[0] for step in range(-1, 3)]
        return [_tap(step, size, w, s * half) for step, w, s in zip(steps, weights, slopes, strict=True)]
    place, slope = _padded(place, size, padding, corners, dims)
    if dims == 3:  # there PyTorch looks at the numbers one by one, and takes those that are none for far away
        place = np.where(np.abs(place) < 2.0**31, place, kind(-100))
    if mode == NEAREST:
        return [_tap(np.rint(place), size, np.ones_like(place), np.zeros_like(place))]
    low = np.floor(place)
    part = place - low
    slope = np.broadcast_to(slope * half, place.shape).astype(at.dtype, copy=False)
    return [_tap(low, size, 1 - part, -slope), _tap(low + 1, size, part, slope)]


def _tap(place: ndarray, size: int, weight: ndarray, slope: ndarray) -> Tap:
    inside = (place >= 0) & (place <= size - 1)
    return np.where(inside, place, 0).astype(np.int64), inside, weight, slope


class _Samples:
    """The neighbours of all places of a grid, in flat images."""

    def __init__(self, input: ndarray, grid: ndarray, modes: tuple[int, int, bool]):
        self.sizes = input.shape[2:]
        dims = len(self.sizes)
        flat = grid.reshape(grid.shape[0], math.prod(grid.shape[1:-1]), dims)
        # Coordinates go from the last dimension to the first.
        self.lines = [_taps(flat[..., dims - 1 - d], size, modes, dims) for d, size in enumerate(self.sizes)]
        self.images = input.reshape(*input.shape[:2], math.prod(self.sizes))

    def each(self) -> Any:
        """(place in the flat image, whether it is inside, the weights, the slopes) of each combination of neighbours."""
        for taps in itertools.product(*self.lines):
            place: Any = 0
            inside: Any = True
            for size, (at, within, _, _) in zip(self.sizes, taps, strict=True):
                place, inside = place * size + at, inside & within
            yield place, inside, [tap[2] for tap in taps], [tap[3] for tap in taps]

    def elements(self, place: ndarray, inside: ndarray) -> ndarray:
        """The elements at places, [batch, channels, places]; zeros outside."""
        found = np.take_along_axis(self.images, place[:, None, :], 2)
        return np.where(inside[:, None, :], found, self.images.dtype.type(0))


def _product(factors: Sequence[ndarray]) -> ndarray:
    total = factors[0]
    for factor in factors[1:]:
        total = total * factor
    return total


def _sample(input: ndarray, grid: ndarray, modes: tuple[int, int, bool]) -> ndarray:
    samples = _Samples(input, grid, modes)
    total = np.zeros((*input.shape[:2], math.prod(grid.shape[1:-1])), input.dtype)
    for place, inside, weights, _ in samples.each():
        total += samples.elements(place, inside) * _product(weights)[:, None, :]
    return total.reshape(*input.shape[:2], *grid.shape[1:-1])


def _sample_backward(
    grad: ndarray, input: ndarray, grid: ndarray, modes: tuple[int, int, bool], output_mask: Sequence[bool]
) -> tuple[ndarray | None, ndarray]:
    samples = _Samples(input, grid, modes)
    batch, channels, count = samples.images.shape
    grad = grad.reshape(batch, channels, math.prod(grid.shape[1:-1]))
    of_images = np.zeros(samples.images.size, input.dtype) if output_mask[0] else None
    of_places = np.zeros((*grad.shape[::2], len(samples.sizes)), input.dtype)
    first = (np.arange(batch * channels) * count).reshape(batch, channels, 1)
    for place, inside, weights, slopes in samples.each():
        if of_images is not None:
            shares = grad * _product(weights)[:, None, :]
            within = np.broadcast_to(inside[:, None, :], shares.shape)
            np.add.at(of_images, (first + place[:, None, :])[within], shares[within])
        if modes[0] != NEAREST:
            along = (grad * samples.elements(place, inside)).sum(1)
            for d in range(len(weights)):
                steep = _product([*weights[:d], slopes[d], *weights[d + 1 :]])
                of_places[..., len(weights) - 1 - d] += along * steep
    of_input = None if of_images is None else of_images.reshape(input.shape)
    return of_input, of_places.reshape(grid.shape)


@native.kernel
def grid_sampler_2d(
    input: ndarray, grid: ndarray, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> ndarray:
    return _sample(input, grid, (interpolation_mode, padding_mode, align_corners))


@native.kernel
def grid_sampler_3d(
    input: ndarray, grid: ndarray, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> ndarray:
    return _sample(input, grid, (interpolation_mode, padding_mode, align_corners))


@native.kernel
def grid_sampler_2d_backward(
    grad_output: ndarray,
    input: ndarray,
    grid: ndarray,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    output_mask: Sequence[bool],
) -> tuple[ndarray | None, ndarray]:
    modes = interpolation_mode, padding_mode, align_corners
    return _sample_backward(grad_output, input, grid, modes, output_mask)


@native.kernel
def grid_sampler_3d_backward(
    grad_output: ndarray,
    input: ndarray,
    grid: ndarray,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    output_mask: Sequence[bool],
) -> tuple[ndarray | None, ndarray]:
    modes = interpolation_mode, padding_mode, align_corners
    return _sample_backward(grad_output, input, grid, modes, output_mask)


def _line(size: int, align_corners: bool, dtype: Any) -> ndarray:
    """The coordinates of the elements of one dimension: from -1 to 1 the outer ones, or the outer edges."""
    if size <= 1:
        return np.zeros(size, dtype)
    line = np.linspace(-1, 1, size)
    if not align_corners:
        line = line * ((size - 1) / size)
    return line.astype(dtype)


def _base_grid(size: Sequence[int], align_corners: bool, dtype: Any) -> ndarray:
    """The grid of the identity with a last coordinate of 1: [places, ndim + 1]."""
    sizes = [int(n) for n in size[2:]]
    base = np.ones((*sizes, len(sizes) + 1), dtype)
    for d, n in enumerate(sizes):
        base[..., len(sizes) - 1 - d] = _line(n, align_corners, dtype).reshape((-1,) + (1,) * (len(sizes) - 1 - d))
    return base.reshape(-1, len(sizes) + 1)


def affine_grid_generator(theta: ndarray, size: Sequence[int], align_corners: bool) -> ndarray:
    base = _base_grid(size, align_corners, theta.dtype)
    return np.matmul(base, theta.swapaxes(1, 2)).reshape(theta.shape[0], *map(int, size[2:]), len(size) - 2)


def affine_grid_generator_backward(grad: ndarray, size: Sequence[int], align_corners: bool) -> ndarray:
    base = _base_grid(size, align_corners, grad.dtype)
    flat = grad.reshape(grad.shape[0], len(base), len(size) - 2)
    return np.matmul(flat.swapaxes(1, 2), base)
