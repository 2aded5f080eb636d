"""The functions of one element that `block` expressions of the schema call, on arrays: what the headers ieee.h, vecmath.h and pointwise_math.h in
native/kernels/ are for loops in C. Kernels in numpy that are made of the expressions call them, and they are kernels themselves.

Each takes `out` as numpy's ufuncs do. Arithmetic never sees half types.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from .blocked import blocked
from .special import erf

Out = ndarray | None

# What numpy has.
fabs = np.absolute
sqrt = np.sqrt
copysign = np.copysign
exponential = np.exp
nearest_exponential = np.exp
exp2 = np.exp2
expm1 = np.expm1
log = np.log
log1p = np.log1p
tanh = np.tanh
larger = np.maximum
smaller = np.minimum

error_function = erf


def _rounding(ufunc: np.ufunc) -> Callable[..., Any]:
    def kernel(x: ndarray, out: Out = None) -> Any:
        if x.dtype.kind != "f":  # integers are whole already
            return np.positive(x, out)
        return ufunc(x, out)

    kernel.__name__ = kernel.__qualname__ = ufunc.__name__
    kernel.__doc__ = f"numpy.{ufunc.__name__}; integers stay as they are."
    return kernel


floor = _rounding(np.floor)
ceil = _rounding(np.ceil)
trunc = _rounding(np.trunc)
rint = _rounding(np.rint)


def fused(x: ndarray, y: ndarray, z: ndarray, out: Out = None) -> Any:
    """x y + z; of float32 with one rounding, as far as float64 in between tells."""
    kind = np.result_type(x, y, z)
    if kind != np.float32:
        return np.add(np.multiply(x, y), z, out)
    product = np.multiply(x, y, dtype=np.float64)
    return (
        np.add(product, z, out, dtype=np.float64, casting="same_kind")
        if out is not None
        else np.add(product, z).astype(kind)
    )


def _sigmoid(x: ndarray, out: ndarray) -> None:
    np.negative(x, out)
    np.exp(out, out)
    np.add(out, 1, out)
    np.reciprocal(out, out)


def sigmoid(x: ndarray, out: Out = None) -> ndarray:
    """1 / (1 + exp(-x))."""
    return blocked(_sigmoid, x, out)


def _silu(x: ndarray, out: ndarray) -> None:
    s = np.negative(x)
    np.exp(s, out=s)
    s += 1
    np.divide(x, s, out=out)


def silu(x: ndarray, out: Out = None) -> ndarray:
    """x / (1 + exp(-x))."""
    return blocked(_silu, x, out)


def _silu_slope(x: ndarray, out: ndarray) -> None:
    s = sigmoid(x)
    slope = 1 - s
    slope *= x
    slope += 1
    np.multiply(slope, s, out)


def silu_slope(x: ndarray, out: Out = None) -> ndarray:
    """The derivative of silu."""
    return blocked(_silu_slope, x, out)


def _tanh_of_softplus(x: ndarray, out: ndarray) -> None:
    e = np.exp(np.minimum(x, 20))
    n = e + 2
    n *= e
    np.divide(n, n + 2, out)


def tanh_of_softplus(x: ndarray, out: Out = None) -> ndarray:
    """tanh(log(1 + exp(x))), whose exponential form is exact where it does not overflow."""
    return blocked(_tanh_of_softplus, x, out)


def _mish_slope(x: ndarray, out: ndarray) -> None:
    t = tanh_of_softplus(x)
    slope = 1 - t * t
    slope *= sigmoid(x)
    slope *= x
    np.add(slope, t, out)


def mish_slope(x: ndarray, out: Out = None) -> ndarray:
    """The derivative of mish."""
    return blocked(_mish_slope, x, out)


# Note [Normal distribution by tanh]. The normal distribution function is (1 + tanh(x P(x*x))) / 2 with an analytic P. This polynomial was fitted
# by weighted least squares in double precision, so that gelu is off by less than 1e-7, which is below what float32 rounds off; numpy's tanh is the
# fastest of its transcendental functions. Highest power first.
_NORMAL = tuple(
    np.float32(c)
    for c in (
        1.813926254463397e-09,
        -1.3378315420413407e-07,
        3.974070044720045e-06,
        -5.527338157798641e-05,
        -3.30267182193881e-05,
        0.036334149139567666,
        0.7978842684018702,
    )
)
_SQRT_HALF = math.sqrt(0.5)
_PDF = 1.0 / math.sqrt(2.0 * math.pi)
_TANH_SCALE = math.sqrt(2.0 / math.pi)
_TANH_CUBE = 0.044715


def _normal(x: ndarray, square: ndarray) -> ndarray:
    """(1 + erf(x / sqrt(2))) / 2, in float32 by Note [Normal distribution by tanh]."""
    if x.dtype == np.float32:
        t = square * _NORMAL[0]
        for c in _NORMAL[1:-1]:
            t += c
            t *= square
        t += _NORMAL[-1]
        t *= x
        np.tanh(t, out=t)
    else:
        t = erf(x * _SQRT_HALF)
    t += 1
    t *= 0.5
    return t


def _gelu(x: ndarray, out: ndarray) -> None:
    np.multiply(x, _normal(x, x * x), out=out)


def gelu(x: ndarray, out: Out = None) -> ndarray:
    """x by the normal distribution function."""
    return blocked(_gelu, x, out)


def _gelu_slope(x: ndarray, out: ndarray) -> None:
    square = x * x
    slope = _normal(x, square)
    square *= -0.5
    np.exp(square, out=square)
    square *= x
    square *= _PDF
    np.add(slope, square, out)


def gelu_slope(x: ndarray, out: Out = None) -> ndarray:
    """The derivative of gelu."""
    return blocked(_gelu_slope, x, out)


def _gelu_tanh(x: ndarray, out: ndarray) -> None:
    t = x * x
    t *= _TANH_SCALE * _TANH_CUBE
    t += _TANH_SCALE
    t *= x
    np.tanh(t, out=t)
    t += 1
    t *= 0.5
    np.multiply(x, t, out=out)


def gelu_tanh(x: ndarray, out: Out = None) -> ndarray:
    """gelu with the normal distribution function approximated by tanh."""
    return blocked(_gelu_tanh, x, out)


def _gelu_tanh_slope(x: ndarray, out: ndarray) -> None:
    square = x * x
    t = square * (_TANH_SCALE * _TANH_CUBE)
    t += _TANH_SCALE
    t *= x
    np.tanh(t, out=t)
    inner = square
    inner *= 3 * _TANH_SCALE * _TANH_CUBE
    inner += _TANH_SCALE
    inner *= x
    slope = t * t
    np.subtract(1, slope, out=slope)
    slope *= inner
    slope += t
    slope += 1
    np.multiply(slope, 0.5, out)


def gelu_tanh_slope(x: ndarray, out: Out = None) -> ndarray:
    """The derivative of gelu_tanh."""
    return blocked(_gelu_tanh_slope, x, out)
