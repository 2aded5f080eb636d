"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .distribution import ExponentialFamily

__all__ = ["Dirichlet"]


def _Dirichlet_backward(x: Any, concentration: Any, grad_output: Any) -> Any:
    """The gradient of concentrations, from that of probabilities `x` that were drawn with them."""
    total = concentration.sum(-1, True).expand_as(concentration)
    return mt._dirichlet_grad(x, concentration, total) * (grad_output - (x * grad_output).sum(-1, True))


class _Sample(mt.autograd.Function):
    """Probabilities with given concentrations, and how they move with these."""

    @staticmethod
    def forward(ctx: Any, concentration: Any) -> Any:
        sample = mt._sample_dirichlet(concentration)
        ctx.save_for_backward(sample, concentration)
        return sample

    @staticmethod
    @mt.autograd.function.once_differentiable
    def backward(ctx: Any, grad_output: Any) -> Any:
        sample, concentration = ctx.saved_tensors
        return _Dirichlet_backward(sample, concentration, grad_output)


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
        made = self._get_checked_instance(Dirichlet, _instance)
        made.concentration = self.concentration.expand((*batch_shape, *self.event_shape))
        return self._completed(made, batch_shape, self.event_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return _Sample.apply(self.concentration.expand(self._extended_shape(sample_shape)))

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

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Any) -> Any:  # type: ignore[override]  (as many as there are parameters)
        return x.lgamma().sum(-1) - mt.lgamma(x.sum(-1))
