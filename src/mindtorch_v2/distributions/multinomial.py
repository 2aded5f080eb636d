"""The multinomial distribution."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """How often each category comes in `total_count` draws, with probabilities along the last dimension of `probs` or `logits`.

    Raises:
        NotImplementedError: if `total_count` is no int.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(Multinomial, _instance)
        made.total_count = self.total_count
        made._categorical = self._categorical.expand(batch_shape)
        made._binomial = Binomial(total_count=self.total_count, probs=made.probs)
        return self._completed(made, batch_shape, self.event_shape)

    @property
    def mean(self) -> Any:
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def logits(self) -> Any:
        """The normalised log probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self._categorical.probs

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._categorical.param_shape

    def sample(self, sample_shape: Any = ()) -> Any:
        draws = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
        counts = draws.new_zeros(self._extended_shape(sample_shape))
        counts.scatter_add_(-1, draws, mt.ones_like(draws))
        return counts.type_as(self.probs)

    def entropy(self) -> Any:
        n = self.total_count
        # The expectation of log k! of each category, which the entropy of n separate draws does not count.
        support = self._binomial.enumerate_support(expand=False)[1:]
        weights = mt.exp(self._binomial.log_prob(support)) * mt.lgamma(support + 1)
        log_factorial = mt.lgamma(mt.tensor(n + 1))
        return n * self._categorical.entropy() - log_factorial + weights.sum([0, -1])

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -mt.inf), 0)
        ways = mt.lgamma(value.sum(-1) + 1) - mt.lgamma(value + 1).sum(-1)
        return ways + (logits * value).sum(-1)
