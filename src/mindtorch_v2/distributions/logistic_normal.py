"""The logistic-normal distribution."""

from __future__ import annotations

from typing import Any

from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Probabilities, one more than there are normal numbers (`loc`, `scale`) of which sticks are broken."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    # These are known here, in place of the properties of transformed distributions.
    support: Any = constraints.simplex  # pyright: ignore[reportIncompatibleMethodOverride]
    has_rsample: Any = True  # pyright: ignore[reportIncompatibleMethodOverride]

    base_dist: Any  # Independent, of a Normal

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(LogisticNormal, _instance))

    @property
    def loc(self) -> Any:
        """The means of the normal numbers."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Any:
        """The standard deviations of the normal numbers."""
        return self.base_dist.base_dist.scale
