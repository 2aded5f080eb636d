"""Derivatives of views.

`grads` of an operator with several results is a list with None for results that nobody used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._dispatch import ops
from ..._tensor import Tensor

Grads = Sequence["Tensor | None"]


def permute_backward(grad: Tensor, dims: Sequence[int]) -> Tensor:
    """`grad` with the dimensions back in their places."""
    ndim = len(dims)
    inverse = [0] * ndim
    for place, dim in enumerate(dims):
        inverse[dim % ndim] = place
    return ops.permute(grad, inverse)


def slice_gradient(
    grad: Tensor, shape: Sequence[int], dim: int, start: int | None, end: int | None, step: int
) -> Tensor:
    """Zeros of `shape` with `grad` in the slice."""
    first, last, _ = slice(start, end).indices(shape[dim])
    return ops.slice_backward(grad, shape, dim, first, max(first, last), step)


def narrow_gradient(grad: Tensor, shape: Sequence[int], dim: int, start: int, length: int) -> Tensor:
    """Zeros of `shape` with `grad` in the narrowed part."""
    if start < 0:
        start += shape[dim]
    return ops.slice_backward(grad, shape, dim, start, start + length, 1)


def _zeros(like: Tensor, shape: Sequence[int]) -> Tensor:
    return ops.new_zeros(like, shape)


def _some(grads: Grads) -> Tensor:
    return next(g for g in grads if g is not None)


def _joined(grads: Grads, shape: Sequence[int], sizes: Sequence[int], dim: int) -> Tensor:
    """The gradients of neighbouring parts as one."""
    like = _some(grads)
    parts = []
    for grad, size in zip(grads, sizes, strict=True):
        if grad is None:
            whole = list(shape)
            whole[dim] = size
            grad = _zeros(like, whole)
        parts.append(grad)
    return ops.cat(parts, dim)


def split_gradient(grads: Grads, shape: Sequence[int], split_size: int, dim: int) -> Tensor:
    """The gradient of what was split into parts of `split_size`."""
    size = shape[dim]
    sizes = [min(split_size, size - start) for start in range(0, size, split_size)] if size else [0] * len(grads)
    return _joined(grads, shape, sizes, dim)


def split_sizes_gradient(grads: Grads, shape: Sequence[int], sizes: Sequence[int], dim: int) -> Tensor:
    """The gradient of what was split into parts of the given sizes."""
    return _joined(grads, shape, sizes, dim)


def chunk_gradient(grads: Grads, shape: Sequence[int], chunks: int, dim: int) -> Tensor:
    """The gradient of what was split into equal chunks; the last one may be smaller."""
    size = shape[dim]
    if not size:
        return _joined(grads, shape, [0] * len(grads), dim)
    return split_gradient(grads, shape, -(-size // chunks), dim)


def tensor_split_gradient(
    grads: Grads, shape: Sequence[int], indices_or_sections: int | Sequence[int], dim: int
) -> Tensor:
    """The gradient of what was split at indices (which may be out of order), or into sections."""
    size = shape[dim]
    if isinstance(indices_or_sections, int):
        least, extra = divmod(size, indices_or_sections)
        return _joined(grads, shape, [least + (i < extra) for i in range(indices_or_sections)], dim)
    starts = [0, *indices_or_sections]
    ends = [*indices_or_sections, size]
    total = None
    for grad, start, end in zip(grads, starts, ends, strict=True):
        if grad is not None:
            term = slice_gradient(grad, shape, dim, start, end, 1)
            total = term if total is None else total + term
    assert total is not None
    return total


def unbind_gradient(grads: Grads, shape: Sequence[int], dim: int) -> Tensor:
    """The gradient of what was taken apart along `dim`."""
    like = _some(grads)
    at = dim % len(shape)
    part = [*shape[:at], *shape[at + 1 :]]
    return ops.stack([_zeros(like, part) if g is None else g for g in grads], at)


def as_strided_gradient(
    grad: Tensor,
    viewed: tuple[Sequence[int], Sequence[int], int],
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None,
) -> Tensor:
    """The gradient of a strided view: summed up over the storage, then read through the geometry of what was viewed.

    Places of the storage that several elements of that share give each of them its part.
    """
    shape, strides, start = viewed
    offset = start if storage_offset is None else storage_offset
    first = min(start, offset)
    reach = max(_reach(shape, strides, start), _reach(size, stride, offset)) - first
    places = ops.arange(max(reach, 0), device=grad.device)

    def seen(sizes: Sequence[int], steps: Sequence[int], begin: int) -> Tensor:
        return ops.reshape(ops.as_strided(places, sizes, steps, begin - first), [-1])

    zeros = ops.new_zeros(grad, [max(reach, 0)])
    storage = ops.index_add(zeros, 0, seen(size, stride, offset), ops.reshape(grad, [-1]))
    own = seen(shape, strides, start)
    count = ops.index_add(ops.zeros_like(storage), 0, own, ops.ones_like(ops.index_select(storage, 0, own)))
    return ops.reshape(ops.index_select(storage, 0, own) / ops.index_select(count, 0, own), shape)


def _reach(shape: Sequence[int], stride: Sequence[int], offset: int) -> int:
    if 0 in tuple(shape):
        return offset
    return offset + 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))


def to_copy_gradient(grad: Tensor, dtype: Any, device: Any) -> Tensor:
    """The gradient of a conversion: converted back."""
    if grad.dtype is dtype and grad.device == device:
        return grad
    return ops._to_copy(grad, dtype=dtype, device=device)


__all__ = [
    "as_strided_gradient",
    "chunk_gradient",
    "narrow_gradient",
    "permute_backward",
    "slice_gradient",
    "split_gradient",
    "split_sizes_gradient",
    "tensor_split_gradient",
    "to_copy_gradient",
    "unbind_gradient",
]
