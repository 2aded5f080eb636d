"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .distribution import Distribution, binary_parameters
from .gamma import Gamma
from .utils import TwoOutcomes, broadcast_all

__all__ = ["NegativeBinomial"]


class NegativeBinomial(TwoOutcomes, Distribution):
    """How many successes, of probability `probs`, come before `total_count` failures."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        binary_parameters(self, probs, logits)
        if probs is not None:
            self.total_count, self.probs = broadcast_all(total_count, probs)
            self.total_count = self.total_count.type_as(self.probs)
            self._param = self.probs
        else:
            self.total_count, self.logits = broadcast_all(total_count, logits)
            self.total_count = self.total_count.type_as(self.logits)
            self._param = self.logits
        super().__init__(self._param.size(), validate_args=validate_args)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._param.size()

    @property
    def mean(self) -> Any:
        return self.total_count * mt.exp(self.logits)

    @property
    def mode(self) -> Any:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Any:
        return self.mean / mt.sigmoid(-self.logits)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_parameters(
            NegativeBinomial, batch_shape, _instance, "total_count", "probs", "logits", "_param"
        )

    def sample(self, sample_shape: Any = ()) -> Any:
        with mt.no_grad():
            rates = Gamma(self.total_count, mt.exp(-self.logits), validate_args=False).sample(sample_shape)
            return mt.poisson(rates)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        unnormalised = self.total_count * mt.nn.functional.logsigmoid(-self.logits) + (
            value * mt.nn.functional.logsigmoid(self.logits)
        )
        normaliser = -mt.lgamma(self.total_count + value) + mt.lgamma(1.0 + value) + mt.lgamma(self.total_count)
        normaliser = normaliser.masked_fill(self.total_count + value == 0.0, 0.0)
        return unnormalised - normaliser
