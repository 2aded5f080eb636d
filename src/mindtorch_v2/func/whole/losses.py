"""Losses that look up a class."""

from __future__ import annotations

from typing import Any

from ..._dispatch import ops
from ..._tensor import Tensor
from ..batched import Level
from ..kinds import count_of, front, reduced

__all__ = ["likelihood"]


def likelihood(
    level: Level, name: str, self: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int
) -> Any:
    """(the negative log likelihoods of classes, the sum of their weights)."""
    alone = self.dim() == 1 and not target.dim()
    if not alone and (self.dim() < 2 or target.shape != self.shape[:1] + self.shape[2:] or not self.shape[0]):
        return None
    if weight is not None and tuple(weight.shape) != (self.shape[0 if alone else 1],):
        return None
    count = count_of(level, [self, target, weight])
    scores, classes = front(level, self, count), front(level, target, count)
    if not alone:
        scores, classes = scores.flatten(0, 1), classes.flatten(0, 1)
    losses = getattr(ops, name)(scores, classes, None, 0, ignore_index)[0]
    made: Any = level.wrap(losses if alone else losses.unflatten(0, (count, self.shape[0])))
    counts = target != ignore_index
    if weight is None:
        weights = counts.to(self.dtype)
    else:
        weights = ops.index(weight, [ops.where(counts, target, 0)]) * counts
        made = made * weights
    if reduction == 0:
        return made, weights.sum() * 0
    total = weights.sum()
    return (made.sum() / total if reduction == 1 else reduced(made, reduction)), total
