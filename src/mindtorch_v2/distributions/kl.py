"""The Kullback-Leibler divergence between two distributions: where the formulas are registered and found."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import total_ordering
from typing import Any

import mindtorch_v2 as mt

from .distribution import Distribution, ExponentialFamily
from .utils import _sum_rightmost

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}
_KL_MEMOIZE: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator for the function that computes the divergence of a `type_p` from a `type_q`, and of their subclasses.

    Libraries have distributions that are no subclasses of `Distribution`, so any class will do.

    Raises:
        TypeError: if one of them is no class.
    """
    for given in (type_p, type_q):
        if not isinstance(given, type):
            raise TypeError("issubclass() arg 1 must be a class")

    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return decorator


@total_ordering
class _Match:
    """Classes, the more special of which are less."""

    def __init__(self, *types: type) -> None:
        self.types = types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Match) and self.types == other.types

    def __le__(self, other: _Match) -> bool:
        for x, y in zip(self.types, other.types):
            if not issubclass(x, y):
                return False
            if x is not y:
                break
        return True


def _dispatch_kl(type_p: type, type_q: type) -> Callable[[Any, Any], Any]:
    """The most special function that is registered for the two classes or classes above them; NotImplemented if there is none.

    Warns if the first class and the second one prefer different functions.
    """
    matches = [pair for pair in _KL_REGISTRY if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])]
    if not matches:
        return NotImplemented
    left_p, left_q = min(_Match(*pair) for pair in matches).types
    right_q, right_p = min(_Match(*reversed(pair)) for pair in matches).types
    left, right = _KL_REGISTRY[left_p, left_q], _KL_REGISTRY[right_p, right_q]
    if left is not right:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({left_p.__name__}, {right_q.__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return left


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """The divergence of `p` from `q`, of the shape of the batch.

    Raises:
        NotImplementedError: if it is not known for these classes.
    """
    kinds = type(p), type(q)
    function = _KL_MEMOIZE.get(kinds)
    if function is None:
        function = _KL_MEMOIZE[kinds] = _dispatch_kl(*kinds)
    if function is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {p.__class__.__name__} and q type {q.__class__.__name__}"
        )
    return function(p, q)


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: Any, q: Any) -> Any:
    """The Bregman divergence of the log normaliser."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman divergences"
        )
    at_p = [part.detach().requires_grad_() for part in p._natural_params]
    at_q = q._natural_params
    normaliser = p._log_normalizer(*at_p)
    slopes = mt.autograd.grad(normaliser.sum(), at_p, create_graph=True)
    result = q._log_normalizer(*at_q) - normaliser
    for there, here, slope in zip(at_q, at_p, slopes):
        result = result - _sum_rightmost((there - here) * slope, len(q.event_shape))
    return result
