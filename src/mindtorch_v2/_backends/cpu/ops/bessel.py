"""Bessel functions and the Airy function on the CPU, in float64, by the Chebyshev series of `bessel_fits`.

Each function has a smooth factor near 0 and another one far from it (Abramowitz and Stegun, Handbook of Mathematical Functions, 9.1 to 9.8 and
10.4): J, Y and Ai(-x) are there sums of a cosine and a sine with slowly varying factors P and Q (9.2.5, 10.4.60), the others decay or grow
exponentially (9.7, 10.4.59). The absolute error is about 1e-15 of the largest value nearby.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...._dispatch.native import kernel
from . import bessel_fits as fits

Array = np.ndarray

_NEAR = 8.0  # where the series of J, Y and I change over
_K_NEAR = 2.0
_AIRY_BELOW, _AIRY_ABOVE = -6.0, 2.0


def _series(coefficients: Array, x: Array, low: float, high: float) -> Array:
    """The Chebyshev series of the interval (low, high) at `x`, by Clenshaw's recurrence."""
    t = (2.0 * x - (low + high)) / (high - low)
    twice = 2.0 * t
    b1, b2 = np.zeros_like(t), np.zeros_like(t)
    for c in coefficients[:0:-1]:
        b1, b2 = twice * b1 - b2 + c, b1
    return t * b1 - b2 + coefficients[0]


def _pieces(self: Array, *pieces: tuple[Array, Callable[[Array], Array]]) -> Array:
    """Each function where its mask holds, NaN elsewhere; in the dtype of `self`."""
    x = self.astype(np.float64)
    out = np.full(x.shape, np.nan)
    for mask, function in pieces:
        if mask.any():
            with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
                out[mask] = function(x[mask])
    with np.errstate(over="ignore", under="ignore"):
        return out.astype(self.dtype, copy=False)


# J and Y


def _waves(order: int, x: Array) -> tuple[Array, Array, Array]:
    """P, Q and the phase of J and Y for x above 8."""
    s = (_NEAR / x) ** 2
    p = _series((fits.P0_FAR, fits.P1_FAR)[order], s, 0.0, 1.0)
    q = _series((fits.Q0_FAR, fits.Q1_FAR)[order], s, 0.0, 1.0) / x
    return p, q, x - (order / 2 + 0.25) * math.pi


def _j_far(order: int) -> Callable[[Array], Array]:
    def far(x: Array) -> Array:
        p, q, phase = _waves(order, np.abs(x))
        value = np.sqrt(2.0 / (math.pi * np.abs(x))) * (p * np.cos(phase) - q * np.sin(phase))
        return np.where(np.isinf(x), 0.0, np.copysign(1.0, x) * value if order else value)

    return far


def _y_far(order: int) -> Callable[[Array], Array]:
    def far(x: Array) -> Array:
        p, q, phase = _waves(order, x)
        value = np.sqrt(2.0 / (math.pi * x)) * (p * np.sin(phase) + q * np.cos(phase))
        return np.where(np.isinf(x), 0.0, value)

    return far


def _j0_near(x: Array) -> Array:
    return _series(fits.J0_NEAR, x * x, 0.0, 64.0)


def _j1_near(x: Array) -> Array:
    return x * _series(fits.J1_NEAR, x * x, 0.0, 64.0)


def _y0_near(x: Array) -> Array:
    return _series(fits.Y0_NEAR, x * x, 0.0, 64.0) + 2.0 / math.pi * np.log(x) * _j0_near(x)


def _y1_near(x: Array) -> Array:
    smooth = x * _series(fits.Y1_NEAR, x * x, 0.0, 64.0)
    return np.where(x == 0, -np.inf, smooth + 2.0 / math.pi * (np.log(x) * _j1_near(x) - 1.0 / x))


@kernel
def bessel_j0(self: Array) -> Array:
    """The Bessel function of the first kind of order 0."""
    return _pieces(self, (np.abs(self) <= _NEAR, _j0_near), (np.abs(self) > _NEAR, _j_far(0)))


@kernel
def bessel_j1(self: Array) -> Array:
    """The Bessel function of the first kind of order 1."""
    return _pieces(self, (np.abs(self) <= _NEAR, _j1_near), (np.abs(self) > _NEAR, _j_far(1)))


@kernel
def bessel_y0(self: Array) -> Array:
    """The Bessel function of the second kind of order 0: -inf at 0, NaN below."""
    return _pieces(self, ((self >= 0) & (self <= _NEAR), _y0_near), (self > _NEAR, _y_far(0)))


@kernel
def bessel_y1(self: Array) -> Array:
    """The Bessel function of the second kind of order 1: -inf at 0, NaN below."""
    return _pieces(self, ((self >= 0) & (self <= _NEAR), _y1_near), (self > _NEAR, _y_far(1)))


def spherical_bessel_j0(self: Array) -> Array:
    """sin(x) / x: 1 at 0, 0 at infinities."""
    x = self.astype(np.float64)
    with np.errstate(invalid="ignore"):
        value = np.where(np.isinf(x), 0.0, np.sin(x) / np.where(x == 0, 1.0, x))
    return np.where(x == 0, 1.0, value).astype(self.dtype, copy=False)


# I and K


def _i_scaled(order: int, x: Array) -> Array:
    """exp(-|x|) I(x)."""
    y = np.abs(x)
    near = _series((fits.I0_NEAR, fits.I1_NEAR)[order], np.minimum(y, _NEAR), 0.0, _NEAR)
    far = _series((fits.I0_FAR, fits.I1_FAR)[order], _NEAR / np.maximum(y, _NEAR), 0.0, 1.0)
    value = np.where(y <= _NEAR, near * x if order else near, far / np.sqrt(np.maximum(y, _NEAR)))
    return np.where(y > _NEAR, np.copysign(value, x), value) if order else value


def _i(order: int) -> Callable[[Array], Array]:
    def value(x: Array) -> Array:
        half = np.exp(np.abs(x) / 2)  # exp(x) overflows before the value does
        return _i_scaled(order, x) * half * half  # NaN at infinities, as PyTorch has it

    return value


@kernel
def i0e(self: Array) -> Array:
    """The exponentially scaled modified Bessel function of order 0."""
    return _pieces(self, (~np.isnan(self), lambda x: _i_scaled(0, x)))


@kernel
def i1e(self: Array) -> Array:
    """The exponentially scaled modified Bessel function of order 1."""
    return _pieces(self, (~np.isnan(self), lambda x: _i_scaled(1, x)))


def modified_bessel_i0(self: Array) -> Array:
    """The modified Bessel function of the first kind of order 0."""
    return _pieces(self, (~np.isnan(self), _i(0)))


@kernel
def modified_bessel_i1(self: Array) -> Array:
    """The modified Bessel function of the first kind of order 1."""
    return _pieces(self, (~np.isnan(self), _i(1)))


def _k_near(order: int) -> Callable[[Array], Array]:
    def near(x: Array) -> Array:
        # A product with log(0) times 0 at 0 itself would be NaN.
        log = np.log(np.where(x == 0, 1.0, x / 2)) * _i_scaled(order, x) * np.exp(x)
        if order:
            return np.where(x == 0, np.inf, _series(fits.K1_NEAR, x * x, 0.0, 4.0) / x + log)
        return np.where(x == 0, np.inf, _series(fits.K0_NEAR, x * x, 0.0, 4.0) - log)

    return near


def _k_far(order: int) -> Callable[[Array], Array]:
    """exp(x) K(x)."""
    fit = (fits.K0_FAR, fits.K1_FAR)[order]
    return lambda x: _series(fit, _K_NEAR / x, 0.0, 1.0) / np.sqrt(x)


def _k(self: Array, order: int, scaled: bool) -> Array:
    near, far = _k_near(order), _k_far(order)
    return _pieces(
        self,
        ((self >= 0) & (self <= _K_NEAR), lambda x: near(x) * np.exp(x) if scaled else near(x)),
        (self > _K_NEAR, lambda x: far(x) if scaled else far(x) * np.exp(-x)),
    )


def modified_bessel_k0(self: Array) -> Array:
    """The modified Bessel function of the second kind of order 0: inf at 0, NaN below."""
    return _k(self, 0, False)


def modified_bessel_k1(self: Array) -> Array:
    """The modified Bessel function of the second kind of order 1: inf at 0, NaN below."""
    return _k(self, 1, False)


def scaled_modified_bessel_k0(self: Array) -> Array:
    """exp(x) times the modified Bessel function of the second kind of order 0."""
    return _k(self, 0, True)


def scaled_modified_bessel_k1(self: Array) -> Array:
    """exp(x) times the modified Bessel function of the second kind of order 1."""
    return _k(self, 1, True)


# Ai

_ZETA_ABOVE = 2.0 / 3.0 * _AIRY_ABOVE**1.5
_ZETA_BELOW = 2.0 / 3.0 * (-_AIRY_BELOW) ** 1.5


def _airy_far(x: Array) -> Array:
    zeta = 2.0 / 3.0 * x * np.sqrt(x)
    return _series(fits.AI_FAR, _ZETA_ABOVE / zeta, 0.0, 1.0) * np.exp(-zeta) / np.sqrt(np.sqrt(x))


def _airy_waves(x: Array) -> Array:
    y = -x
    zeta = 2.0 / 3.0 * y * np.sqrt(y)
    s, phase = (_ZETA_BELOW / zeta) ** 2, zeta + math.pi / 4
    p, q = _series(fits.AI_P, s, 0.0, 1.0), _series(fits.AI_Q, s, 0.0, 1.0) / zeta
    return (p * np.sin(phase) - q * np.cos(phase)) / np.sqrt(np.sqrt(y))


def airy_ai(self: Array) -> Array:
    """The Airy function Ai; NaN at infinities."""
    finite = np.isfinite(self)
    return _pieces(
        self,
        ((self >= _AIRY_BELOW) & (self <= _AIRY_ABOVE), lambda x: _series(fits.AI_NEAR, x, _AIRY_BELOW, _AIRY_ABOVE)),
        ((self > _AIRY_ABOVE) & finite, _airy_far),
        ((self < _AIRY_BELOW) & finite, _airy_waves),
    )
