"""Numbers that stand for tensors, as arrays of the dtype in which a kernel computes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._dtype import dtype


def number(value: Any, compute: dtype) -> Any:
    """A Python number as a 0-dim array of `compute`; integers wrap around as PyTorch's do. Anything else as it is."""
    if value.__class__ is int and compute.category == 1:
        wide = np.int64 if -(2**63) <= value < 2**63 else np.uint64
        return np.array(value, wide).astype(compute.np)
    if isinstance(value, (int, float, complex, bool)):
        return np.asarray(value).astype(compute.np)
    return value


def wrapped(value: Any, kind: np.dtype) -> Any:
    """A Python number as it fits an array of `kind`: integers wrap around, as PyTorch's do. Arrays as they are."""
    if value.__class__ is int and kind.kind in "iu":
        bits = 8 * kind.itemsize
        value &= (1 << bits) - 1
        return value - (1 << bits) if kind.kind == "i" and value >> (bits - 1) else value
    return value
