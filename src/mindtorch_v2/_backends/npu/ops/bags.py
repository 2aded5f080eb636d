"""Bags of embeddings from functions that aclnn has: sums and means. Of an index outside of the weights the device says so, as of any other."""

from __future__ import annotations

from typing import Any

from ...._dispatch import ops
from ...._dtype import DTYPES

_SUM, _MEAN = 0, 1
_int64 = DTYPES["int64"]


def _bags(offsets: Any, count: int, bags: int) -> tuple[Any, Any]:
    """(the bag of each index, the sizes)."""
    first = ops.slice(offsets, 0, 0, bags)
    places = ops.arange(0, count, 1, dtype=_int64, device=offsets.device)
    owner = ops.sub(ops.searchsorted(ops._to_copy(first, dtype=_int64), places, right=True), 1)
    ends = ops.cat([ops.slice(first, 0, 1, bags), ops.full((1,), count, dtype=first.dtype, device=first.device)], 0)
    return owner, ops.sub(ends, first)


def _embedding_bag(given: tuple, forward_only: bool) -> Any:
    weight, indices, offsets, _, mode, _, factors, include_last_offset, padding_idx = given
    bags, count = offsets.shape[0] - include_last_offset, indices.shape[0]
    if mode not in (_SUM, _MEAN) or padding_idx >= 0 or bags < 1 or count < 1 or weight.dtype is DTYPES["float64"]:
        return NotImplemented
    kind = _int64 if _int64 in (indices.dtype, offsets.dtype) else DTYPES["int32"]
    owner, sizes = _bags(offsets, count, bags)
    rows = ops.index_select(weight, 0, indices)
    if factors is not None:
        rows = ops.mul(rows, ops.unsqueeze(factors, 1))
    out = ops.index_add(ops.zeros((bags, weight.shape[1]), dtype=weight.dtype, device=weight.device), 0, owner, rows)
    owner, sizes = ops._to_copy(owner, dtype=kind), ops._to_copy(sizes, dtype=kind)
    if mode == _MEAN:
        most = ops.clamp(ops._to_copy(sizes, dtype=out.dtype), 1)
        return ops.div(out, ops.unsqueeze(most, 1)), owner, sizes, ops.clone(sizes)
    none = ops.zeros((offsets.shape[0] if forward_only else bags,), dtype=kind, device=weight.device)
    return out, ops.clone(ops.slice(owner, 0, 0, 0)), none, ops.clone(none)


def embedding_bag(out: Any, *given: Any) -> Any:
    """(bags, the bags of the indices, sizes, sizes again)."""
    return _embedding_bag(given, False)


def embedding_bag_forward_only(out: Any, *given: Any) -> Any:
    """`embedding_bag`, whose sizes have one for each offset where sums do without."""
    return _embedding_bag(given, True)


def embedding_bag_dense_backward(
    out: Any, grad: Any, indices: Any, owner: Any, sizes: Any, maxima: Any, count: int, scale: bool, mode: int, factors: Any, padding_idx: int
) -> Any:  # fmt: skip
    """The gradient of the weights."""
    if mode not in (_SUM, _MEAN) or padding_idx >= 0 or scale or not indices.shape[0] or not grad.shape[0]:
        return NotImplemented
    if mode == _MEAN:
        most = ops.clamp(ops._to_copy(sizes, dtype=grad.dtype), 1)
        grad = ops.div(grad, ops.unsqueeze(most, 1))
    shares = ops.index_select(grad, 0, owner)
    if factors is not None:
        shares = ops.mul(shares, ops.unsqueeze(factors, 1))
    return ops.index_add(ops.zeros((count, grad.shape[1]), dtype=grad.dtype, device=grad.device), 0, indices, shares)
