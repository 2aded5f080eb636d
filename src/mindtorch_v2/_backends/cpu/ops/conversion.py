"""Conversions: copies to another dtype and assignments between arrays of different dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from ...._dispatch.native import kernel
from ...._dtype import COMPLEX_KINDS, float32, known_to_numpy


def cast(array: ndarray, dtype: np.dtype) -> ndarray:
    """A copy of `array` with another dtype in the same memory order; values that do not fit wrap or saturate as C casts do, silently."""
    kind = array.dtype.kind
    if dtype.kind in "iu" and kind not in "iub":
        with np.errstate(invalid="ignore", over="ignore"):
            return _real(array).astype(dtype)
    if kind in COMPLEX_KINDS and dtype.kind not in COMPLEX_KINDS:
        return (array != 0) if dtype.kind == "b" else _real(array).astype(dtype)
    if dtype == np.float16 and kind in "fiu":  # by way of float32, as PyTorch goes
        return array.astype(np.float32, copy=False).astype(dtype)
    return array.astype(dtype)


def _real(array: ndarray) -> ndarray:
    array = known_to_numpy(array)
    return array.real if array.dtype.kind == "c" else array


@kernel
def to_copy(
    self: ndarray,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    memory_format: Any = None,
    out: ndarray | None = None,
) -> ndarray:
    if out is not None:
        return copy_(out, self)
    return self.copy("K") if dtype is None else cast(self, dtype.np)


@kernel
def copy_(self: ndarray, src: ndarray, non_blocking: bool = False) -> ndarray:
    """Write `src`, broadcast and converted, into `self`."""
    if self.dtype == src.dtype:
        self[...] = src
    else:
        self[...] = cast(src, self.dtype)
    return self


@kernel
def copy(self: ndarray, src: ndarray, non_blocking: bool = False) -> ndarray:
    return copy_(np.empty_like(self), src)


def widened(array: ndarray) -> ndarray:
    """A copy in float32, for what numpy has no loop of half types."""
    return to_copy(array, float32)
