"""Bags of embeddings from functions that aclnn has: sums, means and maxima. Of an index outside of the weights the device says so, as of any other."""

from __future__ import annotations

import math
from typing import Any

from ...._dispatch import ops
from ...._dtype import DTYPES

_SUM, _MEAN, _MAX = 0, 1, 2
_LARGEST = 1 << 24
"""Elements that maxima, which compare each row with all bags, may take."""
_int64 = DTYPES["int64"]


def _bags(offsets: Any, count: int, bags: int) -> tuple[Any, Any]:
    """(the bag of each index, the sizes)."""
    first = ops.slice(offsets, 0, 0, bags)
    places = ops.arange(0, count, 1, dtype=_int64, device=offsets.device)
    owner = ops.sub(ops.searchsorted(ops._to_copy(first, dtype=_int64), places, right=True), 1)
    ends = ops.cat([ops.slice(first, 0, 1, bags), ops.full((1,), count, dtype=first.dtype, device=first.device)], 0)
    return owner, ops.sub(ends, first)


def _sums(weight: Any, indices: Any, owner: Any, bags: int, factors: Any, padded: Any) -> Any:
    rows = ops.index_select(weight, 0, indices)
    if factors is not None:
        rows = ops.mul(rows, ops.unsqueeze(factors, 1))
    if padded is not None:
        rows = ops.masked_fill(rows, ops.unsqueeze(padded, 1), 0)
    return ops.index_add(ops.zeros((bags, weight.shape[1]), dtype=weight.dtype, device=weight.device), 0, owner, rows)


def _maxima(weight: Any, indices: Any, owner: Any, bags: int, padded: Any) -> tuple[Any, Any]:
    """The maxima and the indices whose rows have them, the first of several; a NaN counts where it is the first of its bag, as on the CPU. Zeros for empty bags."""
    rows = ops.index_select(weight, 0, indices)
    hits = ops.eq(ops.unsqueeze(owner, 1), ops.arange(0, bags, 1, dtype=owner.dtype, device=owner.device))
    if padded is not None:
        hits = ops.logical_and(hits, ops.logical_not(ops.unsqueeze(padded, 1)))
    begun = ops.cumsum(ops._to_copy(hits, dtype=_int64), 0)  # 1 where a bag's first index is
    first = ops.any(ops.logical_and(hits, ops.eq(begun, 1)), 1)
    nan = ops.isnan(rows)
    rows = ops.masked_fill(rows, ops.logical_and(nan, ops.logical_not(ops.unsqueeze(first, 1))), -math.inf)
    inside, wide = ops.unsqueeze(hits, 2), ops.unsqueeze(rows, 1)  # [indices, bags, 1], [indices, 1, width]
    best = ops.amax(
        ops.masked_fill(ops.expand(wide, (*hits.shape, rows.shape[1])), ops.logical_not(inside), -math.inf), [0]
    )
    same = ops.logical_or(ops.eq(wide, best), ops.logical_and(ops.isnan(wide), ops.isnan(best)))
    at = ops.argmax(ops._to_copy(ops.logical_and(inside, same), dtype=DTYPES["float32"]), 0)
    empty = ops.logical_not(ops.unsqueeze(ops.any(hits, 0), 1))
    picked = ops.reshape(ops.index_select(indices, 0, ops.reshape(at, (-1,))), at.shape)
    return ops.masked_fill(best, empty, 0), ops.masked_fill(picked, empty, 0)


def _embedding_bag(given: tuple, forward_only: bool) -> Any:
    weight, indices, offsets, _, mode, _, factors, include_last_offset, padding_idx = given
    bags, count = offsets.shape[0] - include_last_offset, indices.shape[0]
    if bags < 1 or count < 1 or weight.dtype is DTYPES["float64"]:
        return NotImplemented
    if mode == _MAX and bags * count * weight.shape[1] > _LARGEST:
        return NotImplemented
    kind = _int64 if _int64 in (indices.dtype, offsets.dtype) else DTYPES["int32"]
    owner, sizes = _bags(offsets, count, bags)
    padded = ops.eq(indices, padding_idx) if padding_idx >= 0 else None
    if padded is not None:
        ones = ops._to_copy(ops.logical_not(padded), dtype=DTYPES["float32"])
        sizes = ops.index_add(ops.zeros((bags,), dtype=ones.dtype, device=ones.device), 0, owner, ones)
    if mode == _MAX:
        out, places = _maxima(weight, indices, owner, bags, padded)
        owner, sizes = ops._to_copy(owner, dtype=kind), ops._to_copy(sizes, dtype=kind)
        return out, owner, sizes, ops._to_copy(places, dtype=kind)
    out = _sums(weight, indices, owner, bags, factors, padded)
    owner, sizes = ops._to_copy(owner, dtype=kind), ops._to_copy(sizes, dtype=kind)
    if mode == _MEAN:
        most = ops.clamp(ops._to_copy(sizes, dtype=out.dtype), 1)
        return ops.div(out, ops.unsqueeze(most, 1)), owner, sizes, ops.clone(sizes)
    none = ops.zeros((offsets.shape[0] if forward_only else bags,), dtype=kind, device=weight.device)
    owner = owner if padded is not None else ops.clone(ops.slice(owner, 0, 0, 0))
    return out, owner, none, ops.clone(none)


def embedding_bag(out: Any, *given: Any) -> Any:
    """(bags, the bags of the indices, sizes, the indices of the maxima or sizes again)."""
    return _embedding_bag(given, False)


def embedding_bag_forward_only(out: Any, *given: Any) -> Any:
    """`embedding_bag`, whose sizes have one for each offset where sums do without."""
    return _embedding_bag(given, True)


def embedding_bag_dense_backward(
    out: Any, grad: Any, indices: Any, owner: Any, sizes: Any, maxima: Any, count: int, scale: bool, mode: int, factors: Any, padding_idx: int
) -> Any:  # fmt: skip
    """The gradient of the weights."""
    if not indices.shape[0] or not grad.shape[0]:
        return NotImplemented
    zeros = ops.zeros((count, grad.shape[1]), dtype=grad.dtype, device=grad.device)
    if mode == _MAX:
        shares = ops.masked_fill(grad, ops.unsqueeze(ops.eq(sizes, 0), 1), 0)
        return ops.scatter_add(zeros, 0, ops._to_copy(maxima, dtype=_int64), shares)
    if mode == _MEAN:
        most = ops.clamp(ops._to_copy(sizes, dtype=grad.dtype), 1)
        grad = ops.div(grad, ops.unsqueeze(most, 1))
    shares = ops.index_select(grad, 0, owner)
    if factors is not None:
        shares = ops.mul(shares, ops.unsqueeze(factors, 1))
    if padding_idx >= 0:
        shares = ops.masked_fill(shares, ops.unsqueeze(ops.eq(indices, padding_idx), 1), 0)
    if scale:
        ones = ops.ones((indices.shape[0],), dtype=grad.dtype, device=grad.device)
        often = ops.index_add(ops.zeros((count,), dtype=grad.dtype, device=grad.device), 0, indices, ones)
        shares = ops.div(shares, ops.unsqueeze(ops.index_select(often, 0, indices), 1))
    return ops.index_add(zeros, 0, indices, shares)
