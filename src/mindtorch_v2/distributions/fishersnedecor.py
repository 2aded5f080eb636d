"""The F-distribution."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .distribution import Distribution
from .gamma import Gamma
from .utils import broadcast_all

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The F-distribution (Fisher's and Snedecor's) with `df1` and `df2` degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._expand_parameters(FisherSnedecor, batch_shape, _instance, "df1", "df2")
        made._gamma1 = self._gamma1.expand(batch_shape)
        made._gamma2 = self._gamma2.expand(batch_shape)
        return made

    @property
    def mean(self) -> Any:
        return mt.where(self.df2 > 2, self.df2 / (self.df2 - 2), mt.nan)

    @property
    def mode(self) -> Any:
        return mt.where(self.df1 > 2, (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2), mt.nan)

    @property
    def variance(self) -> Any:
        below = self.df1 * (self.df2 - 2).pow(2) * (self.df2 - 4)
        return mt.where(self.df2 > 4, 2 * self.df2.pow(2) * (self.df1 + self.df2 - 2) / below, mt.nan)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        above = self._gamma1.rsample(sample_shape).view(shape)
        below = self._gamma2.rsample(sample_shape).view(shape)
        tiny = mt.finfo(below.dtype).tiny
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        half1, half2, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        normaliser = (half1 + half2).lgamma() - half1.lgamma() - half2.lgamma()
        power = half1 * ratio.log() + (half1 - 1) * mt.log(value)
        return normaliser + power - (half1 + half2) * mt.log1p(ratio * value)
