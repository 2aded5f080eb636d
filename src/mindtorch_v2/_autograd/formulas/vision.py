"""Derivatives of sampling at the places of a grid, of second order; those of first order are kernels.

Note [Derivatives of a sample]
A sample is the sum over neighbours k of w_k(grid) v_k(input), w_k a product of one weight for each dimension. The backward operator gives the input
sum_k w_k g at the places of the neighbours, and the grid's coordinate d the sum over channels and neighbours of g v_k dw_k/dx_d. Against gradients u (of
the first, read as an image) and h (of the second), their sum is sum_k g (u_k w_k + v_k D_k), where D_k = sum_d h_d dw_k/dx_d: what is differentiated here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from ... import _dtype as _d
from ..._dispatch import ops
from ..._tensor import Tensor

Maybe = Tensor | None
_NEAREST, _BICUBIC = 1, 2
_ZEROS, _REFLECTION = 0, 2


def _padded(place: Tensor, size: int, padding_mode: int, align_corners: bool) -> tuple[Tensor, Any]:
    """Places moved into the image where the padding says so, and the slope of that."""
    if padding_mode == _ZEROS:
        return place, 1
    slope: Any = 1
    if padding_mode == _REFLECTION:
        low, span = (0, size - 1) if align_corners else (-0.5, size)
        if span <= 0:
            return ops.zeros_like(place), ops.zeros_like(place)
        away = ops.abs(place - low)
        turns = ops.floor(away / span)
        even = ops.remainder(turns, 2) == 0
        rest = away - turns * span
        slope = ops.where(even, 1, -1) * ops.where(place < low, -1, 1)
        place = ops.where(even, rest + low, span - rest + low)
    slope = slope * ops.logical_and(place > 0, place < size - 1)
    return ops.clamp(place, 0, size - 1), slope


def _cubic(x: Tensor, near: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The weight of a neighbour at the distance x, and its first two derivatives by that."""
    a = -0.75
    if near:
        weight = ((a + 2) * x - (a + 3)) * x * x + 1
        return weight, (3 * (a + 2) * x - 2 * (a + 3)) * x, 6 * (a + 2) * x - 2 * (a + 3)
    weight = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return weight, (3 * a * x - 10 * a) * x + 8 * a, 6 * a * x - 10 * a


class _Line:
    """The neighbours along one dimension: place, whether that is inside, and the weight with its first two derivatives by the coordinate."""

    def __init__(self, at: Tensor, size: int, mode: int, padding: int, corners: bool):
        half = (size - 1) / 2 if corners else size / 2
        place = (at + 1) * half if corners else (at + 1) * half - 0.5
        self.size = size
        self.taps: list[tuple[Tensor, Tensor, tuple[Any, Any, Any]]] = []
        if mode == _BICUBIC:
            base = ops.floor(place)
            part = place - base
            for step in range(-1, 3):
                toward = -1 if step > 0 else 1
                weight, first, second = _cubic((part - step) * toward, step in (0, 1))
                weights = weight, first * (toward * half), second * (half * half)
                self._add(_padded(base + step, size, padding, corners)[0], weights)
            return
        place, slope = _padded(place, size, padding, corners)
        if mode == _NEAREST:
            self._add(ops.round(place), (ops.ones_like(place), 0, 0))
            return
        low = ops.floor(place)
        part = place - low
        slope = slope * half + ops.zeros_like(place)
        self._add(low, (1 - part, -slope, 0))
        self._add(low + 1, (part, slope, 0))

    def _add(self, place: Tensor, weights: tuple[Any, Any, Any]) -> None:
        inside = ops.logical_and(place >= 0, place <= self.size - 1)
        self.taps.append((ops.to(ops.where(inside, place, 0), _d.int64), inside, weights))


def _neighbours(grid: Tensor, sizes: Sequence[int], mode: int, padding: int, corners: bool) -> Iterator[tuple]:
    """(place in the flat image, whether it is inside, the derivatives of the weight by dimension) of each combination of neighbours."""
    dims = len(sizes)
    flat = ops.reshape(grid, [grid.shape[0], -1, dims])
    lines = [_Line(ops.select(flat, 2, dims - 1 - d), size, mode, padding, corners) for d, size in enumerate(sizes)]
    for taps in itertools.product(*[line.taps for line in lines]):
        place, inside = taps[0][0], taps[0][1]
        for size, (at, within, _) in zip(sizes[1:], taps[1:], strict=True):
            place, inside = place * size + at, ops.logical_and(inside, within)
        yield place, inside, [tap[2] for tap in taps]


def _derivative(weights: Sequence[tuple], orders: Sequence[int]) -> Any:
    """The derivative of the product of weights, of an order in each dimension; 0 where that is zero everywhere."""
    total: Any = 1
    for weight, order in zip(weights, orders, strict=True):
        if isinstance(weight[order], int):
            return 0
        total = total * weight[order]
    return total


def grid_sampler_second(
    grads: Sequence[Maybe],
    grad_output: Tensor,
    input: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    needs: Sequence[bool],
) -> tuple[Maybe, Maybe, Maybe]:
    """Gradients of the backward operator by grad_output, input and grid; see Note [Derivatives of a sample]."""
    of_input, of_grid = grads
    sizes = list(input.shape[2:])
    dims = len(sizes)
    batch, channels = input.shape[:2]
    lead = [batch, channels, -1]
    grad = ops.reshape(grad_output, lead)
    images = ops.reshape(input, lead)
    upper = None if of_input is None else ops.reshape(of_input, lead)
    along = None if of_grid is None else ops.reshape(of_grid, [batch, -1, dims])
    steps = None if along is None else [ops.select(along, 2, dims - 1 - d) for d in range(dims)]
    units = [[int(d == e) for e in range(dims)] for d in range(dims)]
    to_grad: Any = ops.zeros_like(grad)
    to_images = ops.zeros_like(images)
    to_grid: list[Any] = [0] * dims
    for place, inside, weights in _neighbours(grid, sizes, interpolation_mode, padding_mode, align_corners):
        index = ops.expand(ops.unsqueeze(place, 1), list(grad.shape))
        mask = ops.unsqueeze(inside, 1)
        value = ops.where(mask, ops.gather(images, 2, index), 0)
        raised = None if upper is None else ops.where(mask, ops.gather(upper, 2, index), 0)
        first = [_derivative(weights, unit) for unit in units]
        if raised is not None:
            to_grad = to_grad + raised * ops.unsqueeze(_derivative(weights, [0] * dims), 1)
            shared = ops.sum(raised * grad, [1])
            to_grid = [total + shared * slope for total, slope in zip(to_grid, first, strict=True)]
        if steps is None:
            continue
        directed: Any = sum(
            step * slope for step, slope in zip(steps, first, strict=True) if not isinstance(slope, int)
        )
        if not isinstance(directed, int):
            wide = ops.unsqueeze(directed, 1)
            to_grad = to_grad + value * wide
            if needs[1]:
                to_images = ops.scatter_add(to_images, 2, index, ops.where(mask, grad * wide, 0))
        shared = ops.sum(value * grad, [1])
        for d, e in itertools.product(range(dims), repeat=2):
            curve = _derivative(weights, [a + b for a, b in zip(units[d], units[e], strict=True)])
            if not isinstance(curve, int):
                to_grid[d] = to_grid[d] + shared * steps[e] * curve
    missing = ops.zeros_like(ops.select(ops.reshape(grid, [batch, math.prod(grid.shape[1:-1]), dims]), 2, 0))
    columns = [missing if isinstance(total, int) else total for total in reversed(to_grid)]
    return (
        ops.reshape(to_grad, grad_output.shape),
        ops.reshape(to_images, input.shape),
        ops.reshape(ops.stack(columns, -1), grid.shape),
    )


__all__ = ["grid_sampler_second"]
