"""The Weibull distribution."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .exponential import Exponential
from .gumbel import euler_constant
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """The Weibull distribution with a given `scale` and shape `concentration`."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support: Any = constraints.positive  # pyright: ignore[reportIncompatibleMethodOverride]  (known here)

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(mt.ones_like(self.scale), validate_args=validate_args)
        steps = [PowerTransform(exponent=self.concentration_reciprocal), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, steps, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(Weibull, _instance)
        made.scale = self.scale.expand(batch_shape)
        made.concentration = self.concentration.expand(batch_shape)
        made.concentration_reciprocal = made.concentration.reciprocal()
        base = self.base_dist.expand(batch_shape)
        steps = [PowerTransform(exponent=made.concentration_reciprocal), AffineTransform(loc=0, scale=made.scale)]
        TransformedDistribution.__init__(made, base, steps, validate_args=False)
        made._validate_args = self._validate_args
        return made

    @property
    def mean(self) -> Any:
        return self.scale * mt.exp(mt.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self) -> Any:
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration.reciprocal()

    @property
    def variance(self) -> Any:
        second = mt.exp(mt.lgamma(1 + 2 * self.concentration_reciprocal))
        return self.scale.pow(2) * (second - mt.exp(2 * mt.lgamma(1 + self.concentration_reciprocal)))

    def entropy(self) -> Any:
        reciprocal = self.concentration_reciprocal
        return euler_constant * (1 - reciprocal) + mt.log(self.scale * reciprocal) + 1
