"""Shrinking of what is close to zero, in the dtype itself: the bound is rounded to it, as PyTorch's kernels round it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray


def hardshrink(self: ndarray, lambd: Any) -> ndarray:
    """0 within [-lambd, lambd], else self."""
    return _shrunk(self, self, lambd)


def hardshrink_backward(grad_out: ndarray, self: ndarray, lambd: Any) -> ndarray:
    """0 where self is within [-lambd, lambd], else the gradient."""
    return _shrunk(grad_out, self, lambd)


def _shrunk(values: ndarray, self: ndarray, lambd: Any) -> ndarray:
    bound = np.asarray(lambd).astype(self.dtype)
    if self.dtype.itemsize == 2 and values.dtype == self.dtype and bound >= 0:
        # Bits without the sign compare as magnitudes do; those of NaN are above all others.
        kept = (self.view(np.uint16) & np.uint16(0x7FFF)) > bound.view(np.uint16)
        return (values.view(np.uint16) * kept).view(values.dtype)
    return np.where((self >= -bound) & (self <= bound), np.zeros((), values.dtype), values)
