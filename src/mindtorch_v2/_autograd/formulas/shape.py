"""Derivatives of joining, repeating and rearranging."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._dispatch import ops
from ..._tensor import Tensor


def cat_gradient(grad: Tensor, shapes: Sequence[Any], dim: int) -> list[Tensor]:
    """The parts of `grad` that belong to each tensor; 1-D tensors without elements get an empty one."""
    parts = []
    start = 0
    for shape in shapes:
        if shape == (0,):
            parts.append(ops.new_zeros(grad, [0]))
            continue
        size = shape[dim]
        parts.append(ops.narrow(grad, dim, start, size))
        start += size
    return parts


def stack_gradient(grad: Tensor, dim: int) -> list[Tensor]:
    """The slices of `grad` along the new dimension."""
    return list(ops.unbind(grad, dim))


def repeat_gradient(grad: Tensor, shape: Sequence[int], repeats: Sequence[int]) -> Tensor:
    """The sum over the repetitions."""
    if 0 in tuple(repeats):
        return ops.new_zeros(grad, shape)
    lead = len(repeats) - len(shape)
    sizes: list[int] = []
    summed: list[int] = []
    for place, times in enumerate(repeats):
        if times != 1 or place < lead:
            summed.append(len(sizes))
            sizes.append(times)
        if place >= lead:
            sizes.append(shape[place - lead])
    if not summed:
        return grad
    return ops.sum(ops.reshape(grad, sizes), summed)


def roll_gradient(grad: Tensor, shifts: Any, dims: Any) -> Tensor:
    """`grad` rolled back."""
    moves = [shifts] if isinstance(shifts, int) else shifts
    return ops.roll(grad, [-move for move in moves], dims)


def trace_gradient(grad: Tensor, shape: Sequence[int]) -> Tensor:
    """`grad` on the diagonal of a matrix of zeros."""
    return ops.diagonal_backward(ops.expand(grad, [min(shape)]), shape, 0, 0, 1)


__all__ = ["cat_gradient", "repeat_gradient", "roll_gradient", "stack_gradient", "trace_gradient"]
