"""Derivatives of pointwise operators that are more than one expression.

`grad` is the gradient of the result; each function returns the gradient of one input, which the engine reduces to the
input's shape. An operand that was given as a number is a number here.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from ..._dispatch import ops
from ..._tensor import Tensor


def conj_of(x: Any) -> Any:
    """The conjugate of a complex operand; real ones (and numbers) as they are."""
    if x.__class__ is complex:
        return x.conjugate()
    return ops.conj(x) if isinstance(x, Tensor) and x._dtype.is_complex else x


def div_other(grad: Tensor, self: Any, other: Tensor) -> Tensor:
    """The divisor's gradient of self / other."""
    return -grad * conj_of((self / other) / other)


def div_self_mode(grad: Tensor, other: Any, rounding_mode: str | None) -> Tensor:
    """The dividend's gradient of a division; zero where the quotient is rounded."""
    return grad / conj_of(other) if rounding_mode is None else ops.zeros_like(grad)


def div_other_mode(grad: Tensor, self: Any, other: Tensor, rounding_mode: str | None) -> Tensor:
    """The divisor's gradient of a division; zero where the quotient is rounded."""
    return div_other(grad, self, other) if rounding_mode is None else ops.zeros_like(grad)


def floor_quotient(self: Any, other: Tensor) -> Tensor:
    """floor(self / other) of a number and a tensor."""
    number = ops.scalar_tensor(self, dtype=other.dtype, device=other.device)
    return ops.div(number, other, rounding_mode="floor")


def warning_of(grad: Tensor) -> Tensor:
    """`grad`, with a warning: that of a derivative which has something to say."""
    warnings.warn("Warn from backward", stacklevel=2)
    return grad


def not_implemented(name: str) -> Tensor:
    """The gradient of an operator that has none, though it is differentiable. NotImplementedError."""
    raise NotImplementedError(f"the derivative for '{name}' is not implemented.")


def no_derivative(name: str) -> Tensor:
    """The gradient of an operator of which nobody takes one. RuntimeError."""
    raise RuntimeError(f"derivative for aten::{name} is not implemented")


def pow_self(grad: Tensor, self: Tensor, exponent: Any) -> Tensor:
    """The gradient of the base: exponent * self ** (exponent - 1), and 0 for the exponent 0."""
    if not isinstance(exponent, Tensor):
        if exponent == 0:
            return ops.zeros_like(grad)
        if exponent == 2:
            return grad * conj_of(self * 2)
        return grad * conj_of(exponent * ops.pow(self, exponent - 1))
    return ops.where(exponent == 0, 0, grad * conj_of(exponent * ops.pow(self, exponent - 1)))


def pow_exponent(grad: Tensor, self: Any, exponent: Tensor, result: Tensor) -> Tensor:
    """The gradient of the exponent: result * log(self), and 0 for the base 0 and exponents that are not negative."""
    if not isinstance(self, Tensor):
        if self == 0:
            if exponent.dtype.is_complex:
                return ops.where(exponent.real >= 0, 0, grad * conj_of(result * -math.inf))
            return ops.where(exponent >= 0, 0, grad * (result * -math.inf))
        if not isinstance(self, complex) and self > 0:
            return grad * conj_of(result) * math.log(self)
        self = ops.scalar_tensor(self, dtype=result.dtype, device=result.device)
    zero = self == 0
    if not exponent.dtype.is_complex:
        zero = ops.logical_and(zero, exponent >= 0)
    if result.dtype.is_complex and not self.dtype.is_complex:
        self = ops._to_copy(self, dtype=result.dtype)  # a negative number has a logarithm there
    return ops.where(zero, 0, grad * conj_of(result * ops.log(self)))


def xlogy_self(grad: Tensor, self: Tensor, other: Any) -> Tensor:
    """The gradient of the factor: log(other), and 0 where self is 0 and other is not positive."""
    if not isinstance(other, Tensor):
        slope = math.log(other) if other > 0 else -math.inf if other == 0 else math.nan
        return ops.where(self == 0, 0, grad * slope) if not other > 0 else grad * slope
    return ops.where(ops.logical_and(self == 0, other <= 0), 0, grad * ops.log(other))


def xlog1py_self(grad: Tensor, self: Tensor, other: Any) -> Tensor:
    """The gradient of the factor: log1p(other), and 0 where self is 0 and other is not above -1."""
    if not isinstance(other, Tensor):
        return xlogy_self(grad, self, 1 + other)
    return ops.where(ops.logical_and(self == 0, other <= -1), 0, grad * ops.log1p(other))


def atan2_gradient(grad: Tensor, self: Any, other: Any, factor: Any) -> Tensor:
    """`factor` over the squared radius; 0 at the origin."""
    radius = self * self + other * other
    return ops.where(radius == 0, 0, grad * (factor / radius))


def sinc_gradient(grad: Tensor, self: Tensor) -> Tensor:
    """(x cos x - sin x) / (x self) with x = pi self; 0 at 0."""
    x = self * math.pi
    slope = (x * ops.cos(x) - ops.sin(x)) / (x * self)
    return ops.where(self == 0, 0, grad * conj_of(slope))


def sgn_gradient(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """0 for real numbers; for complex ones the part of grad across the direction, over the magnitude."""
    if not self.dtype.is_complex:
        return ops.zeros_like(grad)
    across = grad - result * ops.real(conj_of(result) * grad)
    return ops.where(self == 0, 0, across / ops.abs(self))


def clamp_gradient(grad: Tensor, self: Any, min: Any, max: Any, needs: tuple) -> tuple:
    """Gradients of the clamped tensor and of both bounds: to whichever gave the result."""
    mine = low = high = None
    if needs[0]:
        if min is None:
            inside = self <= max
        elif max is None:
            inside = self >= min
        else:
            inside = ops.logical_and(self >= min, self <= max)
        mine = ops.where(inside, grad, 0)
    if needs[1]:
        below = self < min if max is None else ops.logical_and(self < min, min < max)
        low = ops.where(below, grad, 0)
    if needs[2]:
        above = self > max if min is None else ops.logical_or(self > max, max < min)
        high = ops.where(above, grad, 0)
    return mine, low, high


def extremum_gradient(grad: Tensor, self: Any, other: Any, wins: Tensor) -> Tensor:
    """grad where this operand wins, half of it where both are equal (to NaN, too, as nobody loses there)."""
    loses = ops.logical_not(ops.logical_or(wins, self == other))
    for operand in (self, other):
        if isinstance(operand, Tensor):
            loses = ops.logical_and(loses, ops.logical_not(ops.isnan(operand)))
    share = ops.where(self == other, grad / 2, grad)
    return ops.masked_fill(share, loses, 0)


def copysign_gradient(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """grad with the sign of result over self; 0 where self is 0."""
    return ops.where(self == 0, 0, grad * (result / self))


def i1_gradient(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """The derivative of the Bessel function i1: i0 - i1 / x, one half at 0."""
    slope = ops.where(self == 0, 0.5, ops.i0(self) - result / self)
    return grad * slope


def i1e_gradient(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """The derivative of the scaled Bessel function i1e; one half at 0."""
    slope = ops.special_i0e(self) - result * (ops.sgn(self) + ops.reciprocal(self))
    return grad * ops.where(self == 0, 0.5, slope)


def complex_gradient(grad: Tensor) -> tuple:
    """Gradients of real and imaginary part."""
    return ops.real(grad), ops.imag(grad)


def polar_gradient(grad: Tensor, result: Tensor) -> tuple:
    """Gradients of magnitude and angle."""
    across = ops.conj(grad) * result
    unit = ops.sgn(result)
    return ops.real(ops.conj(grad) * unit), -ops.imag(across)


def angle_gradient(grad: Tensor, self: Tensor) -> Tensor:
    """0 for real numbers; for complex ones the direction across, over the magnitude."""
    if not self.dtype.is_complex:
        return ops.zeros_like(self)
    real, imag = ops.real(self), ops.imag(self)
    square = real * real + imag * imag
    slope = ops.complex(-imag / square, real / square)
    return ops.where(square == 0, 0, grad * slope)


def native_dropout_gradient(grad: Tensor, mask: Tensor, p: float, train: bool | None) -> Tensor:
    """grad where the input was kept, with the same factor."""
    if train is False:
        return grad
    return grad * (mask * (0.0 if p == 1 else 1.0 / (1.0 - p)))


__all__ = [
    "angle_gradient",
    "atan2_gradient",
    "clamp_gradient",
    "complex_gradient",
    "conj_of",
    "copysign_gradient",
    "div_other",
    "div_other_mode",
    "div_self_mode",
    "extremum_gradient",
    "floor_quotient",
    "i1_gradient",
    "i1e_gradient",
    "native_dropout_gradient",
    "no_derivative",
    "not_implemented",
    "polar_gradient",
    "pow_exponent",
    "pow_self",
    "sgn_gradient",
    "sinc_gradient",
    "warning_of",
    "xlog1py_self",
    "xlogy_self",
]
