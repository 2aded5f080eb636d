"""The geometric distribution."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .distribution import Distribution, binary_parameters
from .utils import TwoOutcomes, broadcast_all

__all__ = ["Geometric"]


class Geometric(TwoOutcomes, Distribution):
    """How many failures come before the first success of probability `probs`."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        binary_parameters(self, probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        super().__init__((self.probs if probs is not None else self.logits).size(), validate_args=validate_args)
        if self._validate_args and probs is not None and not bool((self.probs > 0).all()):
            raise ValueError(
                f"Expected parameter probs of distribution {self!r} to be positive but found invalid values:\n{self.probs}"
            )

    @property
    def mean(self) -> Any:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Any:
        return mt.zeros_like(self.probs)

    @property
    def variance(self) -> Any:
        return (1.0 / self.probs - 1.0) / self.probs

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_parameters(Geometric, batch_shape, _instance, "probs", "logits")

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with mt.no_grad():
            tiny = mt.finfo(self.probs.dtype).tiny
            drawn = mt.empty(shape, dtype=self.probs.dtype, device=self.probs.device).uniform_(tiny, 1)
            return (drawn.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.masked_fill((probs == 1) & (value == 0), 0)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Any:
        return mt.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
