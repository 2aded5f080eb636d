"""Mixtures of distributions of one kind."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """Values of `component_distribution`, whose last dimension of the batch are the components, chosen by `mixture_distribution`.

    Raises:
        ValueError: if the two do not go together.
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        mixture, component = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        for i, j in zip(reversed(mixture), reversed(component)):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture}) is not compatible with "
                    f"`component_distribution.batch_shape`({component})"
                )
        km = mixture_distribution.logits.shape[-1]
        kc = component_distribution.batch_shape[-1]
        if km is not None and kc is not None and km != kc:
            raise ValueError(
                f"`mixture_distribution component` ({km}) does not equal `component_distribution.batch_shape[-1]` ({kc})"
            )
        self._num_component = km
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(component, event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(MixtureSameFamily, _instance)
        made._component_distribution = self._component_distribution.expand((*batch_shape, self._num_component))
        made._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        made._num_component = self._num_component
        made._event_ndims = self._event_ndims
        return self._completed(made, batch_shape, self._component_distribution.event_shape)

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """What chooses the component."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    def _weighted(self, value: Any) -> Any:
        """The mean over the components."""
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        return mt.sum(probs * value, dim=-1 - self._event_ndims)

    @property
    def mean(self) -> Any:
        return self._weighted(self.component_distribution.mean)

    @property
    def variance(self) -> Any:
        # within the components, and between them
        spread = (self.component_distribution.mean - self._pad(self.mean)).pow(2.0)
        return self._weighted(self.component_distribution.variance) + self._weighted(spread)

    def cdf(self, value: Any) -> Any:
        below = self.component_distribution.cdf(self._pad(value))
        return mt.sum(below * self.mixture_distribution.probs, dim=-1)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        component = self.component_distribution.log_prob(self._pad(value))
        mixture = mt.log_softmax(self.mixture_distribution.logits, dim=-1)
        return mt.logsumexp(component + mixture, dim=-1)

    def sample(self, sample_shape: Any = ()) -> Any:
        with mt.no_grad():
            place = len(sample_shape) + len(self.batch_shape)  # the dimension of the components
            chosen = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            ones = (1,) * (self._event_ndims + 1)
            index = chosen.reshape((*chosen.shape, *ones)).repeat((1,) * chosen.dim() + (1, *self.event_shape))
            return mt.gather(drawn, place, index).squeeze(place)

    def _pad(self, value: Any) -> Any:
        return value.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, value: Any) -> Any:
        batch = len(self.batch_shape) - len(self.mixture_distribution.batch_shape)
        shape = value.shape
        return value.reshape(shape[:-1] + (1,) * batch + shape[-1:] + (1,) * self._event_ndims)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
