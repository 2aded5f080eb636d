"""Rounding that numpy does not offer: fused multiply-add, and the C library's functions in double precision.

Note [Contracted products]
PyTorch's kernels are built with fused multiply-add, and their compiler contracts `x * a + b` to one rounding. So equal
numbers ask for the same here. For float32 the product of two 24-bit significands is exact in double precision, and only
the sum is rounded on the way. (To 53 bits and then to 24: the two roundings can differ from the one in about one of
2**29 operations.)

Note [Double precision]
numpy's vector loops for log, log1p, sin, cos, tan and exp of float64 differ from the C library's functions, which
PyTorch uses for these distributions, in the last bit of some per cent of all arguments. That vanishes when the result
is rounded to float32 or less, but not in float64, where the functions of Python's `math` module (the C library's) are
mapped over the elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .._dispatch.native import kernel

# Splits a double into two halves of 26 bits (Veltkamp).
_SPLITTER = 134217729.0
# Elements below which a loop over Python floats is as quick as numpy's ufuncs, and exact for every dtype.
SMALL = 32

_MATH: dict[str, Callable[[float], float]] = {name: getattr(math, name) for name in ("log", "log1p", "tan", "exp")}


@kernel
def elementary(name: str, x: np.ndarray, exact: bool) -> np.ndarray:
    """log, log1p, tan or exp of a 1-d float64 array, by the C library where `exact`, see Note [Double precision].

    The arguments must lie in the function's domain, and for exp below the overflow.
    """
    if exact or x.size <= SMALL:
        return np.fromiter(map(_MATH[name], x.tolist()), np.float64, x.size)
    return getattr(np, name)(x)


@kernel
def fma64(x: np.ndarray, a: float, b: float) -> np.ndarray:
    """x * a + b in float64 with one rounding, for |x| < 1e140.

    The product and the sum are each split into a rounded part and an error (Dekker; Knuth). The two errors are added
    with rounding to odd, so that the final addition rounds as if it saw all of them (S. Boldo and G. Melquiond,
    "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
    """
    if a == 1.0:
        return x + b
    product = x * a
    if b == 0.0 or not (1e-140 < abs(a) < 1e140 and abs(b) < 1e140):
        # Beyond these the halves would overflow or vanish.
        return product + b
    x_high = x * _SPLITTER
    x_high -= x_high - x
    x_low = x - x_high
    a_high = a * _SPLITTER
    a_high -= a_high - a
    a_low = a - a_high
    low = ((x_high * a_high - product) + x_high * a_low + x_low * a_high) + x_low * a_low
    total, error = _two_sum(product, b)
    rest, lost = _two_sum(error, low)
    bits = rest.view(np.int64)
    even = (lost != 0) & (bits & 1 == 0)
    bits += np.where(even, np.where((lost > 0) == (rest > 0), 1, -1), 0)
    return total + rest


def _two_sum(x: np.ndarray, y: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """x + y rounded, and what the rounding lost."""
    total = x + y
    virtual = total - x
    return total, (x - (total - virtual)) + (y - virtual)


def fma32(x: np.ndarray, a: float, b: float) -> np.ndarray:
    """x * a + b of a float32 array with one rounding.

    `a` and `b` are float32 values; see Note [Contracted products].
    """
    if a == 1.0:
        return x + np.float32(b)
    wide = x.astype(np.float64)
    wide *= a
    wide += b
    return wide.astype(np.float32)
