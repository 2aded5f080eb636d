"""Pairs of uniform numbers to pairs of normal ones.

G. E. P. Box and M. E. Muller, "A note on the generation of random normal deviates" (1958):

    radius = sqrt(-2 log(1 - u1)),  theta = 2 pi u2,  (radius cos(theta), radius sin(theta))

Note [Single precision]
PyTorch computes float32 blocks with the logarithm, sine and cosine of S. Moshier's Cephes library (`logf`, `sinf`,
`cosf`: polynomials after a reduction to [sqrt(1/2), sqrt(2)) and [-pi/4, pi/4]), eight at a time with fused multiply-
adds, whatever the C library has. They are accurate to one or two units in the last place, so a better function would
not give the same numbers. Here they are evaluated in double precision with the same roundings to float32; products that
are exact need no detour.
"""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np

from .arithmetic import SMALL, elementary

_f = np.float32


def _single(*values: float) -> tuple[float, ...]:
    return tuple(float(_f(v)) for v in values)


_SQRT_HALF = _f(0.707106781186547524)
_LOG = _single(
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
# log(2) = _LOG2_HIGH + _LOG2_LOW, the first with so few bits that its product with an exponent is exact.
_LOG2_LOW, _LOG2_HIGH = _f(-2.12194440e-4), _f(0.693359375)
_SIN = _single(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COS = _single(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_FOUR_OVER_PI = _f(1.27323954473516)
# pi/4 in three parts; the products of the first two with a small integer are exact.
_PI4_HIGH, _PI4_MIDDLE, _PI4_LOW = _f(0.78515625), _f(2.4187564849853515625e-4), float(_f(3.77489497744594108e-8))
_TWO_PI = _f(2 * math.pi)
# Pairs to a pass: seven arrays of this length stay in the second level cache.
_PAIRS = 1 << 14


class _Single:
    """The float32 transform with its scratch arrays, for up to `n` pairs at a time."""

    def __init__(self, n: int) -> None:
        self.wide, self.sum = np.empty((2, n), np.float64)
        self.a, self.b, self.c, self.d, self.radius = np.empty((5, n), np.float32)
        self.j, self.k = np.empty((2, n), np.int32)

    def narrow(self, n: int) -> None:
        """Shorten the scratch arrays to `n` (the last pass)."""
        for name, array in vars(self).items():
            setattr(self, name, array[:n])

    def fma(self, y: np.ndarray, x: np.ndarray, c: float | np.ndarray) -> None:
        """y = y * x + c with one rounding; `x` is float32 or its float64 copy."""
        self.sum[...] = y
        self.sum *= x
        self.sum += c
        y[...] = self.sum

    def horner(self, y: np.ndarray, coefficients: tuple[float, ...]) -> None:
        """y = the polynomial in `wide`, highest coefficient first."""
        np.multiply(self.wide, coefficients[0], out=self.sum)
        self.sum += coefficients[1]
        y[...] = self.sum
        for c in coefficients[2:]:
            self.fma(y, self.wide, c)

    def log(self, u: np.ndarray, out: np.ndarray) -> None:
        """out = log(u) for 0 < u <= 1, normal numbers."""
        x, e, y, z = self.a, self.b, self.c, self.d
        bits = u.view(np.int32)
        np.right_shift(bits, 23, out=self.j)
        self.j -= 126
        e[...] = self.j
        np.bitwise_and(bits, 0x7FFFFF, out=self.k)
        np.bitwise_or(self.k, 0x3F000000, out=self.k)
        mantissa = self.k.view(np.float32)
        below = mantissa < _SQRT_HALF
        e -= below
        np.add(below, _f(1), out=x)
        x *= mantissa
        x -= _f(1)
        self.wide[...] = x
        self.horner(y, _LOG)
        y *= x
        np.multiply(x, x, out=z)
        self.fma(y, z, e * _LOG2_LOW)
        z *= _f(0.5)
        y -= z
        np.add(x, y, out=out)
        e *= _LOG2_HIGH
        out += e

    def sincos(self, theta: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> None:
        """cos and sin of 0 <= theta <= 2 pi. Overwrites theta."""
        j, k, y, z = self.j, self.k, self.c, self.d
        np.multiply(theta, _FOUR_OVER_PI, out=y)
        j[...] = y
        j += 1
        j &= ~1
        y[...] = j
        theta -= y * _PI4_HIGH
        theta -= y * _PI4_MIDDLE
        np.multiply(y, -_PI4_LOW, out=self.sum, dtype=np.float64)
        self.sum += theta
        theta[...] = self.sum

        np.multiply(theta, theta, out=z)
        self.wide[...] = z
        self.horner(cos, _COS)
        cos *= z
        self.horner(sin, _SIN)
        sin *= z
        self.fma(sin, theta, theta)
        np.multiply(z, _f(-0.5), out=y)
        self.fma(cos, z, y)
        cos += _f(1)

        # Octants 2, 3, 6 and 7 exchange the two; then the signs go in by the sign bit.
        np.bitwise_and(j, 2, out=k)
        other = k.astype(bool)
        np.copyto(y, cos)
        np.copyto(cos, sin, where=other)
        np.copyto(sin, y, where=other)
        np.bitwise_and(j, 4, out=k)
        k <<= 29
        sin_bits = sin.view(np.int32)
        sin_bits ^= k
        j -= 2
        np.invert(j, out=j)
        j &= 4
        j <<= 29
        cos_bits = cos.view(np.int32)
        cos_bits ^= j


def single_blocks(data: np.ndarray) -> None:
    """Transform blocks of 16 float32 uniforms in place: (u1 * 8, u2 * 8) becomes (cosine part * 8, sine part * 8).

    `data`: contiguous, of shape (m, 16), of numbers 0 <= u < 1 with 24 bits.
    """
    data = data.reshape(-1, 2, 8)
    per_pass = _PAIRS // 8
    work = _Single(min(_PAIRS, 8 * len(data)))
    for start in range(0, len(data), per_pass):
        block = data[start : start + per_pass]
        if 8 * len(block) < len(work.a):
            work.narrow(8 * len(block))
        u1 = np.subtract(_f(1), block[:, 0]).reshape(-1)
        work.log(u1, out=work.radius)
        radius = work.radius
        radius *= _f(-2)
        np.sqrt(radius, out=radius)
        theta = np.multiply(block[:, 1], _TWO_PI).reshape(-1)
        work.sincos(theta, work.a, work.b)
        np.multiply(radius.reshape(-1, 8), work.a.reshape(-1, 8), out=block[:, 0])
        np.multiply(radius.reshape(-1, 8), work.b.reshape(-1, 8), out=block[:, 1])


def double_blocks(data: np.ndarray) -> None:
    """Transform blocks of 16 float64 uniforms in place, as `single_blocks`, with the C library's functions."""
    data = data.reshape(-1, 2, 8)
    radius = np.sqrt(-2 * elementary("log", 1 - data[:, 0].reshape(-1), exact=True))
    theta = 2 * math.pi * data[:, 1].reshape(-1)
    points = _points(radius, theta)
    data[:, 0] = points.real.reshape(-1, 8)
    data[:, 1] = points.imag.reshape(-1, 8)


def _points(radius: np.ndarray, theta: np.ndarray) -> np.ndarray[Any, np.dtype[np.complex128]]:
    """radius * cos(theta) + i radius * sin(theta), by the C library."""
    return np.fromiter(map(cmath.rect, radius.tolist(), theta.tolist()), np.complex128, len(theta))


def pairs(u: np.ndarray, exact: bool) -> np.ndarray:
    """Normal numbers of consecutive pairs (u1, u2) of float64 uniforms: cosine part, sine part, and so on.

    Here the angle comes first: theta = 2 pi u1, radius = sqrt(-2 log1p(-u2)). `u`: 1-d, of even length.
    """
    u1, u2 = u[0::2], u[1::2]
    radius = np.sqrt(-2 * elementary("log1p", -u2, exact))
    theta = 2 * math.pi * u1
    if exact or len(theta) <= SMALL:
        return _points(radius, theta).view(np.float64)
    out = np.empty_like(u)
    np.multiply(radius, np.cos(theta), out=out[0::2])
    np.multiply(radius, np.sin(theta), out=out[1::2])
    return out
