"""Distances between vectors, by differences of all pairs: as much memory as there are pairs, times the vectors' length."""

from __future__ import annotations

import math
from typing import Any

from ...._dispatch import ops


def vdot(out: Any, self: Any, other: Any) -> Any:
    return ops.sum(ops.mul(ops.conj_physical(self), other))


def _norms(difference: Any, p: float) -> Any:
    size = ops.abs(difference)
    if not difference.shape[-1]:
        return ops.sum(size, [-1])
    if p == 0:
        return ops.sum(ops._to_copy(ops.ne(difference, 0), dtype=difference.dtype), [-1])
    if p == 1:
        return ops.sum(size, [-1])
    if p == 2:
        return ops.sqrt(ops.sum(ops.square(difference), [-1]))
    if p == math.inf:
        return ops.amax(size, [-1])
    return ops.pow(ops.sum(ops.pow(size, p), [-1]), 1 / p)


def _slopes(difference: Any, distance: Any, p: float) -> Any:
    """The derivatives of distances by the first vector: PyTorch's, which are 0 where the distance is."""
    sign, size = ops.sign(difference), ops.abs(difference)
    if p == 0:
        return ops.zeros_like(difference)
    if p == 1:
        return sign
    if p == math.inf:
        return ops.mul(sign, ops._to_copy(ops.eq(size, distance), dtype=difference.dtype))
    none = ops.eq(distance, 0)
    safe = ops.where(none, ops.ones_like(distance), distance)
    if p == 2:
        slopes = ops.div(difference, safe)
    else:
        if p < 1:
            none = ops.logical_or(none, ops.eq(difference, 0))
        base = ops.where(ops.eq(size, 0), ops.ones_like(size), size) if p < 1 else size
        slopes = ops.mul(sign, ops.div(ops.pow(base, p - 1), ops.pow(safe, p - 1)))
    return ops.where(none, ops.zeros_like(slopes), slopes)


def _pairs(x1: Any, x2: Any) -> Any:
    return ops.sub(ops.unsqueeze(x1, -2), ops.unsqueeze(x2, -3))


def cdist(out: Any, x1: Any, x2: Any, p: float, compute_mode: int | None) -> Any:
    return _norms(_pairs(x1, x2), p)


def cdist_backward(out: Any, grad: Any, x1: Any, x2: Any, p: float, cdist: Any) -> Any:
    slopes = _slopes(_pairs(x1, x2), ops.unsqueeze(cdist, -1), p)
    return ops.sum(ops.mul(slopes, ops.unsqueeze(grad, -1)), [-2])


def _indices(self: Any) -> tuple[Any, Any]:
    n = self.shape[0]
    both = ops.triu_indices(n, n, 1, device=self.device)
    return ops.select(both, 0, 0), ops.select(both, 0, 1)


def pdist(out: Any, self: Any, p: float) -> Any:
    first, second = _indices(self)
    return _norms(ops.sub(ops.index_select(self, 0, first), ops.index_select(self, 0, second)), p)


def pdist_backward(out: Any, grad: Any, self: Any, p: float, pdist: Any) -> Any:
    first, second = _indices(self)
    difference = ops.sub(ops.index_select(self, 0, first), ops.index_select(self, 0, second))
    each = ops.mul(_slopes(difference, ops.unsqueeze(pdist, -1), p), ops.unsqueeze(grad, -1))
    made = ops.index_add(ops.zeros_like(self), 0, first, each)
    return ops.index_add(made, 0, second, each, alpha=-1)
