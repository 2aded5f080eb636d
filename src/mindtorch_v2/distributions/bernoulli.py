"""The Bernoulli distribution."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .distribution import ExponentialFamily, binary_parameters
from .utils import TwoOutcomes, broadcast_all

__all__ = ["Bernoulli"]


class Bernoulli(TwoOutcomes, ExponentialFamily):
    """1 with probability `probs` (or log odds `logits`), otherwise 0."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        binary_parameters(self, probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
            self._param = self.probs
        else:
            (self.logits,) = broadcast_all(logits)
            self._param = self.logits
        super().__init__(self._param.size(), validate_args=validate_args)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._param.size()

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        mode = (self.probs >= 0.5).to(self.probs)
        return mode.masked_fill(self.probs == 0.5, float("nan"))

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_parameters(Bernoulli, batch_shape, _instance, "probs", "logits", "_param")

    def sample(self, sample_shape: Any = ()) -> Any:
        with mt.no_grad():
            return mt.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -mt.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Any:
        return mt.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Any:
        values = mt.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (mt.logit(self.probs),)

    def _log_normalizer(self, x: Any) -> Any:  # type: ignore[override]  (as many as there are parameters)
        return mt.log1p(mt.exp(x))
