"""The Kullback-Leibler divergence between two distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mindtorch_v2 as mt

from .bernoulli import Bernoulli
from .categorical import Categorical
from .distribution import Distribution
from .exponential import Exponential
from .gamma import Gamma
from .independent import Independent, sum_rightmost
from .laplace import Laplace
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .poisson import Poisson
from .uniform import Uniform

__all__ = ["kl_divergence", "register_kl"]

_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator for the function that computes the divergence of a `type_p` from a `type_q`.

    Raises:
        TypeError: if one of them is no class of distributions.
    """
    for name, given in (("type_p", type_p), ("type_q", type_q)):
        if not (isinstance(given, type) and issubclass(given, Distribution)):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {given}")

    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        _REGISTRY[type_p, type_q] = function
        return function

    return decorator


def _lookup(type_p: type, type_q: type) -> Callable[[Any, Any], Any]:
    """The function for the nearest classes above the two."""
    for above_p in type_p.__mro__:
        for above_q in type_q.__mro__:
            if (above_p, above_q) in _REGISTRY:
                return _REGISTRY[above_p, above_q]
    raise NotImplementedError(f"No KL(p || q) is implemented for p type {type_p.__name__} and q type {type_q.__name__}")


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """The divergence of `p` from `q`, of the shape of the batch.

    Raises:
        NotImplementedError: if it is not known for these classes.
    """
    return _lookup(type(p), type(q))(p, q)


@register_kl(Normal, Normal)
def _normal_normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    distance = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + distance - 1 - ratio.log())


@register_kl(Bernoulli, Bernoulli)
def _bernoulli_bernoulli(p: Any, q: Any) -> Any:
    softplus = mt.nn.functional.softplus
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    ones = mt.where(q.probs == 0, mt.full_like(ones, float("inf")), ones)
    ones = mt.where(p.probs == 0, mt.zeros_like(ones), ones)
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zeros = mt.where(q.probs == 1, mt.full_like(zeros, float("inf")), zeros)
    zeros = mt.where(p.probs == 1, mt.zeros_like(zeros), zeros)
    return ones + zeros


@register_kl(Categorical, Categorical)
def _categorical_categorical(p: Any, q: Any) -> Any:
    terms = p.probs * (p.logits - q.logits)
    terms = mt.where((q.probs == 0).expand_as(terms), mt.full_like(terms, float("inf")), terms)
    terms = mt.where((p.probs == 0).expand_as(terms), mt.zeros_like(terms), terms)
    return terms.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_one_hot(p: Any, q: Any) -> Any:
    return _categorical_categorical(p._categorical, q._categorical)


@register_kl(Exponential, Exponential)
def _exponential_exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def _gamma_gamma(p: Any, q: Any) -> Any:
    return (
        q.concentration * (p.rate / q.rate).log()
        + mt.lgamma(q.concentration)
        - mt.lgamma(p.concentration)
        + (p.concentration - q.concentration) * mt.digamma(p.concentration)
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )


@register_kl(Laplace, Laplace)
def _laplace_laplace(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    distance = (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * mt.exp(-distance / p.scale) - 1


@register_kl(Poisson, Poisson)
def _poisson_poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform_uniform(p: Any, q: Any) -> Any:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return mt.where((q.low > p.low) | (q.high < p.high), mt.full_like(result, float("inf")), result)


@register_kl(Uniform, Normal)
def _uniform_normal(p: Any, q: Any) -> Any:
    width = p.high - p.low
    normaliser = (math.sqrt(math.pi * 2) * q.scale / width).log()
    variance = width.pow(2) / 12
    distance = ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return normaliser + 0.5 * (variance + distance) / q.scale.pow(2)


@register_kl(Independent, Independent)
def _independent_independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
