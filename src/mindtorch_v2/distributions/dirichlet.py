"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .distribution import Distribution, ExponentialFamily

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """Probabilities along the last dimension, with the given `concentration`.

    Raises:
        ValueError: if the parameter has no dimension.
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Any:
        weights = (self.concentration - 1).clamp(min=0.0)
        mode = weights / weights.sum(-1, True)
        flat = (self.concentration < 1).all(dim=-1, keepdim=True)
        peak = mt.nn.functional.one_hot(mode.argmax(dim=-1), self.concentration.shape[-1]).to(mode)
        return mt.where(flat, peak, mode)

    @property
    def variance(self) -> Any:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = type(self).__new__(type(self))
        made.concentration = self.concentration.expand((*batch_shape, *self.event_shape))
        Distribution.__init__(made, batch_shape, self.event_shape, validate_args=False)
        made._validate_args = self._validate_args
        return made

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = mt._standard_gamma(self.concentration.expand(self._extended_shape(sample_shape)))
        return drawn / drawn.sum(-1, True)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return (
            mt.xlogy(self.concentration - 1.0, value).sum(-1)
            + mt.lgamma(self.concentration.sum(-1))
            - mt.lgamma(self.concentration).sum(-1)
        )

    def entropy(self) -> Any:
        k = self.concentration.size(-1)
        total = self.concentration.sum(-1)
        return (
            mt.lgamma(self.concentration).sum(-1)
            - mt.lgamma(total)
            - (k - total) * mt.digamma(total)
            - ((self.concentration - 1.0) * mt.digamma(self.concentration)).sum(-1)
        )
