"""Pointwise arithmetic on the CPU, where neither a numpy ufunc nor the entry's block alone does.

Operands arrive in the dtype of the computation (never float16 or bfloat16), numbers that stand for tensors as 0-dim
arrays. With `out` a kernel writes there and returns it; `out` may be one of the operands.

Some stand here although their entries have a block, which holds for floating-point numbers: integers and complex numbers need more (`pow`, `div_mode`,
`sign`, `nan_to_num`, `log1p`, `logaddexp`), or less is computed than a block says (`lerp` by a number).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...._dispatch.native import kernel
from ...._dtype import float_limits
from .blocked import chosen
from .elements import fused, rint

Array = np.ndarray
Out = Array | None


def _store(value: Any, out: Out) -> Array:
    if out is None:
        return value
    out[...] = value
    return out


# --- sums, products, quotients ------------------------------------------------------------------------------------


def _refuse_zero(other: Array) -> None:
    if other.dtype.kind in "iu" and not other.all():
        raise RuntimeError("ZeroDivisionError")


@kernel
def floor_divide(self: Array, other: Array, out: Out = None) -> Array:
    """The quotient rounded down. RuntimeError for an integer division by zero."""
    _refuse_zero(other)
    return np.floor_divide(self, other, out)


def trunc_divide(self: Array, other: Array, out: Out = None) -> Array:
    """The quotient rounded to zero. RuntimeError for an integer division by zero."""
    if self.dtype.kind == "f":
        return np.trunc(np.divide(self, other), out)
    _refuse_zero(other)
    quotient = np.floor_divide(self, other)
    if self.dtype.kind == "i":
        # C truncates where Python floors: one more when the signs differ and something remains.
        quotient += ((self < 0) != (other < 0)) & (quotient * other != self)
    return _store(quotient, out)


@kernel
def div_mode(self: Array, other: Array, rounding_mode: str | None, out: Out = None) -> Array:
    """The quotient by rounding mode: None, 'trunc' or 'floor'."""
    if rounding_mode is None:
        return np.divide(self, other, out)
    return (floor_divide if rounding_mode == "floor" else trunc_divide)(self, other, out)


@kernel
def remainder(self: Array, other: Array, out: Out = None) -> Array:
    """The remainder with the sign of `other`; a zero has that of `self`, as in PyTorch. RuntimeError for an integer division by zero."""
    _refuse_zero(other)
    if self.dtype.kind != "f":
        return np.remainder(self, other, out)
    rest = np.fmod(self, other)
    return _store(np.where((rest != 0) & ((other < 0) != (rest < 0)), rest + other, rest), out)


@kernel
def fmod(self: Array, other: Array, out: Out = None) -> Array:
    """The remainder with the sign of `self`. RuntimeError for an integer division by zero."""
    _refuse_zero(other)
    return np.fmod(self, other, out)


# --- powers -------------------------------------------------------------------------------------------------------


def pow(self: Array, exponent: Array, out: Out = None) -> Array:
    """self ** exponent. For integers a negative power is the truncated reciprocal: 0 except for bases 1 and -1."""
    if self.dtype.kind == "b":  # only to the power of a truth value that is a number
        return np.logical_or(self, np.logical_not(exponent), out)
    if exponent.ndim == 0:
        simple = (_FLOAT_POWERS if self.dtype.kind == "f" else _POWERS).get(exponent.item())
        if simple is not None:
            return simple(self, out)
    if self.dtype.kind == "i":
        negative = exponent < 0
        if np.any(negative):
            odd = (exponent & 1).astype(bool)
            units = np.where(self == 1, 1, np.where(self == -1, np.where(odd, -1, 1), 0))
            positive = np.power(self, np.where(negative, exponent.dtype.type(0), exponent))
            return _store(np.where(negative, units.astype(self.dtype), positive), out)
    return np.power(self, exponent, out)


def _reciprocal_root(self: Array, out: Out) -> Array:
    return np.divide(1, np.sqrt(self), out)


def _cube(self: Array, out: Out) -> Array:
    return np.multiply(np.multiply(self, self), self, out)


def _reciprocal_square(self: Array, out: Out) -> Array:
    return np.reciprocal(np.multiply(self, self), out)


# Exponents for which a product or a root is both faster and what PyTorch computes.
_POWERS: dict[Any, Any] = {2: np.square, 3: _cube}
_FLOAT_POWERS: dict[Any, Any] = {
    0.5: np.sqrt,
    -1: np.reciprocal,
    -0.5: _reciprocal_root,
    -2: _reciprocal_square,
    **_POWERS,
}


# --- rounding, signs, limits --------------------------------------------------------------------------------------


def round_decimals(self: Array, decimals: int, out: Out = None) -> Array:
    """Rounded half to even at a decimal place."""
    if self.dtype.kind != "f" or decimals == 0:
        return rint(self, out)
    scale = self.dtype.type(10.0 ** abs(decimals))
    if decimals > 0:
        return np.divide(np.rint(self * scale), scale, out)
    return np.multiply(np.rint(self / scale), scale, out)


@kernel
def clamp_min(self: Array, low: Any, out: Out = None) -> Array:
    return np.maximum(self, low, out=out)


@kernel
def clamp_max(self: Array, high: Any, out: Out = None) -> Array:
    return np.minimum(self, high, out=out)


@kernel
def sign(self: Array, out: Out = None) -> Array:
    """-1, 0 or 1; 0 for NaN. numpy's own takes one pass, and -1 is no number of unsigned dtypes."""
    if self.dtype.kind == "b":
        return _store(self.copy(), out)
    value = np.sign(self)
    if self.dtype.kind == "f":
        value = np.where(np.isnan(value), self.dtype.type(0), value)
    return _store(value, out)


def sgn(self: Array, out: Out = None) -> Array:
    """`sign`; for complex numbers the unit of the same direction."""
    return np.sign(self, out) if self.dtype.kind == "c" else sign(self, out)


@kernel
def nan_to_num(
    self: Array,
    nan: float | None,
    posinf: float | None,
    neginf: float | None,
    out: Out = None,
) -> Array:
    """NaN and infinities replaced; by 0 and the limits of the dtype where nothing is given."""
    if self.dtype.kind == "c":
        result = np.empty_like(self) if out is None else out
        part = self.real.dtype
        for name in ("real", "imag"):
            getattr(result, name)[...] = nan_to_num(np.asarray(getattr(self, name), part), nan, posinf, neginf)
        return result
    if self.dtype.kind in "bui":
        return _store(self.copy(), out)
    limits = float_limits(self.dtype)
    kind = self.dtype.type
    if self.dtype.itemsize == 2:
        # By bits, since half types compare slowly: without the sign, those of infinity are below those of NaN alone.
        infinite = np.array(np.inf, self.dtype).view(np.uint16)
        bits = self.view(np.uint16)
        value = np.array(self)
        if ((bits & np.uint16(0x7FFF)) >= infinite).any():
            value[(bits & np.uint16(0x7FFF)) > infinite] = kind(0 if nan is None else nan)
            value[bits == infinite] = kind(limits.max if posinf is None else posinf)
            value[bits == infinite | np.uint16(0x8000)] = kind(limits.min if neginf is None else neginf)
        return _store(value, out)
    value = np.where(np.isnan(self), kind(0 if nan is None else nan), self)
    value = np.where(self == np.inf, kind(limits.max if posinf is None else posinf), value)
    value = np.where(self == -np.inf, kind(limits.min if neginf is None else neginf), value)
    return _store(value, out)


def log1p(self: Array, out: Out = None) -> Array:
    """log(1 + self); of complex numbers without losing what is small beside 1, which numpy's loses."""
    if self.dtype.kind != "c":
        return np.log1p(self, out=out)
    wide = self.astype(np.complex128)
    x, y = wide.real, wide.imag
    with np.errstate(all="ignore"):
        near = 0.5 * np.log1p(x * (2 + x) + y * y)
        size = np.where((np.abs(x) < 0.5) & (np.abs(y) < 0.5), near, np.log(np.hypot(1 + x, y)))
    return _store((size + 1j * np.arctan2(y, 1 + x)).astype(self.dtype), out)


_LOG10_OF_E = 0.4342944819032518


def log10(self: Array, out: Out = None) -> Array:
    """The logarithm to base 10; of float32 by doubles, since numpy's is off by up to 3 units of the last place, at 0.001 too."""
    if self.dtype != np.float32:
        return np.log10(self, out=out)
    wide = np.log(self, dtype=np.float64)
    wide *= _LOG10_OF_E
    return _store(wide.astype(np.float32), out)


# --- three operands -----------------------------------------------------------------------------------------------


def lerp(self: Array, end: Array, weight: Any, out: Out = None) -> Array:
    """From self to end by weight, computed from the nearer end; by a number from that one alone."""
    w = np.asarray(weight, dtype=self.dtype)
    step = np.subtract(end, self)
    near = np.abs(w) < 0.5
    if w.ndim == 0:
        return fused(w, step, self, out) if near else fused(w - 1, step, end, out)
    return chosen(near, fused(w, step, self), fused(w - 1, step, end), out)


@kernel
def where(condition: Array, self: Array, other: Array) -> Array:
    """self where the condition holds, else other."""
    return chosen(condition, self, other)


# --- logarithms of sums -------------------------------------------------------------------------------------------


def logaddexp(self: Array, other: Array, out: Out = None) -> Array:
    """log(exp(self) + exp(other))."""
    if self.dtype.kind == "c":
        return _store(_complex_logaddexp(self, other), out)
    return np.logaddexp(self, other, out)


def _complex_logaddexp(x: Array, y: Array) -> Array:
    """NaN has both parts NaN; of two sums of nothing (-inf) the smaller counts, and infinities meet as directions."""
    larger, smaller = np.where(x.real < y.real, y, x), np.where(x.real < y.real, x, y)
    result = larger + np.log1p(np.exp(smaller - larger))
    equal = np.isinf(larger.real) & (larger.real == smaller.real)
    if equal.any():
        sums = np.log(_directed(smaller) + _directed(larger))
        result = np.where(equal, np.where(larger.real < 0, smaller, sums), result)
    return np.where(np.isnan(x) | np.isnan(y), np.nan * (1 + 1j), result).astype(x.dtype)


def _directed(x: Array) -> Array:
    """exp of numbers whose real part is infinite."""
    made = np.empty(x.shape, x.dtype)
    for part, of in ((made.real, np.cos(x.imag)), (made.imag, np.sin(x.imag))):
        part[...] = np.where(of == 0, 0, np.inf * of)
    return made


# --- bits ---------------------------------------------------------------------------------------------------------


def _shift(ufunc: np.ufunc, self: Array, other: Array, out: Out) -> Array:
    bits = self.dtype.itemsize * 8
    outside = (other < 0) | (other >= bits)
    if not np.any(outside):
        return ufunc(self, other, out)
    # A shift by too much leaves nothing but copies of the sign, where numpy promises nothing.
    value = ufunc(self, np.where(outside, 0, other).astype(other.dtype))
    rest = self >> (bits - 1) if ufunc is np.right_shift and self.dtype.kind == "i" else self.dtype.type(0)
    return _store(np.where(outside, rest, value), out)


@kernel
def left_shift(self: Array, other: Array, out: Out = None) -> Array:
    """self << other; 0 for a shift that is negative or as wide as the type."""
    return _shift(np.left_shift, self, other, out)


@kernel
def right_shift(self: Array, other: Array, out: Out = None) -> Array:
    """self >> other; the sign alone for a shift that is negative or as wide as the type."""
    return _shift(np.right_shift, self, other, out)


def gcd(self: Array, other: Array, out: Out = None) -> Array:
    """The greatest common divisor."""
    return np.gcd(self, other, out)


# --- complex numbers ----------------------------------------------------------------------------------------------


def angle(self: Array) -> Array:
    """The argument of a complex number; of a real one 0, pi or NaN."""
    if self.dtype.kind == "c":
        return np.angle(self)
    value = np.where(self < 0, math.pi, 0.0)
    if self.dtype.kind == "f":
        return np.where(np.isnan(self), np.nan, value).astype(self.dtype)
    return value


@kernel
def complex_(real: Array, imag: Array) -> Array:
    """A complex array of two parts."""
    real, imag = np.broadcast_arrays(real, imag)
    result = np.empty(real.shape, np.complex64 if real.dtype == np.float32 else np.complex128)
    result.real = real
    result.imag = imag
    return result


def polar(abs: Array, angle: Array) -> Array:
    """A complex array of magnitude and angle."""
    return complex_(abs * np.cos(angle), abs * np.sin(angle))


def frexp(self: Array) -> tuple[Array, Array]:
    """Mantissa and exponent."""
    return np.frexp(self)


def ldexp(self: Array, other: Array, out: Out = None) -> Array:
    """self * 2 ** other."""
    return np.multiply(self, np.exp2(other), out)
