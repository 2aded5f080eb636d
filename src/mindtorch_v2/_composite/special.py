"""The functions of `torch.special` that are operators of `torch` under another name, or small sums of them."""

from __future__ import annotations

import math
from typing import Any

from mindtorch_v2._generated import functions as F
from mindtorch_v2._tensor import Tensor


def expm1(self: Tensor) -> Tensor:
    """exp(self) - 1."""
    return F.expm1(self)


def exp2(self: Tensor) -> Tensor:
    """2 ** self."""
    return F.exp2(self)


def psi(self: Tensor) -> Tensor:
    """The logarithmic derivative of gamma."""
    return F.digamma(self)


def digamma(self: Tensor) -> Tensor:
    """The logarithmic derivative of gamma."""
    return F.digamma(self)


def gammaln(self: Tensor) -> Tensor:
    """log |gamma(self)|."""
    return F.lgamma(self)


def erf(self: Tensor) -> Tensor:
    """The error function."""
    return F.erf(self)


def erfc(self: Tensor) -> Tensor:
    """1 - erf(self)."""
    return F.erfc(self)


def erfinv(self: Tensor) -> Tensor:
    """The inverse of erf."""
    return F.erfinv(self)


def xlogy(self: Any, other: Any) -> Tensor:
    """self log(other)."""
    return F.xlogy(self, other)


def i0(self: Tensor) -> Tensor:
    """The modified Bessel function of order 0."""
    return F.i0(self)


def logit(self: Tensor, eps: float | None = None) -> Tensor:
    """log(self / (1 - self))."""
    return F.logit(self, eps)


def logsumexp(self: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """log(sum(exp(self)))."""
    return F.logsumexp(self, dim, keepdim)


def expit(self: Tensor) -> Tensor:
    """1 / (1 + exp(-self))."""
    return F.sigmoid(self)


def sinc(self: Tensor) -> Tensor:
    """sin(pi self) / (pi self)."""
    return F.sinc(self)


def round(self: Tensor, decimals: int = 0) -> Tensor:
    """Rounded half to even."""
    return F.round(self, decimals=decimals)


def log1p(self: Tensor) -> Tensor:
    """log(1 + self)."""
    return F.log1p(self)


def polygamma(n: int, self: Tensor) -> Tensor:
    """The n-th derivative of digamma."""
    return F.polygamma(n, self)


def ndtr(self: Tensor) -> Tensor:
    """The distribution function of the normal distribution."""
    return F.mul(F.erfc(F.mul(self, -math.sqrt(0.5))), 0.5)


def multigammaln(self: Tensor, p: int) -> Tensor:
    """The multivariate log-gamma function."""
    return F.mvlgamma(self, p)


def gammainc(self: Any, other: Any) -> Tensor:
    """The regularised lower incomplete gamma function."""
    return F.igamma(self, other)


def gammaincc(self: Any, other: Any) -> Tensor:
    """The regularised upper incomplete gamma function."""
    return F.igammac(self, other)
