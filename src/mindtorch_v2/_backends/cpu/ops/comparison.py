"""Tests of single elements on the CPU, for every dtype."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def _floating(x: Array) -> bool:
    return x.dtype.kind in "fV"


def isposinf(self: Array) -> Array:
    """Whether an element is +inf."""
    return np.isinf(self) & (self > 0) if _floating(self) else np.zeros(self.shape, bool)


def isneginf(self: Array) -> Array:
    """Whether an element is -inf."""
    return np.isinf(self) & (self < 0) if _floating(self) else np.zeros(self.shape, bool)


def signbit(self: Array) -> Array:
    """Whether the sign is negative; of -0.0 and negative NaN too."""
    if _floating(self):
        return np.signbit(self)
    return self < 0 if self.dtype.kind == "i" else np.zeros(self.shape, bool)
