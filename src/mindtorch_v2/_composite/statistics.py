"""Quantiles and covariances."""

from __future__ import annotations

from typing import Any

from mindtorch_v2 import _dtype
from mindtorch_v2._generated import functions as F
from mindtorch_v2._rules._common import wrap_dim
from mindtorch_v2._tensor import Tensor


def quantile(
    self: Tensor,
    q: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    interpolation: str = "linear",
) -> Tensor:
    """The q-quantiles along `dim` (of all elements without it), shape q.shape + reduced shape; NaN where there is one.

    Raises RuntimeError for other dtypes than float32 and float64, an empty input, q outside of 0 to 1, or an unknown
    interpolation.
    """
    return _quantile("quantile", self, q, dim, keepdim, interpolation)


def quantile_scalar(
    self: Tensor,
    q: float,
    dim: int | None = None,
    keepdim: bool = False,
    interpolation: str = "linear",
) -> Tensor:
    """`quantile` for one number q."""
    return _quantile("quantile", self, _number("quantile", q, self), dim, keepdim, interpolation)


def nanquantile(
    self: Tensor,
    q: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    interpolation: str = "linear",
) -> Tensor:
    """`quantile` of what is not NaN."""
    return _quantile("nanquantile", self, q, dim, keepdim, interpolation)


def nanquantile_scalar(
    self: Tensor,
    q: float,
    dim: int | None = None,
    keepdim: bool = False,
    interpolation: str = "linear",
) -> Tensor:
    """`nanquantile` for one number q."""
    return _quantile(
        "nanquantile",
        self,
        _number("nanquantile", q, self),
        dim,
        keepdim,
        interpolation,
    )


def _number(op: str, q: float, self: Tensor) -> Tensor:
    if not 0 <= q <= 1:
        raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")
    return F.scalar_tensor(q, dtype=self.dtype, device=self.device)


def _check(op: str, self: Tensor, q: Tensor, interpolation: str) -> None:
    if not self.numel():
        raise RuntimeError(f"{op}() input tensor must be non-empty")
    if q.dim() > 1:
        raise RuntimeError(f"{op}() q must be a scalar or 1D tensor")
    if self.dtype not in (_dtype.float32, _dtype.float64):
        raise RuntimeError(f"{op}() input tensor must be either float or double dtype")
    if q.dtype is not self.dtype:
        raise RuntimeError(f"{op}() q tensor must be same dtype as the input tensor")
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(
            f"{op}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if self.device.type == "cpu" and not bool(F.all(F.logical_and(q >= 0, q <= 1)).item()):
        raise RuntimeError(f"{op}() q values must be in the range [0, 1]")


def _quantile(op: str, self: Tensor, q: Tensor, dim: int | None, keepdim: bool, interpolation: str) -> Tensor:
    _check("quantile", self, q, interpolation)
    ndim = self.dim()
    if dim is not None:
        wrap_dim(dim, ndim)
    if dim is None:
        rows = F.reshape(self, [-1])
        reduced = [1] * ndim
    else:
        rows = F.movedim(self, dim, -1) if ndim else F.reshape(self, [1])
        reduced = [1 if d == dim % ndim else n for d, n in enumerate(self.shape)] if ndim else []
    ordered = F.sort(rows, -1)[0]
    last = ordered.shape[-1] - 1
    points = F.reshape(q, [-1])
    nan = F.isnan(ordered)
    if op == "nanquantile":
        counts = F.sum(F.logical_not(nan), [-1], True)
        ranks = F.clamp(F.mul(points, F.sub(counts, 1)), 0)
    else:
        # Sorted NaNs stand last, so the last rank finds them.
        ranks = F.where(F.any(nan, -1, True), float(last), F.mul(points, last))
    if interpolation in ("lower", "higher", "nearest"):
        pick = {"lower": F.floor, "higher": F.ceil, "nearest": F.round}[interpolation]
        values = F.gather(ordered, -1, F.to(pick(ranks), _dtype.int64))
    else:
        below = F.floor(ranks)
        low = F.gather(ordered, -1, F.to(below, _dtype.int64))
        high = F.gather(ordered, -1, F.to(F.ceil(ranks), _dtype.int64))
        weight = 0.5 if interpolation == "midpoint" else F.to(F.sub(ranks, below), self.dtype)
        values = F.lerp(low, high, weight)
    values = F.movedim(values, -1, 0)
    if keepdim:
        return F.reshape(values, [*([] if q.dim() == 0 else [q.shape[0]]), *reduced])
    return F.squeeze(values, 0) if q.dim() == 0 else values


def _check_weights(name: str, weights: Tensor, wanted: str, right: bool, observations: int) -> None:
    if weights.dim() > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.dim()} dimensions"
        )
    if not right:
        raise RuntimeError(
            f"cov(): expected {name} to have {wanted} dtype but got {name} with {weights.dtype.cpp} dtype"
        )
    if weights.numel() != observations:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got "
            f"{weights.numel()} != {observations}"
        )
    if weights.device.type == "cpu" and observations and F.min(weights).item() < 0:
        raise RuntimeError(f"cov(): {name} cannot be negative")


def cov(
    self: Tensor,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """The covariance matrix of variables in rows, observations in columns.

    Raises RuntimeError for more than two dimensions or bool.
    """
    if self.dim() > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {self.dim()} dimensions"
        )
    if self.dtype is _dtype.bool:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = F.reshape(self, [1, -1]) if self.dim() < 2 else self
    count = x.shape[1]
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        x = F.to(x, _dtype.get_default_dtype())
    weights: Any = None
    real = x.dtype.to_real()
    if fweights is not None:
        kind = fweights.dtype
        integral = not (kind.is_floating_point or kind.is_complex or kind is _dtype.bool)
        _check_weights("fweights", fweights, "integral", integral, count)
        weights = F.to(fweights, real)
    if aweights is not None:
        _check_weights("aweights", aweights, "floating point", aweights.dtype.is_floating_point, count)
        weights = aweights if weights is None else F.mul(weights, aweights)
    if weights is None:
        total: Any = count
        mean = F.mean(x, [1], True) if count else F.sum(x, [1], True)
    else:
        total = F.sum(weights)
        if weights.device.type == "cpu" and total.item() == 0:
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        mean = F.div(F.sum(F.mul(x, weights), [1], True), total)
    if aweights is None:
        freedom = F.sub(total, correction) if isinstance(total, Tensor) else total - correction
    else:
        freedom = F.sub(total, F.div(F.mul(F.sum(F.mul(weights, aweights)), correction), total))
    centered = F.sub(x, mean)
    scaled = centered if weights is None else F.mul(centered, weights)
    product = F.matmul(centered, F.conj(F.transpose(scaled, 0, 1)))
    if not isinstance(freedom, Tensor):
        freedom = max(freedom, 0)
    return F.squeeze(F.div(product, F.clamp(freedom, 0) if isinstance(freedom, Tensor) else freedom))


def corrcoef(self: Tensor) -> Tensor:
    """The correlation matrix of variables in rows. Raises RuntimeError for more than two dimensions."""
    if self.dim() > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {self.dim()} dimensions"
        )
    covariance = cov(self)
    if covariance.dim() == 0:
        return F.div(covariance, covariance)
    deviation = F.sqrt(F.diagonal(covariance))
    scaled = F.div(F.div(covariance, F.unsqueeze(deviation, 1)), F.unsqueeze(deviation, 0))
    return F.clamp(scaled, -1, 1) if not scaled.dtype.is_complex else scaled
