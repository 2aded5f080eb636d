"""The half of a Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .cauchy import Cauchy
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """The absolute value of a Cauchy variable around zero with a given `scale`."""

    arg_constraints = {"scale": constraints.positive}
    # These are known here, in place of the properties of transformed distributions.
    support: Any = constraints.nonnegative  # pyright: ignore[reportIncompatibleMethodOverride]
    has_rsample: Any = True  # pyright: ignore[reportIncompatibleMethodOverride]

    base_dist: Cauchy

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(HalfCauchy, _instance))

    @property
    def scale(self) -> Any:
        """The scale of the whole distribution."""
        return self.base_dist.scale

    @property
    def mean(self) -> Any:
        return mt.full(self._extended_shape(), math.inf, dtype=self.scale.dtype, device=self.scale.device)

    @property
    def mode(self) -> Any:
        return mt.zeros_like(self.scale)

    @property
    def variance(self) -> Any:
        return self.base_dist.variance

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        value = mt.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        return mt.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Any) -> Any:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Any:
        return self.base_dist.entropy() - math.log(2)
