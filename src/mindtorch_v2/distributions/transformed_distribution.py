"""Distributions of values that are mapped after they are drawn."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """Values of `base_distribution`, mapped by transforms one after the other.

    Raises:
        ValueError: if `transforms` is neither a transform nor a list of them.
    """

    arg_constraints: dict[str, constraints.Constraint] = {}

    def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None) -> None:
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list):
            if not all(isinstance(t, Transform) for t in transforms):
                raise ValueError("transforms must be a Transform or a list of Transforms")
            self.transforms = transforms
        else:
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        shape = base_distribution.batch_shape + base_distribution.event_shape
        base_event_dim = len(base_distribution.event_shape)
        whole = ComposeTransform(self.transforms)
        if len(shape) < whole.domain.event_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {whole.domain.event_dim}, but got {shape}."
            )
        forward = whole.forward_shape(shape)
        expanded = whole.inverse_shape(forward)
        if shape != expanded:  # parameters of the transforms have a batch of their own
            base_distribution = base_distribution.expand(expanded[: len(expanded) - base_event_dim])
        extra = whole.domain.event_dim - base_event_dim
        if extra > 0:
            base_distribution = Independent(base_distribution, extra)
        self.base_dist = base_distribution
        event_dim = max(whole.codomain.event_dim + max(base_event_dim - whole.domain.event_dim, 0), 0)
        split = len(forward) - event_dim
        super().__init__(forward[:split], forward[split:], validate_args=validate_args)

    @property
    def has_rsample(self) -> bool:
        """Whether samples carry gradients."""
        return self.base_dist.has_rsample

    @constraints.dependent_property
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        extra = len(self.event_shape) - support.event_dim
        return constraints.independent(support, extra) if extra > 0 else support

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(TransformedDistribution, _instance)
        made.transforms = self.transforms
        whole = ComposeTransform(self.transforms)
        shape = whole.inverse_shape(mt.Size(batch_shape) + self.event_shape)
        made.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return self._completed(made, batch_shape, self.event_shape)

    def sample(self, sample_shape: Any = ()) -> Any:
        with mt.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._forward(self.base_dist.rsample(sample_shape))

    def _forward(self, value: Any) -> Any:
        for transform in self.transforms:
            value = transform(value)
        return value

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        event_dim = len(self.event_shape)
        total: Any = 0.0
        for transform in reversed(self.transforms):
            before = transform.inv(value)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            total = total - _sum_rightmost(
                transform.log_abs_det_jacobian(before, value), event_dim - transform.domain.event_dim
            )
            value = before
        return total + _sum_rightmost(self.base_dist.log_prob(value), event_dim - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value: Any) -> Any:
        """`value`, or 1 - `value` where the transforms decrease."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Any:
        return self._forward(self.base_dist.icdf(self._monotonize_cdf(value)))
