"""The normal distribution of vectors."""

from __future__ import annotations

import math
from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .distribution import Distribution
from .utils import lazy_property

__all__ = ["MultivariateNormal"]


def _batch_mv(bmat: Any, bvec: Any) -> Any:
    """Products of matrices [..., n, m] with vectors [..., m]; the batches are broadcast."""
    return mt.matmul(bmat, bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL: Any, bx: Any) -> Any:
    """The squared lengths of `inv(bL) @ bx`, of lower triangular matrices; the batches are broadcast."""
    return mt.linalg.solve_triangular(bL, bx.unsqueeze(-1), upper=False).pow(2).sum((-2, -1))


def _precision_to_scale_tril(precision: Any) -> Any:
    """The Cholesky factor of the inverse of a positive definite matrix."""
    reversed_factor = mt.linalg.cholesky(mt.flip(precision, (-2, -1)))
    inverse = mt.transpose(mt.flip(reversed_factor, (-2, -1)), -2, -1)
    identity = mt.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return mt.linalg.solve_triangular(inverse, identity, upper=False)


class MultivariateNormal(Distribution):
    """The normal distribution of vectors with mean `loc`.

    One of `covariance_matrix`, `precision_matrix` (its inverse) and `scale_tril` (its Cholesky factor) is given.

    Raises:
        ValueError: if a parameter has too few dimensions, or not exactly one of the three is given.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        matrices = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        given = [(name, value) for name, value in matrices.items() if value is not None]
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        name, matrix = given[0]
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = mt.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        self.loc = loc.expand((*batch_shape, -1))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = scale_tril
        elif covariance_matrix is not None:
            self._unbroadcasted_scale_tril = mt.linalg.cholesky(covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(precision_matrix)

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return mt.matmul(factor, factor.mT).expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        factor = self._unbroadcasted_scale_tril
        identity = mt.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
        return mt.cholesky_solve(identity, factor).expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand((*self._batch_shape, *self._event_shape))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(MultivariateNormal, _instance)
        shape = (*batch_shape, *self.event_shape)
        made.loc = self.loc.expand(shape)
        made._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                setattr(made, name, getattr(self, name).expand((*shape, *self.event_shape)))
        return self._completed(made, batch_shape, self.event_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        noise = mt.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        factor = self._unbroadcasted_scale_tril
        distance = _batch_mahalanobis(factor, value - self.loc)
        half_log_det = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - half_log_det

    def entropy(self) -> Any:
        half_log_det = self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        entropy = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + half_log_det
        return entropy.expand(self._batch_shape)
