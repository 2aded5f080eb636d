"""The binomial distribution."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .distribution import Distribution, binary_parameters
from .utils import TwoOutcomes, broadcast_all

__all__ = ["Binomial"]


class Binomial(TwoOutcomes, Distribution):
    """How many of `total_count` trials succeed, each with probability `probs` (or log odds `logits`)."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
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

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_parameters(Binomial, batch_shape, _instance, "total_count", "probs", "logits", "_param")

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._param.size()

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with mt.no_grad():
            return mt.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        factorials = mt.lgamma(self.total_count + 1) - mt.lgamma(value + 1) - mt.lgamma(self.total_count - value + 1)
        # log(1 + exp(logits)), with the larger of the two taken out; its derivative at zero is 1/2.
        larger = (self.logits.clamp(min=0) + self.logits - self.logits.clamp(max=0)) / 2
        softplus = larger + mt.log1p(mt.exp(-mt.abs(self.logits)))
        return value * self.logits + factorials - self.total_count * softplus

    def entropy(self) -> Any:
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(mt.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        total = self._one_count("enumerate_support")
        values = mt.arange(1 + total, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    def _one_count(self, name: str) -> int:
        total = int(self.total_count.max())
        if not self.total_count.min() == total:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{name}`.")
        return total
