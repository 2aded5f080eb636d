"""Pointwise operators without an aclnn function of their own."""

from __future__ import annotations

import math
from typing import Any

from ...._dispatch import ops


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
