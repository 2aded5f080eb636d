"""Derivatives of reading and writing at positions: what one reads the other writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._dispatch import ops
from ..._tensor import Tensor

Gradients = tuple["Tensor | None", "Tensor | None"]


def zeros_of_shape(like: Tensor, shape: Sequence[int]) -> Tensor:
    """Zeros of a shape with the dtype and on the device of `like`."""
    return ops.new_zeros(like, shape)


def index_gradient(grad: Tensor, shape: Sequence[int], indices: Sequence[Tensor | None]) -> Tensor:
    """`grad` added up at the indices of zeros."""
    return ops.index_put(zeros_of_shape(grad, shape), list(indices), grad, True)


def index_put_self(grad: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """`grad` with zeros where values were written."""
    return ops.index_put(grad, list(indices), zeros_of_shape(grad, []), False)


def index_select_gradient(grad: Tensor, shape: Sequence[int], dim: int, index: Tensor) -> Tensor:
    """`grad` added up at the selected slices of zeros."""
    if not len(shape):
        return ops.sum(grad)
    return ops.index_add(zeros_of_shape(grad, shape), dim, index, grad)


def index_add_source(grad: Tensor, shape: Sequence[int], dim: int, index: Tensor, alpha: Any) -> Tensor:
    """The gradient of what was added or copied to slices."""
    chosen = ops.index_select(grad, dim, index)
    if tuple(chosen.shape) != tuple(shape):
        chosen = ops.reshape(chosen, shape) if len(shape) == 0 else ops.expand(chosen, shape)
    return chosen if alpha == 1 else chosen * alpha


def gather_gradient(grad: Tensor, shape: Sequence[int], dim: int, index: Tensor) -> Tensor:
    """`grad` added up at the elements that were read."""
    return ops.scatter_add(zeros_of_shape(grad, shape), dim, index, grad)


def scatter_src_gradient(grad: Tensor, shape: Sequence[int], dim: int, index: Tensor) -> Tensor:
    """What `grad` has where the source was written; zeros where the source was not used."""
    chosen = ops.gather(grad, dim, index)
    if tuple(chosen.shape) == tuple(shape):
        return chosen
    pad: list[int] = []
    for whole, part in reversed(list(zip(shape, chosen.shape, strict=True))):
        pad += [0, whole - part]
    return ops.constant_pad_nd(chosen, pad, 0)


def scatter_reduce_gradient(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool, result: Tensor
) -> Gradients:
    """Gradients of what stood there and of what was reduced into it."""
    if not src.numel():
        return grad, ops.zeros_like(src)
    read = ops.gather
    if reduce == "sum":
        grad_self, grad_src = grad, read(grad, dim, index)
    elif reduce == "mean":
        count = ops.ones_like(grad) if include_self else ops.zeros_like(grad)
        count = ops.scatter_add(count, dim, index, ops.ones_like(src))
        share = grad / ops.clamp_min(count, 1)
        grad_self, grad_src = share, read(share, dim, index)
    elif reduce in ("amax", "amin"):
        hit = ops.eq(src, read(result, dim, index)).to(grad.dtype)
        own = ops.eq(self, result).to(grad.dtype)
        count = own if include_self else ops.zeros_like(own)
        count = ops.scatter_add(count, dim, index, hit)
        share = grad / ops.clamp_min(count, 1)
        grad_self, grad_src = own * share, hit * read(share, dim, index)
    elif reduce == "prod":
        filled = self if include_self else ops.scatter(self, dim, index, 1)
        zero = ops.eq(filled, 0)
        others = ops.scatter_reduce(ops.masked_fill(filled, zero, 1), dim, index, src, "prod", include_self=True)
        grad_self = grad * ops.where(zero, others, result / ops.masked_fill(filled, zero, 1))
        src_zero = ops.eq(src, 0)
        alone = ops.eq(
            ops.scatter_add(zero.to(grad.dtype), dim, index, src_zero.to(grad.dtype)), 1
        )  # exactly one factor is zero
        rest = ops.scatter_reduce(filled, dim, index, ops.masked_fill(src, src_zero, 1), "prod", include_self=True)
        at_zero = ops.where(read(alone, dim, index), read(grad * rest, dim, index), 0)
        elsewhere = read(grad * result, dim, index) / ops.masked_fill(src, src_zero, 1)
        grad_src = ops.where(src_zero, at_zero, elsewhere)
    else:
        raise RuntimeError(f"Expected 'reduce' to be one of 'sum', 'prod', 'mean', 'amax', 'amin' but got {reduce}.")
    if not include_self:
        grad_self = ops.scatter(grad_self, dim, index, 0)
    return grad_self, grad_src


def index_reduce_gradient(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool, result: Tensor
) -> Gradients:
    """Gradients of what stood there and of the slices that were reduced into it."""
    shape = [1] * source.dim()
    if shape:
        shape[dim] = index.numel()
    places = ops.expand(ops.reshape(index, shape), source.shape)
    return scatter_reduce_gradient(grad, self, dim, places, source, reduce, include_self, result)


def masked_select_gradient(grad: Tensor, shape: Sequence[int], mask: Tensor) -> Tensor:
    """`grad` at the places of the mask, zeros elsewhere; the engine reduces a broadcast input."""
    whole = ops.expand(zeros_of_shape(grad, [1] * len(shape)), shape) if len(shape) else zeros_of_shape(grad, [])
    return ops.masked_scatter(whole, mask, grad)


__all__ = [
    "gather_gradient",
    "index_add_source",
    "index_gradient",
    "index_reduce_gradient",
    "index_put_self",
    "index_select_gradient",
    "masked_select_gradient",
    "scatter_reduce_gradient",
    "scatter_src_gradient",
    "zeros_of_shape",
]
