"""Pointwise operators without an aclnn function of their own."""

from __future__ import annotations

import math
from typing import Any

from ...._dispatch import ops
from ...._tensor import Tensor


def hypot(out: Any, self: Any, other: Any) -> Any:
    """By the larger of both, so that squares do not overflow."""
    first, second = ops.abs(self), ops.abs(other)
    large, small = ops.maximum(first, second), ops.minimum(first, second)
    ratio = ops.div(small, ops.where(large == 0, ops.ones_like(large), large))
    made = ops.mul(large, ops.sqrt(ops.add(ops.square(ratio), 1)))
    return ops.where(ops.isinf(large), ops.abs(large), made)


def sgn(out: Any, self: Any) -> Any:
    if not self.is_complex():
        return ops.sign(self)
    size = ops.abs(self)
    return ops.div(self, ops.where(size == 0, ops.ones_like(size), size))


def fmax(out: Any, self: Any, other: Any) -> Any:
    """The one that is a number, where the other is NaN."""
    return ops.where(ops.isnan(self), other, ops.where(ops.isnan(other), self, ops.maximum(self, other)))


def fmin(out: Any, self: Any, other: Any) -> Any:
    return ops.where(ops.isnan(self), other, ops.where(ops.isnan(other), self, ops.minimum(self, other)))


def deg2rad(out: Any, self: Any) -> Any:
    return ops.mul(self, math.pi / 180)


def rad2deg(out: Any, self: Any) -> Any:
    return ops.mul(self, 180 / math.pi)


def heaviside(out: Any, self: Any, values: Any) -> Any:
    step = ops._to_copy(ops.gt(self, 0), dtype=self.dtype)
    step = ops.where(ops.eq(self, 0), values, step)
    return ops.where(ops.isnan(self), self, step) if self.is_floating_point() else step


def copysign(out: Any, self: Any, other: Any) -> Any:
    size = ops.abs(self)
    return ops.where(ops.signbit(other), ops.neg(size), size)


def logit_backward(out: Any, grad_output: Any, self: Any, eps: float | None) -> Any:
    low, high, outside = (0.0, 1.0, math.nan) if eps is None or eps < 0 else (eps, 1 - eps, 0.0)
    slope = ops.div(grad_output, ops.mul(self, ops.rsub(self, 1)))
    return ops.masked_fill(slope, ops.logical_or(ops.lt(self, low), ops.gt(self, high)), outside)


def xlog1py(out: Any, self: Any, other: Any) -> Any:
    made = ops.mul(self, ops.log1p(other))
    made = ops.where(ops.eq(self, 0), ops.zeros_like(made), made)
    return ops.where(ops.isnan(other), other, made)


def entr(out: Any, self: Any) -> Any:
    made = ops.neg(ops.mul(self, ops.log(self)))
    made = ops.masked_fill(made, ops.eq(self, 0), 0.0)
    return ops.masked_fill(made, ops.lt(self, 0), -math.inf)


def lcm(out: Any, self: Any, other: Any) -> Any:
    common = ops.gcd(self, other)
    safe = ops.where(ops.eq(common, 0), ops.ones_like(common), common)
    return ops.abs(ops.mul(ops.floor_divide(self, safe), other))


def right_shift(out: Any, self: Any, other: Any) -> Any:
    """By divisions that round down. As in PyTorch, a shift by less than 0 or by all bits leaves the sign alone."""
    kind = out[0].dtype
    signed = not str(kind).rpartition(".")[2].startswith("u")
    bits = 8 * kind.itemsize - signed
    self, other = ops.broadcast_tensors([self, other])
    whole = ops.logical_or(ops.lt(other, 0), ops.ge(other, bits))
    power = ops.pow(2, ops.where(whole, ops.zeros_like(other), other))
    gone = ops.neg(ops._to_copy(ops.lt(self, 0), dtype=kind)) if signed else ops.zeros_like(self)
    return ops.where(whole, gone, ops.floor_divide(self, power))


def left_shift_of(out: Any, self: Any, other: Any) -> Any:
    return ops.bitwise_left_shift(_as_tensor(self, other), other)


def right_shift_of(out: Any, self: Any, other: Any) -> Any:
    return ops.bitwise_right_shift(_as_tensor(self, other), other)


def _as_tensor(value: Any, like: Any) -> Any:
    return value if isinstance(value, Tensor) else ops.full_like(like, value)


def complex_of(out: Any, real: Any, imag: Any) -> Any:
    return ops.view_as_complex(ops.stack(ops.broadcast_tensors([real, imag]), -1))


def polar(out: Any, abs: Any, angle: Any) -> Any:
    return complex_of(out, ops.mul(abs, ops.cos(angle)), ops.mul(abs, ops.sin(angle)))


def angle(out: Any, self: Any) -> Any:
    if self.is_complex():
        both = ops.view_as_real(self)
        return ops.atan2(ops.select(both, -1, 1), ops.select(both, -1, 0))
    made = ops.masked_fill(ops.zeros_like(self), ops.lt(self, 0), math.pi)
    return ops.where(ops.isnan(self), self, made)


def conj_physical(out: Any, self: Any) -> Any:
    if not self.is_complex():
        return ops.clone(self)
    both = ops.view_as_real(self)
    real, imag = ops.select(both, -1, 0), ops.select(both, -1, 1)
    return ops.view_as_complex(ops.stack([real, ops.neg(imag)], -1))


def prelu(out: Any, self: Any, weight: Any) -> Any:
    return ops.where(ops.gt(self, 0), self, ops.mul(weight, self))


_SHIFT = 8
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66)


def polygamma(out: Any, n: int, self: Any) -> Any:
    """Of the orders 0 and 1: the second by its series at arguments that recurrence makes large, reflected below 1/2."""
    if n == 0:
        return ops.digamma(self)
    if n != 1:
        return NotImplemented
    below = ops.lt(self, 0.5)
    x = ops.where(below, ops.rsub(self, 1), self)
    total = ops.zeros_like(x)
    for step in range(_SHIFT):
        total = ops.add(total, ops.reciprocal(ops.square(ops.add(x, step))))
    inverse = ops.reciprocal(ops.add(x, _SHIFT))
    square = ops.square(inverse)
    series = ops.full_like(x, _BERNOULLI[-1])
    for factor in reversed(_BERNOULLI[:-1]):
        series = ops.add(ops.mul(series, square), factor)
    series = ops.add(ops.mul(ops.mul(series, square), inverse), ops.add(inverse, ops.mul(square, 0.5)))
    made = ops.add(total, series)
    reflected = ops.sub(ops.square(ops.div(math.pi, ops.sin(ops.mul(self, math.pi)))), made)
    return ops.where(below, reflected, made)
