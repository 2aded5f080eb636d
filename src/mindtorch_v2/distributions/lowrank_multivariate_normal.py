"""Multivariate normal distributions whose covariance is of low rank but for a diagonal."""

from __future__ import annotations

import math
from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .distribution import Distribution
from .multivariate_normal import _batch_mahalanobis, _batch_mv
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _batch_capacitance_tril(W: Any, D: Any) -> Any:
    """The Cholesky factor of I + W.T @ inv(D) @ W, [..., m, m]."""
    small = mt.matmul(W.mT / D.unsqueeze(-2), W)
    return mt.linalg.cholesky(small + mt.eye(W.size(-1), dtype=W.dtype, device=W.device))


def _batch_lowrank_logdet(W: Any, D: Any, capacitance_tril: Any) -> Any:
    """log det(W @ W.T + D), by the matrix determinant lemma."""
    return 2 * capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1) + D.log().sum(-1)


def _batch_lowrank_mahalanobis(W: Any, D: Any, x: Any, capacitance_tril: Any) -> Any:
    """x.T @ inv(W @ W.T + D) @ x, by Woodbury's identity."""
    projected = _batch_mv(W.mT / D.unsqueeze(-2), x)
    return (x.pow(2) / D).sum(-1) - _batch_mahalanobis(capacitance_tril, projected)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with mean `loc` and covariance `cov_factor @ cov_factor.mT + diag(cov_diag)`.

    Args:
        loc: [..., n].
        cov_factor: [..., n, m].
        cov_diag: [..., n].

    Raises:
        ValueError: if the shapes do not go together.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            batch_shape = mt.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc = loc.expand((*batch_shape, *event_shape))
        self.cov_diag = cov_diag.expand((*batch_shape, *event_shape))
        self.cov_factor = cov_factor.expand((*batch_shape, *cov_factor.shape[-2:]))
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(LowRankMultivariateNormal, _instance)
        shape = (*batch_shape, *self.event_shape)
        made.loc = self.loc.expand(shape)
        made.cov_diag = self.cov_diag.expand(shape)
        made.cov_factor = self.cov_factor.expand((*shape, self.cov_factor.shape[-1]))
        made._unbroadcasted_cov_factor = self._unbroadcasted_cov_factor
        made._unbroadcasted_cov_diag = self._unbroadcasted_cov_diag
        made._capacitance_tril = self._capacitance_tril
        return self._completed(made, batch_shape, self.event_shape)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @lazy_property
    def variance(self) -> Any:  # type: ignore[override]  (computed once)
        """The diagonal of the covariance."""
        return (self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag).expand(
            (*self._batch_shape, *self._event_shape)
        )

    def _expanded_matrix(self, matrix: Any) -> Any:
        return matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance."""
        # W @ W.T + D = sqrt(D) @ (K @ K.T + I) @ sqrt(D), with a matrix that is better conditioned
        n = self._event_shape[0]
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        inner = mt.matmul(scaled, scaled.mT) + mt.eye(n, dtype=scaled.dtype, device=scaled.device)
        return self._expanded_matrix(root * mt.linalg.cholesky(inner))

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        factor = self._unbroadcasted_cov_factor
        return self._expanded_matrix(mt.matmul(factor, factor.mT) + mt.diag_embed(self._unbroadcasted_cov_diag))

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance, by Woodbury's identity."""
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        part = mt.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        return self._expanded_matrix(
            mt.diag_embed(self._unbroadcasted_cov_diag.reciprocal()) - mt.matmul(part.mT, part)
        )

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        options = {"dtype": self.loc.dtype, "device": self.loc.device}
        inner = _standard_normal((*shape[:-1], self.cov_factor.shape[-1]), **options)
        outer = _standard_normal(shape, **options)
        return self.loc + _batch_mv(self._unbroadcasted_cov_factor, inner) + self._unbroadcasted_cov_diag.sqrt() * outer

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        W, D = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        distance = _batch_lowrank_mahalanobis(W, D, value - self.loc, self._capacitance_tril)
        log_det = _batch_lowrank_logdet(W, D, self._capacitance_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + log_det + distance)

    def entropy(self) -> Any:
        log_det = _batch_lowrank_logdet(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, self._capacitance_tril
        )
        return (0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + log_det)).expand(self._batch_shape)
