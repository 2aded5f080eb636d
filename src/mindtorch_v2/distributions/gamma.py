"""The gamma distribution."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .distribution import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """The gamma distribution with shape `concentration` and a given `rate`."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate.pow(2)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_parameters(Gamma, batch_shape, _instance, "concentration", "rate")

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        drawn = mt._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        return drawn.clamp(min=mt.finfo(drawn.dtype).tiny)

    def log_prob(self, value: Any) -> Any:
        value = mt.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        return (
            mt.xlogy(self.concentration, self.rate)
            + mt.xlogy(self.concentration - 1, value)
            - self.rate * value
            - mt.lgamma(self.concentration)
        )

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return mt.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Any:
        return (
            self.concentration
            - mt.log(self.rate)
            + mt.lgamma(self.concentration)
            + (1.0 - self.concentration) * mt.digamma(self.concentration)
        )

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.concentration - 1, -self.rate)

    def _log_normalizer(self, x: Any, y: Any) -> Any:  # type: ignore[override]  (as many as there are parameters)
        return mt.lgamma(x + 1) + (x + 1) * mt.log(-y.reciprocal())
