"""Bernoulli distributions that are continuous, so that samples carry gradients."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .distribution import Distribution, binary_parameters
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import TwoOutcomes, broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(TwoOutcomes, Distribution):
    """The log odds of a relaxed Bernoulli variable: logistic, around `logits / temperature`.

    Maddison, Mnih and Teh, "The concrete distribution" (2017).
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        binary_parameters(self, probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
            self._param = self.probs
        else:
            (self.logits,) = broadcast_all(logits)
            self._param = self.logits
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._expand_parameters(LogitRelaxedBernoulli, batch_shape, _instance, "probs", "logits", "_param")
        made.temperature = self.temperature
        return made

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._param.size()

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        drawn = clamp_probs(mt.rand(shape, dtype=probs.dtype, device=probs.device))
        return (drawn.log() - (-drawn).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value.mul(self.temperature)
        return self.temperature.log() + difference - 2 * difference.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """Values between 0 and 1 that come near to Bernoulli's with `probs` (or `logits`) as `temperature` goes to zero."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    # These are known here, in place of the properties of transformed distributions.
    support: Any = constraints.unit_interval  # pyright: ignore[reportIncompatibleMethodOverride]
    has_rsample: Any = True  # pyright: ignore[reportIncompatibleMethodOverride]

    base_dist: LogitRelaxedBernoulli

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(RelaxedBernoulli, _instance))

    @property
    def temperature(self) -> Any:
        """How far the values are from 0 and 1."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """The log odds."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self.base_dist.probs
