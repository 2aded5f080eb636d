"""The Wishart distribution."""

from __future__ import annotations

import math
import warnings
from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .chi2 import Chi2
from .distribution import Distribution, ExponentialFamily
from .multivariate_normal import _precision_to_scale_tril
from .utils import lazy_property

__all__ = ["Wishart"]


def _mvdigamma(x: Any, p: int) -> Any:
    """The derivative of the multivariate log gamma function."""
    if not bool((x > (p - 1) / 2).all()):
        raise AssertionError("Wrong domain for multivariate digamma function.")
    return mt.digamma(
        x.unsqueeze(-1) - mt.arange(p, dtype=x.dtype, device=x.device).div(2).expand(x.shape + (-1,))
    ).sum(-1)


class Wishart(ExponentialFamily):
    """Symmetric positive definite matrices: the covariance of `df` normal vectors, times `df`.

    One of `covariance_matrix`, `precision_matrix` (its inverse) and `scale_tril` (its Cholesky factor) is given.

    Raises:
        AssertionError: if not exactly one of the three is given.
        ValueError: if it has too few dimensions, or `df` is not greater than the number of rows less 1.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> dict[str, Any]:  # type: ignore[override]  (one of them depends on the size)
        """Where the parameters lie."""
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        matrices = {
            "scale_tril": scale_tril,
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
        }
        given = [(name, value) for name, value in matrices.items() if value is not None]
        if len(given) != 1:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        name, matrix = given[0]
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        if isinstance(df, int | float):
            batch_shape = mt.Size(matrix.shape[:-2])
            self.df = mt.tensor(df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch_shape = mt.broadcast_shapes(matrix.shape[:-2], df.shape)
            self.df = df.expand(batch_shape)
        event_shape = matrix.shape[-2:]
        if bool(self.df.le(event_shape[-1] - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}.")
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        if bool(self.df.lt(event_shape[-1]).any()):
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = scale_tril
        elif covariance_matrix is not None:
            self._unbroadcasted_scale_tril = mt.linalg.cholesky(covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(precision_matrix)
        self._dist_chi2 = self._diagonal_squares()

    def _diagonal_squares(self) -> Chi2:
        """The distributions of the squared diagonal of Bartlett's factor."""
        rows = mt.arange(self._event_shape[-1], dtype=self._unbroadcasted_scale_tril.dtype, device=self.df.device)
        return Chi2(df=self.df.unsqueeze(-1) - rows.expand((*self._batch_shape, -1)))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(Wishart, _instance)
        shape = (*batch_shape, *self.event_shape)
        made._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(shape)
        made.df = self.df.expand(batch_shape)
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                setattr(made, name, getattr(self, name).expand(shape))
        Distribution.__init__(made, batch_shape, self.event_shape, validate_args=False)
        made._dist_chi2 = made._diagonal_squares()
        made._validate_args = self._validate_args
        return made

    def _expanded(self, matrix: Any) -> Any:
        return matrix.expand((*self._batch_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance."""
        return self._expanded(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return self._expanded(factor @ factor.mT)

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        factor = self._unbroadcasted_scale_tril
        identity = mt.eye(self._event_shape[-1], dtype=factor.dtype, device=factor.device)
        return self._expanded(mt.cholesky_solve(identity, factor))

    @property
    def mean(self) -> Any:
        return self.df.view((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def mode(self) -> Any:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        return mt.where(factor <= 0, mt.nan, factor).view((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def variance(self) -> Any:
        V = self.covariance_matrix
        diagonal = V.diagonal(dim1=-2, dim2=-1)
        return self.df.view((*self._batch_shape, 1, 1)) * (V.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _bartlett_sampling(self, sample_shape: Any = ()) -> Any:
        """Bartlett's decomposition: a triangle of normal numbers, with roots of chi-squared ones on its diagonal."""
        p = self._event_shape[-1]
        diagonal = self._dist_chi2.rsample(sample_shape).sqrt()
        noise = diagonal.clamp(min=mt.finfo(diagonal.dtype).eps).diag_embed(dim1=-2, dim2=-1)
        i, j = mt.tril_indices(p, p, offset=-1)
        shape = (*sample_shape, *self._batch_shape, p * (p - 1) // 2)
        noise[..., i, j] = mt.randn(shape, dtype=noise.dtype, device=noise.device)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Any:
        """Random matrices; those that come out singular are drawn again, at most `max_try_correction` times (10 unless said).

        As in PyTorch everything that is not singular is drawn again once: equal seeds give equal matrices.
        """
        tries = 10 if max_try_correction is None else max_try_correction
        sample = self._bartlett_sampling(mt.Size(sample_shape))
        again = self._any_of_batch(self.support.check(sample))
        for _ in range(tries):
            if not bool(again.any()):
                break
            new = self._bartlett_sampling(again[again].shape)
            sample = sample.index_put((again,), new)
            former, again = again, again.clone()
            again[former] = self._any_of_batch(self.support.check(new).logical_not())
        return sample

    def _any_of_batch(self, marks: Any) -> Any:
        return marks.amax(self._batch_dims) if self._batch_shape else marks

    @property
    def _batch_dims(self) -> tuple[int, ...]:
        return tuple(-(x + 1) for x in range(len(self._batch_shape)))

    def _half_log_det(self) -> Any:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        nu, p = self.df, self._event_shape[-1]
        return (
            -nu * (p * math.log(2) / 2 + self._half_log_det())
            - mt.mvlgamma(nu / 2, p=p)
            + (nu - p - 1) / 2 * mt.linalg.slogdet(value).logabsdet
            - mt.cholesky_solve(value, self._unbroadcasted_scale_tril).diagonal(dim1=-2, dim2=-1).sum(dim=-1) / 2
        )

    def entropy(self) -> Any:
        nu, p = self.df, self._event_shape[-1]
        return (
            (p + 1) * (p * math.log(2) / 2 + self._half_log_det())
            + mt.mvlgamma(nu / 2, p=p)
            - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p=p)
            + nu * p / 2
        )

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Any, y: Any) -> Any:  # type: ignore[override]  (two parameters)
        p = self._event_shape[-1]
        return (y + (p + 1) / 2) * (-mt.linalg.slogdet(-2 * x)[1] + math.log(2) * p) + mt.mvlgamma(y + (p + 1) / 2, p=p)
