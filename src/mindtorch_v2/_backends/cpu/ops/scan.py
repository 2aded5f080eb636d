"""Running sums, products and extremes along one dimension on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._dispatch import native
from .conversion import widened
from .pointwise import logaddexp

Array = np.ndarray

# Running sums of float32 are kept in double, as PyTorch's CPU kernels keep them.
_WIDE = {"f": np.float64, "F": np.complex128}


def _accumulate(ufunc: np.ufunc, self: Array, dim: int) -> Array:
    if self.ndim == 0:
        return self.copy()
    return ufunc.accumulate(self, dim, dtype=_WIDE.get(self.dtype.char, self.dtype)).astype(self.dtype, copy=False)


@native.kernel
def cumsum(self: Array, dim: int, dtype: Any = None) -> Array:
    """The running sum."""
    return _accumulate(np.add, self, dim)


@native.kernel
def cumprod(self: Array, dim: int, dtype: Any = None) -> Array:
    """The running product."""
    return _accumulate(np.multiply, self, dim)


def logcumsumexp(self: Array, dim: int) -> Array:
    """The logarithm of the running sum of exponentials."""
    if self.ndim == 0:
        return self.copy()
    if self.dtype.kind == "c":
        # numpy's logaddexp is real; the order of the steps decides the branch of the imaginary part.
        values = np.moveaxis(self.astype(np.complex128), dim, 0).copy()
        total = np.full(values.shape[1:], -np.inf, np.complex128)  # of nothing: it decides how a lone NaN looks
        for i in range(len(values)):
            total = values[i] = logaddexp(values[i], total)
        return np.moveaxis(values, 0, dim)
    return np.logaddexp.accumulate(self, dim, dtype=_WIDE.get(self.dtype.char, self.dtype))


def _extreme(ufunc: np.ufunc, self: Array, dim: int) -> tuple[Array, Array]:
    if self.ndim == 0:
        return self.copy(), np.zeros((), np.int64)
    work = widened(self) if self.dtype.kind == "V" or self.dtype.char == "e" else self
    values = ufunc.accumulate(work, dim)
    # Equal elements take over, and so does each NaN: the index is that of the latest.
    takes = work == values
    if work.dtype.kind == "f":
        takes |= np.isnan(work)
    n = self.shape[dim]
    position = np.arange(n).reshape([n if a == dim % self.ndim else 1 for a in range(self.ndim)])
    indices = np.maximum.accumulate(np.where(takes, position, 0), dim)
    return values.astype(self.dtype, copy=False), indices


@native.kernel
def cummax(self: Array, dim: int) -> tuple[Array, Array]:
    """The running maximum and the index of the latest element that reaches it."""
    return _extreme(np.maximum, self, dim if self.size else 0)


@native.kernel
def cummin(self: Array, dim: int) -> tuple[Array, Array]:
    """The running minimum and the index of the latest element that reaches it."""
    return _extreme(np.minimum, self, dim if self.size else 0)
