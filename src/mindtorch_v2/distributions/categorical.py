"""The categorical distribution."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .distribution import Distribution, binary_parameters
from .utils import lazy_property, logits_to_probs, probs_to_logits

__all__ = ["Categorical"]


class Categorical(Distribution):
    """Integers from 0, with probabilities along the last dimension of `probs` (not normalised) or `logits`.

    Raises:
        ValueError: if the parameter has no dimension.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        given = binary_parameters(self, probs, logits)
        if given.dim() < 1:
            raise ValueError(
                f"`{'probs' if probs is not None else 'logits'}` parameter must be at least one-dimensional."
            )
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
            self._param = self.probs
        else:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
            self._param = self.logits
        self._num_events = self._param.size()[-1]
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Any:
        """The normalised log probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Any:
        """The probabilities."""
        return logits_to_probs(self.logits)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._param.size()

    @property
    def mean(self) -> Any:
        return mt.full(self._extended_shape(), float("nan"), dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mode(self) -> Any:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Any:
        return self.mean

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(Categorical, _instance)
        shape = (*batch_shape, self._num_events)
        for name in ("probs", "logits", "_param"):
            if name in self.__dict__:
                setattr(made, name, getattr(self, name).expand(shape))
        made._num_events = self._num_events
        return self._completed(made, batch_shape)

    def sample(self, sample_shape: Any = ()) -> Any:
        sample_shape = mt.Size(sample_shape)
        with mt.no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            drawn = mt.multinomial(rows, sample_shape.numel(), True).T
            return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        value = value.long().unsqueeze(-1)
        value, logits = mt.broadcast_tensors(value, self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Any:
        logits = self.logits.clamp(min=mt.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        values = mt.arange(self._num_events, dtype=mt.long, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values
