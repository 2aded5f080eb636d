"""Special functions on the CPU: the error function and its relatives, gamma functions, Bessel functions.

What is here needs numpy only, is vectorised and is accurate to about one unit in the last place of float32 and 1e-15 in
float64. Functions that only few programs call are taken from scipy, which is an optional extra.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...._dispatch.native import kernel
from ...._imports import outside
from .blocked import blocked

Array = np.ndarray

# Note [Fits of the error function]. The coefficients are rational interpolants at Chebyshev nodes, computed with 60 digits,
# highest power first. ERF_ALL is erf(x)/x in x*x for |x| < 3.94, relative error 4e-9: enough for float32, where erf is 1
# beyond. ERF_NEAR is the same for |x| < 1, relative error 3e-18. ERFC is exp(x*x) erfc(x) (x + 2) in 1 / (x + 2) for x in
# 0.5 to 27.5, relative error 1e-16; erfc underflows beyond.
_ERF_ALL = (
    (
        2.2832766478768288e-11,
        -4.4941906349354785e-09,
        7.729329355447916e-07,
        4.7430591670229864e-05,
        0.0007213314035434478,
        0.008599373996715868,
        0.0695662594431318,
        0.27893056180358744,
        1.128379162467965,
    ),
    (
        8.496988403422212e-06,
        0.00018956473528524413,
        0.0026828933225797693,
        0.025096823904171218,
        0.15516178819881002,
        0.5805289864145909,
        1.0,
    ),
)
_ERF_NEAR = (
    (
        0.00019496984753178997,
        0.0018273246406360385,
        0.04530431496553584,
        0.14214874428063382,
        1.1283791670955126,
    ),
    (
        2.029955528683424e-05,
        0.0006812436819785099,
        0.010582353560685183,
        0.09325302973969972,
        0.45930937793412957,
        1.0,
    ),
)
_ERFC = (
    (
        253.76351520214612,
        343.7799727221089,
        322.9170646463383,
        219.3328056192377,
        130.54039076813535,
        62.004743758213245,
        22.202836123285724,
        9.233385849161145,
        1.232608892679039,
        0.5641895835448195,
    ),
    (
        23.390565919408672,
        9.55337054156057,
        78.00734241355025,
        44.317505185216014,
        51.893615206322124,
        43.06124154074677,
        8.714370196243198,
        12.49626561105886,
        0.18474237764787949,
        1.0,
    ),
)
_ERF_IS_ONE = 3.936  # beyond, float32's erf rounds to 1
_ERFC_IS_ZERO = 27.5


def _horner(coefficients: tuple[float, ...], x: Array) -> Array:
    """The polynomial in `x`; fresh array."""
    y = np.multiply(x, coefficients[0])
    for c in coefficients[1:-1]:
        y += c
        y *= x
    y += coefficients[-1]
    return y


def _rational(fit: tuple[tuple[float, ...], tuple[float, ...]], x: Array) -> Array:
    y = _horner(fit[0], x)
    y /= _horner(fit[1], x)
    return y


def _erf_float32(x: Array, out: Array) -> None:
    z = x.astype(np.float64)
    np.clip(z, -_ERF_IS_ONE, _ERF_IS_ONE, out=z)
    y = _rational(_ERF_ALL, z * z)
    y *= z
    out[...] = y


def _erfc_positive(x: Array) -> Array:
    """erfc for x of at least 0.5, in float64."""
    x = np.minimum(x, _ERFC_IS_ZERO)
    s = 1.0 / (x + 2.0)
    y = _rational(_ERFC, s)
    y *= s
    # exp(-x * x) would lose the digits that x * x rounds away, so that part is taken out exactly.
    head = np.trunc(x * 16.0)
    head *= 0.0625
    y *= np.exp(-head * head)
    y *= np.exp((head - x) * (head + x))
    return y


def _erf_float64(x: Array, out: Array) -> None:
    magnitude = np.abs(x)
    near = np.minimum(magnitude, 1.0)
    inner = _rational(_ERF_NEAR, near * near)
    inner *= x
    outer = 1.0 - _erfc_positive(np.maximum(magnitude, 0.5))
    np.copysign(outer, x, out=outer)
    np.copyto(out, np.where(magnitude < 1.0, inner, outer))


def _erfc_float64(x: Array, out: Array) -> None:
    magnitude = np.abs(x)
    near = np.minimum(magnitude, 1.0)
    inner = _rational(_ERF_NEAR, near * near)
    inner *= x
    np.subtract(1.0, inner, out=inner)
    outer = _erfc_positive(np.maximum(magnitude, 0.5))
    outer = np.where(x < 0, 2.0 - outer, outer)
    np.copyto(out, np.where(magnitude < 0.5, inner, outer))


def _erfc_float32(x: Array, out: Array) -> None:
    wide = np.empty(x.shape)
    _erfc_float64(x.astype(np.float64), wide)
    out[...] = wide


def erf(self: Array, out: Array | None = None) -> Array:
    """The error function of float32 or float64."""
    return blocked(_erf_float32 if self.dtype == np.float32 else _erf_float64, self, out)


def erfc(self: Array, out: Array | None = None) -> Array:
    """1 - erf without cancellation."""
    return blocked(_erfc_float32 if self.dtype == np.float32 else _erfc_float64, self, out)


def _erfinv(self: Array, out: Array) -> None:
    x = np.abs(self.astype(np.float64))
    inside = np.where(x < 1.0, x, 0.0)
    # Winitzki's closed form starts within 2e-3; Halley's steps then treble the digits. In the tail the step works on
    # erfc, where 1 - x is exact.
    tail = 1.0 - inside
    w = np.log(tail * (1.0 + inside))
    a = 0.147
    b = 2.0 / (math.pi * a) + 0.5 * w
    y = np.sqrt(np.sqrt(b * b - w / a) - b)
    error = np.empty_like(y)
    for _ in range(3):
        _erfc_float64(y, error)
        far = error - tail
        _erf_float64(y, error)
        difference = np.where(inside < 0.5, inside - error, far)
        step = difference * np.exp(y * y) * (math.sqrt(math.pi) / 2.0)
        y += step / (1.0 - np.minimum(y * step, 0.5))
    y = np.where(x == 1.0, np.inf, np.where(x < 1.0, y, np.nan))
    np.copysign(y, self, out, casting="same_kind")


def erfinv(self: Array, out: Array | None = None) -> Array:
    """The inverse of erf; infinite at -1 and 1, NaN outside."""
    return blocked(_erfinv, self, out)


def _store(value: Array, like: Array, out: Array | None) -> Array:
    """`value` in the dtype of `like`, in `out` if there is one."""
    if out is None:
        return np.asarray(value).astype(like.dtype, copy=False)
    out[...] = value
    return out


def _lgamma_scalar(x: float) -> float:
    try:
        return math.lgamma(x)
    except ValueError:  # a pole
        return math.inf


_lgamma_loop = np.frompyfunc(_lgamma_scalar, 1, 1)


_EULER_GAMMA = 0.5772156649015329


@functools.cache
def _lgamma_series() -> tuple[float, ...]:
    """Taylor's coefficients of lgamma(2 + z), highest power first: (-1)^k (zeta(k) - 1) / k, and 1 - gamma."""
    k = np.arange(2.0, 32.0)
    terms = _zeta(k, np.float64(2.0)) / k * np.where(k % 2, -1.0, 1.0)
    return (*(float(t) for t in terms[::-1]), 1.0 - _EULER_GAMMA, 0.0)


@kernel
def lgamma(self: Array, out: Array | None = None) -> Array:
    """The logarithm of |gamma|; infinite at the poles."""
    x = self.astype(np.float64)
    value = np.asarray(_lgamma_loop(x), dtype=np.float64)
    # Around its zeros at 1 and 2 the series keeps the digits that the general formula cancels.
    near = (x > 0.5) & (x < 2.5)
    if near.any():
        one = x < 1.5
        z = np.where(near, np.where(one, x - 1.0, x - 2.0), 0.0)
        series = _horner(_lgamma_series(), z)
        value = np.where(near, np.where(one, series - np.log1p(z), series), value)
    return _store(value, self, out)


# B(2k) / (2k) for k = 1, 2, ...: the asymptotic series of digamma.
_DIGAMMA_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


@kernel
def digamma(self: Array, out: Array | None = None) -> Array:
    """The logarithmic derivative of gamma: NaN at negative integers, -inf at 0, inf at -0."""
    x = self.astype(np.float64)
    mirrored = x < 0.5
    fraction = x - np.trunc(x)
    # psi(x) = psi(1 - x) - pi / tan(pi x); the fraction keeps the tangent exact for large |x|.
    reflection = np.where(
        mirrored,
        -math.pi / np.tan(math.pi * np.where(fraction == 0, 0.25, fraction)),
        0.0,
    )
    y = np.where(mirrored, 1.0 - x, x)
    shift = np.zeros_like(y)
    for _ in range(10):
        low = y < 10.0
        shift = np.where(low, shift - 1.0 / y, shift)
        y = np.where(low, y + 1.0, y)
    inverse = 1.0 / (y * y)
    series = inverse * _horner(_DIGAMMA_SERIES[::-1], inverse)
    value = np.log(y) - 0.5 / y - series + shift + reflection
    value = np.where((fraction == 0) & (x < 0), np.nan, value)
    value = np.where(x == 0, np.copysign(np.inf, -x), value)
    value = np.where(np.isposinf(x), np.inf, np.where(np.isneginf(x), np.nan, value))
    return _store(value, self, out)


# (2k)! / B(2k): the corrections of the Euler-Maclaurin sum of zeta.
_ZETA_TAIL = (
    12.0,
    -720.0,
    30240.0,
    -1209600.0,
    47900160.0,
    -1307674368000.0 / 691.0,
    74724249600.0,
    -10670622842880000.0 / 3617.0,
    5109094217170944000.0 / 43867.0,
    -802857662698291200000.0 / 174611.0,
)


def _zeta(x: Array, q: Array) -> Array:
    """Hurwitz's zeta for x > 1 in float64 by Euler and Maclaurin's sum."""
    x, q = np.broadcast_arrays(x.astype(np.float64), q.astype(np.float64))
    terms = 12
    # The sum starts beyond the poles: every term below q = 0 is added one by one.
    lowest = int(np.min(np.where(np.isfinite(q), q, 0.0), initial=0.0))
    steps = min(max(terms - lowest, terms), 200)
    total = np.zeros(x.shape)
    a = q.copy()
    for _ in range(steps):
        total += np.power(a, -x)
        a = a + 1.0
    power = np.power(a, -x)
    total += power * a / (x - 1.0) + 0.5 * power
    factor = x.copy()
    power = power / a
    for k, denominator in enumerate(_ZETA_TAIL):
        total += factor * power / denominator
        factor = factor * (x + 2 * k + 1) * (x + 2 * k + 2)
        power = power / (a * a)
    pole = (q <= 0) & (q == np.floor(q))
    total = np.where(pole, np.inf, total)
    total = np.where((q <= 0) & ~pole & (x != np.floor(x)), np.nan, total)
    total = np.where(np.isposinf(q), 0.0, total)
    return np.where(x == 1.0, np.inf, np.where(x < 1.0, np.nan, total))


@kernel
def zeta(self: Array, other: Array, out: Array | None = None) -> Array:
    """Hurwitz's zeta function."""
    return _store(_zeta(self, other), self, out)


@kernel
def polygamma(n: int, self: Array, out: Array | None = None) -> Array:
    """The n-th derivative of digamma."""
    if n == 0:
        return digamma(self, out)
    factorial = math.factorial(n) if n <= 170 else math.inf  # beyond what float64 holds
    value = _zeta(np.float64(n + 1.0) + np.zeros(()), self) * factorial
    return _store(value if n % 2 else -value, self, out)


@kernel
def i0(self: Array, out: Array | None = None) -> Array:
    """The modified Bessel function of order 0."""
    return _store(np.i0(self.astype(np.float64)).reshape(self.shape), self, out)


@kernel
def sinc(self: Array, out: Array | None = None) -> Array:
    """sin(pi x) / (pi x), 1 at 0."""
    y = self * self.dtype.type(math.pi)
    value = np.where(
        self == 0,
        self.dtype.type(1),
        np.sin(y) / np.where(self == 0, self.dtype.type(1), y),
    )
    return _store(value, self, out)


def _scipy(name: str) -> Any:
    """A function of scipy.special. RuntimeError, saying what to install, where there is no scipy."""
    try:
        special = outside("scipy.special")
    except ImportError as error:
        raise RuntimeError(f"{name} on the CPU needs scipy: pip install mindtorch_v2[scipy]") from error
    return getattr(special, name)


def erfcx(self: Array) -> Array:
    """exp(x * x) erfc(x)."""
    return _store(_scipy("erfcx")(self), self, None)


def ndtri(self: Array) -> Array:
    """The quantile function of the normal distribution."""
    return _store(_scipy("ndtri")(self), self, None)


def log_ndtr(self: Array) -> Array:
    """The logarithm of the normal distribution function."""
    return _store(_scipy("log_ndtr")(self), self, None)


def igamma(self: Array, other: Array) -> Array:
    """The regularised lower incomplete gamma function."""
    return _store(_scipy("gammainc")(self, other), self, None)


def igammac(self: Array, other: Array) -> Array:
    """The regularised upper incomplete gamma function."""
    return _store(_scipy("gammaincc")(self, other), self, None)
