"""Grids for sampling, and the gradients of sampling."""

from __future__ import annotations

from typing import Any

from ...._dispatch import ops
from ...._generated.npu.functions import aclnnGridSampler2DBackward, aclnnGridSampler3DBackward
from ..aclnn import launch


def _base(like: Any, size: Any, align_corners: bool) -> Any:
    """The coordinates of all points of an image or volume, from -1 to 1, with a 1 behind: [points, dimensions + 1]."""
    sizes = list(size[2:])
    columns = []
    for d in reversed(range(len(sizes))):  # the last dimension's coordinate comes first
        n = sizes[d]
        if align_corners and n == 1:
            line = ops.zeros((1,), dtype=like.dtype, device=like.device)
        else:
            line = ops.linspace(-1, 1, n, dtype=like.dtype, device=like.device)
            line = line if align_corners else ops.mul(line, (n - 1) / n)
        line = ops.reshape(line, [n if k == d else 1 for k in range(len(sizes))])
        columns.append(ops.reshape(ops.expand(line, sizes), (-1,)))
    columns.append(ops.ones_like(columns[0]))
    return ops.stack(columns, 1)


def affine_grid(out: Any, theta: Any, size: Any, align_corners: bool) -> Any:
    points = ops.matmul(_base(theta, size, align_corners), ops.transpose(theta, 1, 2))
    return ops.reshape(points, tuple(out[0].shape))


def affine_grid_backward(out: Any, grad: Any, size: Any, align_corners: bool) -> Any:
    flat = ops.reshape(grad, (grad.shape[0], -1, grad.shape[-1]))
    return ops.matmul(ops.transpose(flat, 1, 2), _base(grad, size, align_corners))


def _backward(function: Any, out: Any, grad: Any, input: Any, grid: Any, *more: Any) -> None:
    mask = more[-1]
    given = (ops.contiguous(t)._payload for t in (grad, input, grid))
    launch(function, *given, *more, out[0] if mask[0] else None, out[1])


def grid_sampler_2d_backward(out: Any, grad_output: Any, input: Any, grid: Any, *more: Any) -> None:
    _backward(aclnnGridSampler2DBackward, out, grad_output, input, grid, *more)


def grid_sampler_3d_backward(out: Any, grad_output: Any, input: Any, grid: Any, *more: Any) -> None:
    _backward(aclnnGridSampler3DBackward, out, grad_output, input, grid, *more)
