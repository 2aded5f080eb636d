"""The Kumaraswamy distribution."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


def _moment(a: Any, b: Any, n: int) -> Any:
    """The n-th moment."""
    argument = 1 + n / a
    return b * mt.exp(mt.lgamma(argument) + mt.lgamma(b) - mt.lgamma(argument + b))


class Kumaraswamy(TransformedDistribution):
    """The Kumaraswamy distribution between 0 and 1 with parameters `concentration1` (alpha) and `concentration0` (beta)."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    # These are known here, in place of the properties of transformed distributions.
    support: Any = constraints.unit_interval  # pyright: ignore[reportIncompatibleMethodOverride]
    has_rsample: Any = True  # pyright: ignore[reportIncompatibleMethodOverride]

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(
            mt.full_like(self.concentration0, 0), mt.full_like(self.concentration0, 1), validate_args=validate_args
        )
        # y = (1 - x ** (1 / beta)) ** (1 / alpha)
        steps = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, steps, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(Kumaraswamy, _instance)
        made.concentration1 = self.concentration1.expand(batch_shape)
        made.concentration0 = self.concentration0.expand(batch_shape)
        return super().expand(batch_shape, _instance=made)

    @property
    def mean(self) -> Any:
        return _moment(self.concentration1, self.concentration0, 1)

    @property
    def mode(self) -> Any:
        # PyTorch's expression, which gives NaN for every parameter; the mode is ((a - 1) / (a b - 1)) ** (1 / a).
        a, b = self.concentration1, self.concentration0
        log_mode = b.reciprocal() * (-b).log1p() - (-b * a).log1p()
        return mt.where((a < 1) | (b < 1), mt.nan, log_mode).exp()

    @property
    def variance(self) -> Any:
        return _moment(self.concentration1, self.concentration0, 2) - self.mean.pow(2)

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        harmonic = mt.digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - mt.log(a) - mt.log(b)
