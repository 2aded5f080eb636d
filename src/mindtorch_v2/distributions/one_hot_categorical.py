"""The categorical distribution over one-hot vectors."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Distribution):
    """One-hot vectors with probabilities along the last dimension of `probs` (not normalised) or `logits`."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        """The normalised log probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        return mt.nn.functional.one_hot(self.probs.argmax(-1), self.probs.shape[-1]).to(self.probs)

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(OneHotCategorical, _instance)
        made._categorical = self._categorical.expand(batch_shape)
        return self._completed(made, batch_shape, self.event_shape)

    def sample(self, sample_shape: Any = ()) -> Any:
        indices = self._categorical.sample(sample_shape)
        return mt.nn.functional.one_hot(indices, self._categorical._num_events).to(self.probs)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Any:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        n = self.event_shape[0]
        values = mt.eye(n, dtype=self.probs.dtype, device=self.probs.device)
        values = values.view((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The same with samples whose gradient is that of the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
