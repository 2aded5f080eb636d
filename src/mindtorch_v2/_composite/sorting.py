"""Sorting made of other operators."""

from __future__ import annotations

from mindtorch_v2._generated import functions as F
from mindtorch_v2._tensor import Tensor


def msort(self: Tensor) -> Tensor:
    """Values sorted along the first dimension."""
    return F.sort(self, 0)[0]
