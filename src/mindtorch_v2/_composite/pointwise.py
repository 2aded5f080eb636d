"""Pointwise operators made of others."""

from __future__ import annotations

import math
from typing import Any

from mindtorch_v2 import _dtype
from mindtorch_v2._generated import functions as F
from mindtorch_v2._rules._common import wrap_dim
from mindtorch_v2._tensor import Tensor


def positive(self: Tensor) -> Tensor:
    """self itself. Raises RuntimeError for bool."""
    if self.dtype is _dtype.bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


def float_power(self: Any, exponent: Any) -> Tensor:
    """self ** exponent in float64, or complex128 if either is complex."""
    is_complex = any(isinstance(x, complex) or (isinstance(x, Tensor) and x.dtype.is_complex) for x in (self, exponent))
    wide = _dtype.complex128 if is_complex else _dtype.float64
    base, power = (F.to(x, wide) if isinstance(x, Tensor) else x for x in (self, exponent))
    return F.pow(base, power)


def where_indices(condition: Tensor) -> tuple[Tensor, ...]:
    """The indices of what is not zero, one tensor per dimension."""
    return (
        tuple(F.unbind(F.nonzero(condition), 1)) if condition.dim() else (F.nonzero(F.reshape(condition, [1]))[:, 0],)
    )


def mvlgamma(self: Tensor, p: int) -> Tensor:
    """The multivariate log-gamma function of dimension p. Raises RuntimeError for p < 1."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if self.dtype is _dtype.bool:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if self.dtype.is_complex:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{self.dtype.cpp}'")
    if not self.dtype.is_floating_point:
        self = F.to(self, _dtype.get_default_dtype())
    if p > 100:  # all at once, which takes memory in place of time, or says that there is not so much
        halves = F.mul(F.arange(p, dtype=self.dtype, device=self.device), 0.5)
        total = F.sum(F.lgamma(F.sub(F.unsqueeze(self, -1), halves)), -1)
    else:
        total = F.lgamma(self)
        for j in range(1, p):
            total = F.add(total, F.lgamma(F.sub(self, 0.5 * j)))
    return F.add(total, p * (p - 1) * math.log(math.pi) / 4)


def polygamma_(self: Tensor, n: int) -> Tensor:
    """`polygamma` in place. Raises RuntimeError for integers, and for a negative n."""
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if not self.dtype.is_floating_point:
        kind = _dtype.get_default_dtype().cpp
        raise RuntimeError(f"result type {kind} can't be cast to the desired output type {self.dtype.cpp}")
    return self.copy_(F.polygamma(n, self))


def ldexp(self: Any, other: Any) -> Tensor:
    """self * 2 ** other."""
    return F.mul(self, F.pow(2.0, other))


def conj(self: Tensor) -> Tensor:
    """The conjugate of a complex tensor; a real one is returned itself."""
    return F._conj_physical(self) if self.dtype.is_complex else self


def resolved(self: Tensor) -> Tensor:
    """self: conjugates and negatives are never pending here."""
    return self


def renorm(self: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Each slice of `self` along `dim` whose p-norm is above `maxnorm`, scaled down to it; RuntimeError for a norm that is none."""
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if isinstance(maxnorm, complex):
        raise RuntimeError("renorm: maxnorm must be real-valued")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if self.dim() < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self.dim()} dimensions")
    at = wrap_dim(dim, self.dim())
    others = [d for d in range(self.dim()) if d != at]
    size = F.linalg_vector_norm(self, p, others, True)
    factor = F.where(F.gt(size, maxnorm), F.div(maxnorm, F.add(size, 1e-7)), F.ones_like(size))
    return F.contiguous(F.mul(self, factor))


def add_relu(self: Tensor, other: Any, alpha: Any = 1) -> Tensor:
    """relu(self + alpha * other)."""
    return F.relu(F.add(self, other, alpha=alpha))
