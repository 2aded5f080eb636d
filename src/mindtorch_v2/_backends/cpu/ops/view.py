"""Fast paths of views, copies, and the backward kernels of views that select.

A view operator needs no kernel: its rule says shape, stride and offset, and `as_strided` of the payload serves every device. The functions
`fast_*` are short cuts for plain arrays. Each gives exactly the strides of the rule, or None to decline.

Note [Strides of small sizes]: numpy and PyTorch disagree on the strides of dimensions of size 1 (numpy recomputes them in `reshape`) and of
empty arrays (numpy writes 0). Neither matters to a value, but `stride()` is public, so the fast paths decline where the two could differ.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from ...._dispatch.native import kernel
from ...._memory import FAR

ALL = slice(None)
PREFIX = tuple((ALL,) * n for n in range(33))
"""PREFIX[d] is an index that skips d dimensions."""
FEW = 1024
"""Elements up to which what numpy does once a call weighs more than what it does with them."""


@functools.lru_cache(128)
def _others(shape: tuple, axis: int) -> tuple[tuple, tuple]:
    """The indices of the dimensions before and after an axis that select all of each, beside an index of that axis."""
    ndim = len(shape)
    lines = [np.arange(n).reshape((1,) * d + (n,) + (1,) * (ndim - 1 - d)) for d, n in enumerate(shape)]
    return tuple(lines[:axis]), tuple(lines[axis + 1 :])


def taken(array: ndarray, index: ndarray, axis: int) -> ndarray:
    """`numpy.take_along_axis` of places that are within the array."""
    if array.size > FEW:
        return np.take_along_axis(array, index, axis)
    before, after = _others(array.shape, axis % array.ndim)
    return array[(*before, index, *after)]


# ------------------------------------------------------------------------------------------------------------------ fast paths


def fast_view(self: ndarray, size: Any) -> ndarray | None:
    """`view` and `reshape` of a contiguous array."""
    if not self.flags.c_contiguous or not self.size or (self.ndim and self.strides[-1] != self.itemsize):
        return None  # see Note [Strides of small sizes]
    if size.__class__ is int:  # refused by functions, which say so in PyTorch's words
        return None
    try:
        result = self.reshape(size)
    except (ValueError, TypeError):
        return None
    shape = result.shape
    # numpy takes any negative size for the unknown one; a reshape to the same shape keeps odd strides.
    if shape == self.shape or (shape != size and min(size, default=0) < -1):
        return None
    return result


def fast_transpose(self: ndarray, dim0: int, dim1: int) -> ndarray | None:
    """`transpose.int`, `swapaxes`."""
    if not self.size or dim0.__class__ is not int or dim1.__class__ is not int:
        return None
    try:
        return self.swapaxes(dim0, dim1)
    except (ValueError, TypeError):
        return None


def fast_t(self: ndarray) -> ndarray | None:
    """`t` of at most two dimensions."""
    return self.T if self.ndim <= 2 and self.size else None


def fast_permute(self: ndarray, dims: Any) -> ndarray | None:
    """`permute`."""
    if not self.size:
        return None
    try:
        return self.transpose(dims)
    except (ValueError, TypeError):
        return None


def fast_unsqueeze(self: ndarray, dim: int) -> ndarray | None:
    """`unsqueeze` of a contiguous array, see Note [Strides of small sizes]."""
    if dim.__class__ is not int or not self.flags.c_contiguous or not self.size:
        return None
    shape = self.shape
    if dim < 0:
        dim += len(shape) + 1
    if not 0 <= dim <= len(shape):
        return None
    result = self.reshape((*shape[:dim], 1, *shape[dim:]))
    if 1 in shape:
        strides = result.strides
        if strides[:dim] + strides[dim + 1 :] != self.strides:
            return None
    return result


def fast_squeeze_dim(self: ndarray, dim: int) -> ndarray | None:
    """`squeeze.dim` of a dimension of size 1."""
    try:
        if self.shape[dim] == 1 and self.size:
            return self.squeeze(dim)
    except (IndexError, TypeError, ValueError):
        pass
    return None


def fast_select(self: ndarray, dim: int, index: int) -> ndarray | None:
    """`select.int`; the Ellipsis keeps 0-dim results arrays."""
    if index.__class__ is not int or dim.__class__ is not int or not self.size:
        return None
    if dim < 0:
        dim += self.ndim
        if dim < 0:
            return None
    try:
        return self[(*PREFIX[dim], index, ...)]
    except IndexError:
        return None


def fast_as_strided(self: ndarray, size: Any, stride: Any, storage_offset: int | None = None) -> ndarray | None:
    """`as_strided` from the first element of a contiguous array, within it."""
    if storage_offset is not None or not self.flags.c_contiguous or len(size) != len(stride) or not self.size:
        return None
    last = 0
    for n, step in zip(size, stride):
        if n.__class__ is not int or step.__class__ is not int or n < 1 or not 0 <= step < FAR:
            return None
        last += (n - 1) * step
    if last >= self.size:
        return None
    return ndarray(tuple(size), self.dtype, self, 0, tuple([step * self.itemsize for step in stride]))


def fast_slice(
    self: ndarray, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> ndarray | None:
    """`slice.Tensor` with a positive step and a result that is not empty."""
    if dim.__class__ is not int or step.__class__ is not int or not 0 < step < FAR:
        return None
    if dim < 0:
        dim += self.ndim
        if dim < 0:
            return None
    try:
        result = self[(*PREFIX[dim], slice(start, end, step))]
    except (IndexError, TypeError):
        return None
    return result if result.size else None


def fast_expand(self: ndarray, size: Any, implicit: bool = False) -> ndarray | None:
    """`expand` of a contiguous array."""
    shape = self.shape
    if size.__class__ is int:
        return None
    new = len(size) - len(shape)
    if new < 0 or not self.flags.c_contiguous or not self.size:
        return None
    target = list(size)
    strides = list(self.strides)
    for d, n in enumerate(shape, new):
        wanted = target[d]
        if wanted == -1:
            target[d] = n
        elif wanted != n:
            if n != 1 or wanted.__class__ is not int or wanted < 1:
                return None
            strides[d - new] = 0
    step = target[new] * strides[0] if shape else 0
    lead = []
    for d in range(new):
        wanted = target[d]
        if wanted.__class__ is not int or wanted < 1:
            return None
        lead.append(0 if wanted != 1 else -1)
    # A new dimension of size 1 continues the strides behind it, whether those are 0 or not.
    for d in range(new - 1, -1, -1):
        if lead[d]:
            lead[d] = step
        step = target[d] * lead[d]
    try:
        return ndarray(target, self.dtype, self, 0, lead + strides)
    except (ValueError, TypeError, BufferError):
        return None


def fast_broadcast_to(self: ndarray, size: Any) -> ndarray | None:
    """`broadcast_to` of a contiguous array."""
    return None if size.__class__ is int or -1 in size else fast_expand(self, size)


# --------------------------------------------------------------------------------------------------------------------- kernels


def along(ndim: int, dim: int, index: Any) -> tuple:
    """An index that applies `index` to dimension `dim` of an array with `ndim` dimensions."""
    return (*PREFIX[dim % ndim if ndim else 0], index)


@kernel
def clone(self: ndarray, memory_format: Any = None, out: ndarray | None = None) -> ndarray:
    """A copy into `out`, which is laid out in the format; without it a dense one in the memory order of self."""
    if out is None:
        return self.copy("K")
    out[...] = self
    return out


@kernel
def select_backward(grad_output: ndarray, input_sizes: Sequence[int], dim: int, index: int) -> ndarray:
    result = np.zeros(tuple(input_sizes), grad_output.dtype)
    result[along(result.ndim, dim, index)] = grad_output
    return result


@kernel
def slice_backward(
    grad_output: ndarray, input_sizes: Sequence[int], dim: int, start: int, end: int, step: int
) -> ndarray:
    result = np.zeros(tuple(input_sizes), grad_output.dtype)
    result[along(result.ndim, dim, slice(start, end, step))] = grad_output
    return result


def diagonal_of(array: ndarray, offset: int, dim1: int, dim2: int) -> ndarray:
    """A writeable view of a diagonal (numpy's own is read-only)."""
    view = array.diagonal(offset, dim1, dim2)
    view.flags.writeable = True
    return view


@kernel
def diagonal_backward(grad_output: ndarray, input_sizes: Sequence[int], offset: int, dim1: int, dim2: int) -> ndarray:
    result = np.zeros(tuple(input_sizes), grad_output.dtype)
    diagonal_of(result, offset, dim1, dim2)[...] = grad_output
    return result


def unfold_backward(grad_in: ndarray, input_sizes: Sequence[int], dim: int, size: int, step: int) -> ndarray:
    """Windows lie in the last dimension of `grad_in`; overlapping ones add up."""
    result = np.zeros(tuple(input_sizes), grad_in.dtype)
    if not result.ndim:
        return grad_in.reshape(()) if size else result
    dim %= result.ndim
    count = grad_in.shape[dim]
    for place in range(size):
        result[(*PREFIX[dim], slice(place, place + (count - 1) * step + 1, step))] += grad_in[..., place]
    return result
