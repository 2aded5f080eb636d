"""Batches whose last dimensions belong to single values."""

from __future__ import annotations

from typing import Any

from . import constraints
from .distribution import Distribution
from .utils import _sum_rightmost

__all__ = ["Independent"]


class Independent(Distribution):
    """`base_distribution` with the last `reinterpreted_batch_ndims` dimensions of its batch counted as one value.

    Raises:
        ValueError: if the batch has fewer dimensions.
    """

    arg_constraints: dict[str, constraints.Constraint] = {}

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        batch = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(batch):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {reinterpreted_batch_ndims} vs {len(batch)}"
            )
        split = len(batch) - reinterpreted_batch_ndims
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(batch[:split], batch[split:] + base_distribution.event_shape, validate_args=validate_args)

    @property
    def has_rsample(self) -> bool:
        """Whether samples carry gradients."""
        return self.base_dist.has_rsample

    @constraints.dependent_property
    def support(self) -> Any:
        if not self.reinterpreted_batch_ndims:
            return self.base_dist.support
        return constraints.independent(self.base_dist.support, self.reinterpreted_batch_ndims)

    @property
    def mean(self) -> Any:
        return self.base_dist.mean

    @property
    def mode(self) -> Any:
        return self.base_dist.mode

    @property
    def variance(self) -> Any:
        return self.base_dist.variance

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        inner = self.event_shape[: self.reinterpreted_batch_ndims]
        made = self._get_checked_instance(Independent, _instance)
        made.base_dist = self.base_dist.expand((*batch_shape, *inner))
        made.reinterpreted_batch_ndims = self.reinterpreted_batch_ndims
        return self._completed(made, batch_shape, self.event_shape)

    def sample(self, sample_shape: Any = ()) -> Any:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Any:
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    @property
    def has_enumerate_support(self) -> bool:
        """Whether every value can be listed."""
        return not self.reinterpreted_batch_ndims and self.base_dist.has_enumerate_support

    def enumerate_support(self, expand: bool = True) -> Any:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
