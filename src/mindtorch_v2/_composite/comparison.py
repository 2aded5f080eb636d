"""Comparisons of whole tensors, made of other operators."""

from __future__ import annotations

from numpy import ndarray

from mindtorch_v2 import _dtype
from mindtorch_v2._dispatch import native
from mindtorch_v2._dispatch.backends import data_needed
from mindtorch_v2._generated import functions as F
from mindtorch_v2._tensor import Tensor


def isreal(self: Tensor) -> Tensor:
    """Whether the imaginary part is zero; True for every real number. bool, shape of self."""
    if self.dtype.is_complex:
        return F.eq(F.imag(self), 0)
    return F.ones_like(self, dtype=_dtype.bool)


def isclose(
    self: Tensor,
    other: Tensor,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Tensor:
    """|self - other| <= atol + rtol * |other|, or equal. bool, broadcast shape.

    Raises RuntimeError for two dtypes or a negative tolerance.
    """
    if self.dtype is not other.dtype:
        raise RuntimeError(f"{self.dtype.cpp} did not match {other.dtype.cpp}")
    if rtol < 0:
        raise RuntimeError(f"rtol must be greater than or equal to zero, but got {rtol}")
    if atol < 0:
        raise RuntimeError(f"atol must be greater than or equal to zero, but got {atol}")
    close = F.eq(self, other)
    floating = self.dtype.is_floating_point or self.dtype.is_complex
    if equal_nan and floating:
        close = F.logical_or(close, F.logical_and(F.isnan(self), F.isnan(other)))
    if rtol == 0 and atol == 0:
        return close
    if not floating:
        self, other = (
            F.to(self, _dtype.get_default_dtype()),
            F.to(other, _dtype.get_default_dtype()),
        )
    allowed = F.add(F.abs(F.mul(other, rtol)), atol)
    actual = F.abs(F.sub(self, other))
    return F.logical_or(close, F.logical_and(F.isfinite(actual), F.le(actual, allowed)))


def allclose(
    self: Tensor,
    other: Tensor,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> bool:
    """Whether all elements are close."""
    return bool(F.all(isclose(self, other, rtol, atol, equal_nan)).item())


@native.constructor
def equal(self: Tensor, other: Tensor) -> bool:
    """Whether shapes and all elements are equal; two dtypes are compared as `eq` compares them."""
    if self.device != other.device:
        raise RuntimeError(f"Cannot compare two tensors on different devices. Got: {self.device} and {other.device}")
    if self.shape != other.shape:
        return False
    a, b = self._payload, other._payload
    if a.__class__ is b.__class__ is ndarray and a.dtype is b.dtype:
        return bool((a == b).all())
    same = F.all(F.eq(self, other))
    if same.is_meta:
        raise data_needed("equal")
    return bool(same.item())
