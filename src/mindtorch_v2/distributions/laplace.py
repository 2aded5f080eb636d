"""The Laplace distribution."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Laplace"]


class Laplace(Distribution):
    """The Laplace distribution around `loc` with a given `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Any:
        return 2**0.5 * self.scale

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_parameters(Laplace, batch_shape, _instance, "loc", "scale")

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        drawn = mt.empty(shape, dtype=self.loc.dtype, device=self.loc.device)
        drawn.uniform_(mt.finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * drawn.sign() * mt.log1p(-drawn.abs())

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return -mt.log(2 * self.scale) - mt.abs(value - self.loc) / self.scale

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return 0.5 - 0.5 * (value - self.loc).sign() * mt.expm1(-(value - self.loc).abs() / self.scale)

    def icdf(self, value: Any) -> Any:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * mt.log1p(-2 * term.abs())

    def entropy(self) -> Any:
        return 1 + mt.log(2 * self.scale)
