"""Elements in other places: diagonals of larger matrices, pixels and channels, windows that overlap."""

from __future__ import annotations

from typing import Any

from ...._dispatch import ops


def diag_embed(out: Any, self: Any, offset: int, dim1: int, dim2: int) -> Any:
    made = ops.zeros(tuple(out[0].shape), dtype=self.dtype, device=self.device)
    ops.copy_(ops.diagonal(made, offset, dim1, dim2), self)
    return made


def pixel_shuffle(out: Any, self: Any, upscale_factor: int) -> Any:
    *batch, channels, height, width = self.shape
    factor, count = upscale_factor, len(batch)
    parts = ops.reshape(self, (*batch, channels // factor**2, factor, factor, height, width))
    order = [*range(count), count, count + 3, count + 1, count + 4, count + 2]
    return ops.reshape(ops.permute(parts, order), tuple(out[0].shape))


def pixel_unshuffle(out: Any, self: Any, downscale_factor: int) -> Any:
    *batch, channels, height, width = self.shape
    factor, count = downscale_factor, len(batch)
    parts = ops.reshape(self, (*batch, channels, height // factor, factor, width // factor, factor))
    order = [*range(count), count, count + 2, count + 4, count + 1, count + 3]
    return ops.reshape(ops.permute(parts, order), tuple(out[0].shape))


def unfold_backward(out: Any, grad_in: Any, input_sizes: Any, dim: int, size: int, step: int) -> Any:
    """Each element gets the sum of the gradients of all windows that it was in."""
    made = ops.zeros(tuple(input_sizes), dtype=grad_in.dtype, device=grad_in.device)
    if not grad_in.numel():
        return made
    if not made.dim():
        return ops.reshape(grad_in, ())
    dim %= made.dim()
    places = ops.unfold(ops.arange(0, made.shape[dim], device=made.device), 0, size, step)
    windows = ops.movedim(grad_in, -1, dim + 1)
    shape = (*windows.shape[:dim], -1, *windows.shape[dim + 2 :])
    return ops.index_add(made, dim, ops.reshape(places, (-1,)), ops.reshape(windows, shape))
