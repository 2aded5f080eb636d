"""The inverse gamma distribution."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """The reciprocal of a gamma variable with shape `concentration` and a given `rate`."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    # These are known here, in place of the properties of transformed distributions.
    support: Any = constraints.positive  # pyright: ignore[reportIncompatibleMethodOverride]
    has_rsample: Any = True  # pyright: ignore[reportIncompatibleMethodOverride]

    base_dist: Gamma

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        minus_one = -base.rate.new_ones(())
        super().__init__(base, PowerTransform(minus_one), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(InverseGamma, _instance))

    @property
    def concentration(self) -> Any:
        """The shape."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Any:
        """The rate of the reciprocal."""
        return self.base_dist.rate

    @property
    def mean(self) -> Any:
        return mt.where(self.concentration > 1, self.rate / (self.concentration - 1), mt.inf)

    @property
    def mode(self) -> Any:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Any:
        finite = self.rate.square() / ((self.concentration - 1).square() * (self.concentration - 2))
        return mt.where(self.concentration > 2, finite, mt.inf)

    def entropy(self) -> Any:
        return (
            self.concentration
            + self.rate.log()
            + self.concentration.lgamma()
            - (1 + self.concentration) * self.concentration.digamma()
        )
