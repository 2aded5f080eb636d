"""Divergences between distributions of different families.

Where the first has values that the second cannot have, they are infinite: `_INFINITE` lists those pairs.
"""

from __future__ import annotations

import math
from typing import Any

import mindtorch_v2 as mt

from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .continuous_bernoulli import ContinuousBernoulli
from .exponential import Exponential
from .gamma import Gamma
from .gumbel import Gumbel
from .kl import register_kl
from .laplace import Laplace
from .normal import Normal
from .pareto import Pareto
from .poisson import Poisson
from .uniform import Uniform
from .utils import euler_constant

_INFINITE: tuple[tuple[type, str, tuple[type, ...]], ...] = (
    (Beta, "concentration1", (Pareto,)),
    (ContinuousBernoulli, "probs", (Pareto,)),
    (Exponential, "rate", (Beta, ContinuousBernoulli, Pareto, Uniform)),
    (Gamma, "concentration", (Beta, ContinuousBernoulli, Pareto, Uniform)),
    (Gumbel, "loc", (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    (Laplace, "loc", (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    (Normal, "loc", (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    (Pareto, "scale", (Beta, ContinuousBernoulli, Uniform)),
    (Poisson, "rate", (Bernoulli, Binomial)),
)


def _register_infinite(p_type: type, parameter: str, q_type: type) -> None:
    @register_kl(p_type, q_type)
    def infinite(p: Any, q: Any) -> Any:
        return mt.full_like(getattr(p, parameter), mt.inf)


for _p_type, _parameter, _q_types in _INFINITE:
    for _q_type in _q_types:
        _register_infinite(_p_type, _parameter, _q_type)


def _x_log_x(x: Any) -> Any:
    return mt.special.xlogy(x, x)


def _unless(outside: Any, value: Any) -> Any:
    return mt.where(outside, mt.inf, value)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


# ---------------------------------------------------------------------------------------------------------------- beta


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Any, q: Any) -> Any:
    return -p.entropy() - p.mean * q.logits - mt.log1p(-q.probs) - q._cont_bern_log_norm()


@register_kl(Beta, Exponential)
def _beta_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def _beta_gamma(p: Any, q: Any) -> Any:
    mean_log = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    normaliser = q.concentration.lgamma() - q.concentration * q.rate.log()
    return -p.entropy() + normaliser - (q.concentration - 1) * mean_log + q.rate * p.mean


@register_kl(Beta, Normal)
def _beta_normal(p: Any, q: Any) -> Any:
    variance = q.scale.pow(2)
    second = p.variance + p.mean.pow(2)
    distance = 0.5 * second - q.loc * p.mean + 0.5 * q.loc.pow(2)
    return -p.entropy() + 0.5 * (variance * 2 * math.pi).log() + distance / variance


@register_kl(Beta, Uniform)
def _beta_uniform(p: Any, q: Any) -> Any:
    result = -p.entropy() + (q.high - q.low).log()
    return _unless((q.low > p.support.lower_bound) | (q.high < p.support.upper_bound), result)


# -------------------------------------------------------------------------------------------------- continuous bernoulli


@register_kl(ContinuousBernoulli, Exponential)
def _continuous_bernoulli_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - mt.log(q.rate) + q.rate * p.mean


@register_kl(ContinuousBernoulli, Normal)
def _continuous_bernoulli_normal(p: Any, q: Any) -> Any:
    normaliser = 0.5 * (math.log(2.0 * math.pi) + mt.square(q.loc / q.scale)) + mt.log(q.scale)
    moments = (p.variance + mt.square(p.mean) - 2.0 * q.loc * p.mean) / (2.0 * mt.square(q.scale))
    return -p.entropy() + normaliser + moments


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: Any, q: Any) -> Any:
    # As PyTorch has it, infinite also where the bounds are those of the unit interval.
    result = -p.entropy() + (q.high - q.low).log()
    return _unless((q.low >= p.support.lower_bound) | (q.high <= p.support.upper_bound), result)


# -------------------------------------------------------------------------------------------------- exponential, gamma


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    constant = q.concentration.lgamma() + q.concentration * euler_constant - (1 + euler_constant)
    return -q.concentration * mt.log(ratio) + ratio + constant


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Any, q: Any) -> Any:
    product, ratio = p.rate * q.scale, q.loc / q.scale
    return product.log() - 1 - ratio + mt.exp(ratio) * product / (product + 1) + product.reciprocal()


@register_kl(Exponential, Normal)
def _exponential_normal(p: Any, q: Any) -> Any:
    variance, squared = q.scale.pow(2), p.rate.pow(2)
    distance = squared.reciprocal() - q.loc / p.rate + q.loc.pow(2) * 0.5
    return 0.5 * mt.log(squared * variance * 2 * math.pi) - 1 + distance / variance


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Any, q: Any) -> Any:
    product, ratio = p.rate * q.scale, q.loc / q.scale
    own = (p.concentration - 1) * p.concentration.digamma() - p.concentration.lgamma() - p.concentration
    moments = product.log() + p.concentration / product
    return own + moments + mt.exp(ratio) * (1 + product.reciprocal()).pow(-p.concentration) - ratio


@register_kl(Gamma, Normal)
def _gamma_normal(p: Any, q: Any) -> Any:
    variance, squared = q.scale.pow(2), p.rate.pow(2)
    own = 0.5 * mt.log(squared * variance * 2 * math.pi) - p.concentration - p.concentration.lgamma()
    second = 0.5 * (p.concentration.pow(2) + p.concentration) / squared
    distance = second - q.loc * p.concentration / p.rate + 0.5 * q.loc.pow(2)
    return own + (p.concentration - 1) * p.concentration.digamma() + distance / variance


# ---------------------------------------------------------------------------------------------------- on the whole line


@register_kl(Gumbel, Normal)
def _gumbel_normal(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    spread = (math.pi * ratio * 0.5).pow(2) / 3
    distance = ((p.loc + p.scale * euler_constant - q.loc) / q.scale).pow(2) * 0.5
    return -(ratio / math.sqrt(2 * math.pi)).log() + spread + distance - (euler_constant + 1)


@register_kl(Laplace, Normal)
def _laplace_normal(p: Any, q: Any) -> Any:
    variance = q.scale.pow(2)
    ratio = p.scale.pow(2) / variance
    distance = 0.5 * p.loc.pow(2) - p.loc * q.loc + 0.5 * q.loc.pow(2)
    return -0.5 * mt.log(2 * ratio / math.pi) + ratio + distance / variance - 1


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Any, q: Any) -> Any:
    at_p, at_q = p.loc / q.scale, q.loc / q.scale
    ratio = (p.scale / q.scale).pow(2)
    moment = mt.exp(-at_p + 0.5 * ratio + at_q)
    return -ratio.log() * 0.5 + at_p - at_q + moment - 0.5 * (1 + math.log(2 * math.pi))


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Any:
    difference = p.loc - q.loc
    scaled = difference / p.scale
    folded = math.sqrt(2 / math.pi) * p.scale * mt.exp(-0.5 * scaled.pow(2))
    mean = folded + difference * mt.erf(math.sqrt(0.5) * scaled)
    return -mt.log(p.scale / q.scale) + mean / q.scale - 0.5 * (1 + math.log(0.5 * math.pi))


# -------------------------------------------------------------------------------------------------------------- pareto


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Any, q: Any) -> Any:
    product = p.scale * q.rate
    result = (p.alpha / product).log() - p.alpha.reciprocal() + p.alpha * product / (p.alpha - 1) - 1
    return _unless(p.alpha <= 1, result)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Any, q: Any) -> Any:
    mean_log = p.scale.log() + p.alpha.reciprocal()
    normaliser = q.concentration.lgamma() - q.concentration * q.rate.log()
    mean = q.rate * p.alpha * p.scale / (p.alpha - 1)
    result = p.alpha.log() - mean_log + normaliser + (1 - q.concentration) * mean_log + mean - 1
    return _unless(p.alpha <= 1, result)


@register_kl(Pareto, Normal)
def _pareto_normal(p: Any, q: Any) -> Any:
    common = p.scale / (p.alpha - 1)
    density = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log() - p.alpha.reciprocal()
    distance = p.alpha * common.pow(2) / (p.alpha - 2) + (p.alpha * common - q.loc).pow(2)
    return _unless(p.alpha <= 2, density + distance / (2 * q.scale.pow(2)) - 1)


# ------------------------------------------------------------------------------------------------------------- uniform


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Any:
    width = p.high - p.low
    logs = (q.concentration1 - 1) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    logs_of_rest = (q.concentration0 - 1) * (_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + width) / width
    total = q.concentration1 + q.concentration0
    normaliser = q.concentration1.lgamma() + q.concentration0.lgamma() - total.lgamma()
    result = logs_of_rest + normaliser - mt.log(width) - logs
    return _unless((p.high > q.support.upper_bound) | (p.low < q.support.lower_bound), result)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Any, q: Any) -> Any:
    result = -p.entropy() - p.mean * q.logits - mt.log1p(-q.probs) - q._cont_bern_log_norm()
    return _unless((p.high >= q.support.upper_bound) | (p.low <= q.support.lower_bound), result)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Any:
    result = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return _unless(p.low < q.support.lower_bound, result)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Any:
    width = p.high - p.low
    logs = (1 - q.concentration) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    normaliser = q.concentration.lgamma() - q.concentration * q.rate.log()
    result = -mt.log(width) + normaliser + logs + q.rate * (p.high + p.low) / 2
    return _unless(p.low < q.support.lower_bound, result)


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Any, q: Any) -> Any:
    common = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return common.log() + 0.5 * (high + low) - common * (mt.exp(-high) - mt.exp(-low))


@register_kl(Uniform, Normal)
def _uniform_normal(p: Any, q: Any) -> Any:
    width = p.high - p.low
    normaliser = (math.sqrt(math.pi * 2) * q.scale / width).log()
    distance = ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return normaliser + 0.5 * (width.pow(2) / 12 + distance) / q.scale.pow(2)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Any:
    width = p.high - p.low
    density = (q.alpha * q.scale.pow(q.alpha) * width).log()
    logs = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    return _unless(p.low < q.support.lower_bound, logs * (q.alpha + 1) - density)
