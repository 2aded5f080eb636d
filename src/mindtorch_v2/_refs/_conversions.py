"""Conversions to another dtype as functions: `char(x)` is `x.char()`."""

from __future__ import annotations

from typing import Any

from .. import complex, polar
from .._tensor import Tensor

__all__ = ["complex", "polar"]

_NAMES = "bfloat16 bool byte cdouble cfloat chalf char double float half int long short".split()


def __getattr__(name: str) -> Any:
    found = getattr(Tensor, name, None) if name in _NAMES else None
    if found is None:
        raise AttributeError(f"module 'torch._refs._conversions' has no attribute {name!r}")
    return found
