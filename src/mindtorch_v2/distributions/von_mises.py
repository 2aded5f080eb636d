"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property

__all__ = ["VonMises"]


class VonMises(Distribution):
    """Angles around `loc`, in radians, the nearer to it the greater the `concentration`."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_parameters(VonMises, batch_shape, _instance, "loc", "concentration")

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        bessel = mt.special.i0e(self.concentration).log() + self.concentration
        return self.concentration * mt.cos(value - self.loc) - math.log(2 * math.pi) - bessel

    # Samples are drawn in float64: in float32 the method can go on for ever.

    @lazy_property
    def _loc(self) -> Any:
        return self.loc.to(mt.double)

    @lazy_property
    def _concentration(self) -> Any:
        return self.concentration.to(mt.double)

    @lazy_property
    def _proposal_r(self) -> Any:
        """The parameter of the wrapped Cauchy distribution that proposes angles; a series of it for small concentrations."""
        k = self._concentration
        tau = 1 + (1 + 4 * k**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        return mt.where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape: Any = ()) -> Any:
        """Angles in [-pi, pi), by rejection: Best and Fisher, "Efficient simulation of the von Mises distribution" (1979)."""
        shape = self._extended_shape(sample_shape)
        with mt.no_grad():
            angle = mt.empty(shape, dtype=self._loc.dtype, device=self.loc.device)
            done = mt.zeros(shape, dtype=mt.bool, device=self.loc.device)
            while not bool(done.all()):
                u1, u2, u3 = mt.rand((3, *shape), dtype=angle.dtype, device=angle.device).unbind()
                z = mt.cos(math.pi * u1)
                f = (1 + self._proposal_r * z) / (self._proposal_r + z)
                c = self._concentration * (self._proposal_r - f)
                accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
                angle = mt.where(accept, (u3 - 0.5).sign() * f.acos(), angle)
                done = done | accept
            return ((angle + math.pi + self._loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @lazy_property
    def variance(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]  (computed once)
        """The circular variance."""
        return 1 - mt.special.i1e(self.concentration) / mt.special.i0e(self.concentration)
