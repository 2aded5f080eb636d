"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The Gumbel distribution (of largest values) with mode `loc` and a given `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support: Any = constraints.real  # pyright: ignore[reportIncompatibleMethodOverride]  (known here)

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        info = mt.finfo(self.loc.dtype)
        if isinstance(loc, int | float) and isinstance(scale, int | float):
            base = Uniform(info.tiny, 1 - info.eps, validate_args=validate_args)
        else:
            low, high = mt.full_like(self.loc, info.tiny), mt.full_like(self.loc, 1 - info.eps)
            base = Uniform(low, high, validate_args=validate_args)
        # y = loc - scale log(-log x)
        steps = [
            ExpTransform().inv,
            AffineTransform(loc=0, scale=-mt.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(loc=loc, scale=-self.scale),
        ]
        super().__init__(base, steps, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(Gumbel, _instance)
        made.loc = self.loc.expand(batch_shape)
        made.scale = self.scale.expand(batch_shape)
        return super().expand(batch_shape, _instance=made)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self) -> Any:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def stddev(self) -> Any:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Any:
        return self.stddev.pow(2)

    def entropy(self) -> Any:
        return self.scale.log() + (1 + euler_constant)
