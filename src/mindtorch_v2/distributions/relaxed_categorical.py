"""One-hot vectors that are continuous, so that samples carry gradients."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .categorical import Categorical
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """The logarithm of a relaxed one-hot vector.

    Maddison, Mnih and Teh, "The concrete distribution" (2017).
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    # In truth the exponentials sum to 1; the base of a transformed distribution needs no more.
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(ExpRelaxedCategorical, _instance)
        made.temperature = self.temperature
        made._categorical = self._categorical.expand(batch_shape)
        return self._completed(made, batch_shape, self.event_shape)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def logits(self) -> Any:
        """The normalised log probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self._categorical.probs

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        drawn = clamp_probs(mt.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        gumbels = -((-(drawn.log())).log())
        scores = (self.logits + gumbels) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        count = self._categorical._num_events
        logits, value = broadcast_all(self.logits, value)
        scale = mt.full_like(self.temperature, float(count)).lgamma() + self.temperature.log().mul(count - 1)
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """Probabilities that come near to one-hot vectors with `probs` (or `logits`) as `temperature` goes to zero."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    # These are known here, in place of the properties of transformed distributions.
    support: Any = constraints.simplex  # pyright: ignore[reportIncompatibleMethodOverride]
    has_rsample: Any = True  # pyright: ignore[reportIncompatibleMethodOverride]

    base_dist: ExpRelaxedCategorical

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(RelaxedOneHotCategorical, _instance))

    @property
    def temperature(self) -> Any:
        """How far the values are from one-hot vectors."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """The normalised log probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self.base_dist.probs
