"""Indexing: what the host must look at (data-dependent shapes), and lists of indices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...._dispatch import ops
from ...._dtype import DTYPES
from ...._generated.npu.functions import (
    aclnnGather,
    aclnnIndex,
    aclnnIndexCopy,
    aclnnIndexPutImpl,
    aclnnMaskedSelect,
    aclnnNonzero,
    aclnnOneHot,
)
from ...._tensor import wrap
from .. import copies
from ..aclnn import launch, launch_with_shape, scalar_tensor
from ..arguments import held
from ..creation import empty

_int64 = DTYPES["int64"]


def _long_indices(self: Any, indices: list) -> list:
    """Index tensors only: masks become the positions of their elements, None a whole range; all broadcast to one shape."""
    found: list = []
    for item in indices:
        if item is not None and item.dtype in (DTYPES["bool"], DTYPES["uint8"]):
            found += ops.unbind(ops.nonzero(item), 1)
        else:
            found.append(item)
    return found


def _arranged(self: Any, indices: list) -> tuple[Any, list, tuple | None]:
    """(self with the indexed dimensions first, its indices, the permutation back) where None stands before an index."""
    found = _long_indices(self, indices)
    found += [None] * (self.dim() - len(found))
    indexed = [d for d, item in enumerate(found) if item is not None]
    order = [*indexed, *(d for d in range(self.dim()) if d not in indexed)]
    tensors = ops.broadcast_tensors([found[d].to(_int64) for d in indexed]) if indexed else ()
    return ops.permute(self, order), list(tensors), tuple(order)


def _result_order(self: Any, indices: list, index_ndim: int) -> list[int] | None:
    """How the result of indexing leading dimensions is permuted, where adjacent indices stand in the middle; None if not at all."""
    found = _long_indices(self, indices)
    indexed = [d for d, item in enumerate(found) if item is not None]
    if indexed != list(range(indexed[0], indexed[0] + len(indexed))) or indexed[0] == 0:
        return None
    before = indexed[0]
    rest = self.dim() - len(indexed)
    return [*range(index_ndim, index_ndim + before), *range(index_ndim), *range(index_ndim + before, index_ndim + rest)]


def index(out: Any, self: Any, indices: list) -> Any:
    moved, tensors, _ = _arranged(self, indices)
    shape = (*tensors[0].shape, *moved.shape[len(tensors) :])
    made = empty(tuple(shape), None, self.dtype, self.device)
    if made.size:
        launch(aclnnIndex, moved._payload, [t._payload for t in tensors], made)
    result = wrap(made, self.dtype)
    order = _result_order(self, indices, tensors[0].dim())
    return result if order is None else ops.permute(result, order)


def index_put(out: Any, self: Any, indices: list, values: Any, accumulate: bool) -> None:
    target = out[0]
    if target is not self._payload:
        copies.copy_on_device(target, self._payload)
    whole = wrap(target, self.dtype)
    moved, tensors, _ = _arranged(whole, indices)
    shape = [*tensors[0].shape, *moved.shape[len(tensors) :]]
    order = _result_order(whole, indices, tensors[0].dim())
    if order is not None:
        values = ops.expand(values, [shape[d] for d in order])
        values = ops.permute(values, [order.index(d) for d in range(len(order))])
    else:
        values = ops.expand(values, shape)
    if values.numel():
        launch(
            aclnnIndexPutImpl,
            moved._payload,
            [t._payload for t in tensors],
            ops.contiguous(values)._payload,
            accumulate,
            False,
        )


def index_copy(out: Any, self: Any, dim: int, index: Any, source: Any) -> None:
    target = out[0]
    if target is not self._payload:
        copies.copy_on_device(target, self._payload)
    if source.numel():
        launch(aclnnIndexCopy, target, dim, index._payload, source._payload, target)


def index_fill(out: Any, self: Any, dim: int, index: Any, value: Any) -> None:
    """By copies of one element, which every version has (aclnnIndexFill came late)."""
    if not self.dim():
        ops.fill_(wrap(out[0], self.dtype), value) if index.numel() else copies.copy_on_device(out[0], self._payload)
        return
    shape = list(self.shape)
    shape[dim] = index.numel()
    one = ops.scalar_tensor(held(self._payload, value), dtype=self.dtype, device=self.device)
    index_copy(out, self, dim, ops.reshape(index, (-1,)), ops.contiguous(ops.expand(one, shape)))


def nonzero(out: Any, self: Any) -> Any:
    if self.dtype.is_complex:  # which the function does not take
        self = ops.ne(self, 0)
    largest = empty((self.numel(), self.dim()), None, _int64, self.device)
    if not largest.size and self.dim():
        return wrap(largest, _int64)
    shape = launch_with_shape(aclnnNonzero, 1, self._payload, largest)
    found = ops.narrow(wrap(largest, _int64), 0, 0, shape[0])
    return ops.t(ops.contiguous(ops.t(found)))  # PyTorch's strides: a column for each dimension


def masked_select(out: Any, self: Any, mask: Any) -> Any:
    self, mask = ops.broadcast_tensors([self, mask])
    largest = empty((self.numel(),), None, self.dtype, self.device)
    if not largest.size:
        return wrap(largest, self.dtype)
    shape = launch_with_shape(aclnnMaskedSelect, 2, self._payload, mask._payload, largest)
    return ops.narrow(wrap(largest, self.dtype), 0, 0, shape[0])


def one_hot(out: Any, self: Any, num_classes: int) -> Any:
    classes = num_classes
    if classes < 0:  # the largest class decides
        classes = int(ops.max(self).item()) + 1
    kind = _int64
    made = empty((*self.shape, classes), None, kind, self.device)
    on, off = (scalar_tensor(v, kind, self.device) for v in (1, 0))
    if made.size:
        launch(aclnnOneHot, self._payload, classes, on, off, -1, made)
    return wrap(made, kind)


def _zeros_with(out: Any, grad: Any, view: Any) -> None:
    """The gradient in its place among zeros."""
    whole = ops.zero_(wrap(out[0], grad.dtype))
    ops.copy_(view(whole), grad)


def select_backward(out: Any, grad_output: Any, input_sizes: Any, dim: int, index: int) -> None:
    _zeros_with(out, grad_output, lambda whole: ops.select(whole, dim, index))


def slice_backward(out: Any, grad_output: Any, input_sizes: Any, dim: int, start: int, end: int, step: int) -> None:
    _zeros_with(out, grad_output, lambda whole: ops.slice(whole, dim, start, end, step))


def diagonal_backward(out: Any, grad_output: Any, input_sizes: Any, offset: int, dim1: int, dim2: int) -> None:
    _zeros_with(out, grad_output, lambda whole: ops.diagonal(whole, offset, dim1, dim2))


def scatter_reduce(out: Any, self: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool) -> Any:
    """Sums by aclnnScatterAdd, means by sums and counts. The others, for which aclnn has nothing that all chips and dtypes have, compare each index with all places:
    as many comparisons as index has elements, times the size of the dimension."""
    if not self.dim():
        self_, index_, src_ = (ops.reshape(t, (1,)) for t in (self, index, src))
        return ops.reshape(ops.scatter_reduce(self_, 0, index_, src_, reduce, include_self=include_self), ())
    if reduce in ("sum", "mean"):
        base = self if include_self else ops.scatter(self, dim, index, 0)
        total = ops.scatter_add(base, dim, index, src)
        if reduce == "sum":
            return total
        ones = ops.ones_like(self)
        ones = ones if include_self else ops.scatter(ones, dim, index, 0)
        count = ops.clamp_min(ops.scatter_add(ones, dim, index, ops.ones_like(src)), 1)
        return ops.div(total, count) if self.is_floating_point() else ops.floor_divide(total, count)
    return _scatter_by_comparison(self, dim % self.dim(), index, src, reduce, include_self)


def _scatter_by_comparison(self: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool) -> Any:
    made = ops.clone(self)
    if not index.numel():
        return made
    part, given = made, src
    for d, n in enumerate(index.shape):
        given = ops.narrow(given, d, 0, n)
        part = part if d == dim else ops.narrow(part, d, 0, n)
    places = ops.arange(self.shape[dim], device=self.device)
    hits = ops.eq(ops.unsqueeze(ops.movedim(index, dim, -1), -1), places)  # [..., elements, places]
    given = ops.unsqueeze(ops.movedim(given, dim, -1), -1)
    before = ops.movedim(part, dim, -1)
    if reduce == "prod":
        found = ops.prod(ops.where(hits, given, ops.ones_like(given)), -2)
        joined = ops.mul(before, found)
    else:
        extreme, join = (ops.amax, ops.maximum) if reduce == "amax" else (ops.amin, ops.minimum)
        found = extreme(_masked(hits, given, reduce), [-2])
        joined = join(before, found)
    hit = ops.any(hits, -2)
    result = ops.where(hit, joined if include_self else found, before)
    ops.copy_(part, ops.movedim(result, -1, dim))
    return made


def _masked(hits: Any, given: Any, reduce: str) -> Any:
    """The values of the hits, and elsewhere what is no candidate for the extreme."""
    kind = given.dtype
    if kind.is_floating_point:
        fill: Any = -math.inf if reduce == "amax" else math.inf
    elif str(kind).endswith("bool"):
        fill = reduce == "amin"
    else:
        limits = np.iinfo(kind.np)
        fill = int(limits.min if reduce == "amax" else limits.max)
    return ops.where(hits, given, ops.full_like(given, fill))


def gather(out: Any, self: Any, dim: int, index: Any, *unused: Any) -> Any:
    """Elements at indices along dim; complex ones, which the function does not take, as pairs."""
    if not out[0].size:
        return None
    if not self.dtype.is_complex:
        launch(aclnnGather, self._payload, dim, index._payload, out[0])
        return None
    if not self.dim():
        return ops.reshape(ops.expand(self, tuple(index.shape) or (1,)), tuple(index.shape))
    pairs = ops.view_as_real(self)
    places = ops.expand(ops.unsqueeze(index, -1), (*index.shape, 2))
    return ops.view_as_complex(ops.gather(pairs, dim % self.dim(), places))


def index_fill_tensor(out: Any, self: Any, dim: int, index: Any, value: Any) -> Any:
    value = ops._to_copy(value, dtype=self.dtype)
    if not self.dim():
        return ops.clone(value) if index.numel() else ops.clone(self)
    shape = list(self.shape)
    shape[dim] = index.numel()
    index_copy(out, self, dim, ops.reshape(index, (-1,)), ops.contiguous(ops.expand(value, shape)))
    return None


def index_reduce(out: Any, self: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool) -> Any:
    if not self.dim() or not source.dim() or not source.numel():
        return NotImplemented
    dim %= self.dim()
    shape = [-1 if d == dim else 1 for d in range(self.dim())]
    places = ops.expand(ops.reshape(ops._to_copy(index, dtype=_int64), shape), tuple(source.shape))
    return ops.scatter_reduce(self, dim, ops.contiguous(places), source, reduce, include_self=include_self)


def masked_scatter_backward(out: Any, grad_output: Any, mask: Any, sizes: Any) -> Any:
    taken = ops.masked_select(grad_output, mask)
    rest = math.prod(sizes) - taken.numel()
    if rest > 0:
        taken = ops.cat([taken, ops.zeros((rest,), dtype=taken.dtype, device=taken.device)])
    return ops.reshape(taken, tuple(sizes))


def nonzero_static(out: Any, self: Any, size: int, fill_value: int) -> Any:
    found = ops.nonzero(self)
    kept = ops.narrow(found, 0, 0, min(size, found.shape[0]))
    rest = ops.full((size - kept.shape[0], self.dim()), fill_value, dtype=_int64, device=self.device)
    return ops.cat([kept, rest])
