"""The generalized Pareto distribution."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Excesses over a threshold: values from `loc` on, stretched by `scale`, of shape `concentration` (zero: exponential)."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_parameters(GeneralizedPareto, batch_shape, _instance, "loc", "scale", "concentration")

    def _z(self, x: Any) -> Any:
        return (x - self.loc) / self.scale

    def _shape(self) -> tuple[Any, Any]:
        """(where the shape is zero, the shape with ones in those places)."""
        zero = mt.isclose(self.concentration, mt.zeros_like(self.concentration))
        return zero, mt.where(zero, mt.ones_like(self.concentration), self.concentration)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.icdf(mt.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        zero, shape = self._shape()
        y = 1 / shape + mt.ones_like(z)
        power = mt.where(y == 0, y, y * mt.log1p(shape * z))
        return mt.where(zero, -self.scale.log() - z, -self.scale.log() - power)

    def log_survival_function(self, value: Any) -> Any:
        """The logarithm of the probability of more than `value`."""
        if self._validate_args:
            self._validate_sample(value)
        zero, shape = self._shape()
        z = self._z(value)
        return mt.where(zero, -z, -mt.log1p(shape * z) / shape)

    def log_cdf(self, value: Any) -> Any:
        """The logarithm of the probability of at most `value`."""
        return mt.log1p(-mt.exp(self.log_survival_function(value)))

    def cdf(self, value: Any) -> Any:
        return mt.exp(self.log_cdf(value))

    def icdf(self, value: Any) -> Any:
        zero, shape = self._shape()
        log_tail = mt.log1p(-value)
        return mt.where(
            zero, self.loc - self.scale * log_tail, self.loc + self.scale * mt.expm1(-shape * log_tail) / shape
        )

    @property
    def mean(self) -> Any:
        known = self.concentration < 1
        shape = mt.where(known, self.concentration, 0.5)
        return mt.where(known, self.loc + self.scale / (1 - shape), mt.nan)

    @property
    def variance(self) -> Any:
        known = self.concentration < 0.5
        shape = mt.where(known, self.concentration, 0.25)
        return mt.where(known, self.scale**2 / ((1 - shape) ** 2 * (1 - 2 * shape)), mt.nan)

    def entropy(self) -> Any:
        return (mt.log(self.scale) + self.concentration + 1).expand(self._batch_shape)

    @property
    def mode(self) -> Any:
        return self.loc

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        bounded = self.concentration < 0
        upper = mt.where(bounded, self.loc - self.scale / self.concentration, mt.inf)
        return constraints.interval(self.loc, upper)
