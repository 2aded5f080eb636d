"""Student's t-distribution."""

from __future__ import annotations

import math
from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t-distribution with `df` degrees of freedom, moved to `loc` and stretched by `scale`."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return mt.where(self.df <= 1, mt.full_like(self.loc, float("nan")), self.loc)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        finite = self.scale.pow(2) * self.df / (self.df - 2)
        unbounded = mt.where(self.df <= 1, mt.full_like(self.df, float("nan")), mt.full_like(self.df, float("inf")))
        return mt.where(self.df > 2, finite, unbounded)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._expand_parameters(StudentT, batch_shape, _instance, "df", "loc", "scale")
        made._chi2 = self._chi2.expand(batch_shape)
        return made

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        normal = mt.randn(shape, dtype=self.df.dtype, device=self.df.device)
        return self.loc + self.scale * normal * mt.rsqrt(self._chi2.rsample(sample_shape) / self.df)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        normaliser = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + mt.lgamma(0.5 * self.df)
            - mt.lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * mt.log1p(y**2.0 / self.df) - normaliser

    def entropy(self) -> Any:
        log_beta = mt.lgamma(0.5 * self.df) + math.lgamma(0.5) - mt.lgamma(0.5 * (self.df + 1))
        return (
            self.scale.log()
            + 0.5 * (self.df + 1) * (mt.digamma(0.5 * (self.df + 1)) - mt.digamma(0.5 * self.df))
            + 0.5 * self.df.log()
            + log_beta
        )
