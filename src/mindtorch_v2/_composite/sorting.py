"""Sorting made of other operators."""

from __future__ import annotations

from mindtorch_v2._generated import functions as F
from mindtorch_v2._tensor import Tensor


def msort(self: Tensor) -> Tensor:
    """Values sorted along the first dimension."""
    return F.sort(self, 0)[0]


def unique(self: Tensor, sorted: bool = True, return_inverse: bool = False) -> tuple[Tensor, Tensor]:
    """(the different values, where each element is among them)."""
    values, inverse, _ = F._unique2(self, sorted, return_inverse)
    return values, inverse
