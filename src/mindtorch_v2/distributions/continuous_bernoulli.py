"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .distribution import ExponentialFamily, binary_parameters
from .utils import TwoOutcomes, broadcast_all, clamp_probs, lazy_property, logits_to_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(TwoOutcomes, ExponentialFamily):
    """Values between 0 and 1 with a density that is exponential in them, of parameter `probs` (or its log odds `logits`).

    Args:
        lims: between these values of `probs`, where the formulas divide zero by zero, their Taylor series serve.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        binary_parameters(self, probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
            if validate_args is not None and not bool(self.arg_constraints["probs"].check(self.probs).all()):
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
            self._param = self.probs
        else:
            (self.logits,) = broadcast_all(logits)
            self._param = self.logits
        self._lims = lims
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._expand_parameters(ContinuousBernoulli, batch_shape, _instance, "probs", "logits", "_param")
        made._lims = self._lims
        return made

    @lazy_property
    def probs(self) -> Any:
        """The parameter, away from 0 and 1."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside_unstable_region(self) -> Any:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Any:
        """`probs`, moved to the border where they are between the limits."""
        return mt.where(self._outside_unstable_region(), self.probs, self._lims[0] * mt.ones_like(self.probs))

    def _cont_bern_log_norm(self) -> Any:
        """The logarithm of the constant that makes the density's integral 1."""
        cut = self._cut_probs()
        below = mt.where(cut <= 0.5, cut, mt.zeros_like(cut))
        above = mt.where(cut >= 0.5, cut, mt.ones_like(cut))
        spread = mt.log(mt.abs(mt.log1p(-cut) - mt.log(cut)))
        exact = spread - mt.where(cut <= 0.5, mt.log1p(-2.0 * below), mt.log(2.0 * above - 1.0))
        x = (self.probs - 0.5).pow(2)
        series = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return mt.where(self._outside_unstable_region(), exact, series)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._param.size()

    @property
    def mean(self) -> Any:
        cut = self._cut_probs()
        exact = cut / (2.0 * cut - 1.0) + 1.0 / (mt.log1p(-cut) - mt.log(cut))
        x = self.probs - 0.5
        series = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x
        return mt.where(self._outside_unstable_region(), exact, series)

    @property
    def stddev(self) -> Any:
        return mt.sqrt(self.variance)

    @property
    def variance(self) -> Any:
        cut = self._cut_probs()
        exact = cut * (cut - 1.0) / (1.0 - 2.0 * cut).pow(2) + 1.0 / (mt.log1p(-cut) - mt.log(cut)).pow(2)
        x = (self.probs - 0.5).pow(2)
        series = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return mt.where(self._outside_unstable_region(), exact, series)

    def sample(self, sample_shape: Any = ()) -> Any:
        with mt.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.icdf(mt.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        bernoulli = -mt.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")
        return bernoulli + self._cont_bern_log_norm()

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        cut = self._cut_probs()
        exact = (mt.pow(cut, value) * mt.pow(1.0 - cut, 1.0 - value) + cut - 1.0) / (2.0 * cut - 1.0)
        inside = mt.where(self._outside_unstable_region(), exact, value)
        inside = mt.where(value >= 1.0, mt.ones_like(inside), inside)
        return mt.where(value <= 0.0, mt.zeros_like(inside), inside)

    def icdf(self, value: Any) -> Any:
        cut = self._cut_probs()
        exact = (mt.log1p(-cut + value * (2.0 * cut - 1.0)) - mt.log1p(-cut)) / (mt.log(cut) - mt.log1p(-cut))
        return mt.where(self._outside_unstable_region(), exact, value)

    def entropy(self) -> Any:
        return self.mean * (mt.log1p(-self.probs) - self.logits - mt.log1p(-self.probs)) + (
            -self._cont_bern_log_norm() - mt.log1p(-self.probs)
        )

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Any) -> Any:  # type: ignore[override]  (one parameter)
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = mt.where(outside, x, (self._lims[0] - 0.5) * mt.ones_like(x))
        exact = mt.log(mt.abs(mt.special.expm1(cut))) - mt.log(mt.abs(cut))
        series = 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0
        return mt.where(outside, exact, series)
