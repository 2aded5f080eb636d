"""The log-normal distribution."""

from __future__ import annotations

from typing import Any

from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """The distribution of numbers whose logarithm is normal, with mean `loc` and standard deviation `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    # Both are known here, in place of the properties of transformed distributions.
    support: Any = constraints.positive  # pyright: ignore[reportIncompatibleMethodOverride]
    has_rsample: Any = True  # pyright: ignore[reportIncompatibleMethodOverride]

    base_dist: Normal

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(LogNormal, _instance))

    @property
    def loc(self) -> Any:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Any:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Any:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Any:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Any:
        squared = self.scale.pow(2)
        return squared.expm1() * (2 * self.loc + squared).exp()

    def entropy(self) -> Any:
        return self.base_dist.entropy() + self.loc
