"""Distributions by rejection whose parameters differ from element to element: gamma, Dirichlet, binomial.

They are loops over the elements, in the order of their indices, and compute in double precision (binomial: in that of the parameters).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .._rules import distributions as checks
from .continuous import cast
from .generator import Generator
from .rejection import _Uniforms

# PyTorch's constants are single precision numbers in double precision expressions.
_THIRD = float(np.float32(1) / np.float32(3))
_SQUEEZE = float(np.float32(0.0331))


def _normal(gen: Generator, uniform: _Uniforms) -> float:
    """A standard normal number; the second of a pair waits for the next call."""
    waiting = gen.next_double
    if waiting is not None:
        gen.next_double = None
        return waiting
    theta = 2 * math.pi * uniform()
    r = math.sqrt(-2 * math.log1p(-uniform()))
    gen.next_double = r * math.sin(theta)
    return r * math.cos(theta)


def _gamma_one(alpha: float, gen: Generator, uniform: _Uniforms, rounded: Callable[[float], float]) -> float:
    """Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).

    `rounded`: to the precision in which expressions of alpha alone are computed.
    """
    scale = 1.0
    if alpha < 1:
        if alpha == 0:
            return 0.0
        scale = (1 - uniform()) ** rounded(1 / alpha)
        alpha = rounded(alpha + 1)
    d = rounded(alpha - _THIRD)
    c = 1 / math.sqrt(9 * d)
    while True:
        y = 0.0
        x = 0.0
        while y <= 0:
            x = _normal(gen, uniform)
            y = 1 + c * x
        v = y * y * y
        u = 1 - uniform()
        squared = x * x
        if u < 1 - _SQUEEZE * squared * squared or math.log(u) < 0.5 * squared + d * (1 - v + math.log(v)):
            return scale * d * v


def _single(value: float) -> float:
    return float(np.float32(value))


def _gammas(gen: Generator, alpha: np.ndarray, rounded: Callable[[float], float] = float) -> np.ndarray:
    flat = alpha.astype(np.float64).reshape(-1).tolist()
    with gen.lock:
        uniform = _Uniforms(gen.engine)
        values = [math.nan if a != a else _gamma_one(a, gen, uniform, rounded) for a in flat]
        uniform.close()
    return np.array(values, np.float64).reshape(alpha.shape)


def gamma(gen: Generator, alpha: np.ndarray) -> np.ndarray:
    """Gamma numbers of shape `alpha` and scale 1 (`_standard_gamma`), of the same shape and dtype, above zero."""
    kind = checks.resolve(alpha.dtype.name)
    values = cast(_gammas(gen, alpha, _single if kind.itemsize == 4 else float), kind)
    return np.maximum(values, np.finfo(kind.np).tiny)


def dirichlet(gen: Generator, alpha: np.ndarray) -> np.ndarray:
    """Probabilities along the last dimension with concentrations `alpha` (`_sample_dirichlet`), above zero and below one."""
    kind = checks.resolve(alpha.dtype.name)
    values = np.maximum(_gammas(gen, alpha), np.finfo(np.float64).tiny)
    shares = cast(values / values.sum(-1, keepdims=True), kind)
    info = np.finfo(shares.dtype)
    return np.clip(shares, info.tiny, np.nextafter(info.dtype.type(1), info.dtype.type(0)))


_TAILS = (
    0.0810614667953272,
    0.0413406959554092,
    0.0276779256849983,
    0.02079067210376509,
    0.0166446911898211,
    0.0138761288230707,
    0.0118967099458917,
    0.0104112652619720,
    0.00925546218271273,
    0.00833056343336287,
)


def _stirling_tail(k: float) -> float:
    """log k! less Stirling's formula for it."""
    if k <= 9:
        return _TAILS[int(k)]
    squared = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / squared) / squared) / (k + 1)


def _binomial_waiting(count: float, prob: float, uniform: _Uniforms, kind: type) -> float:
    """Sums of the waiting times between successes (Devroye, "Non-uniform random variate generation", X.4)."""
    log_prob = kind(math.log1p(-prob))
    total, successes = kind(0), 0
    while True:
        u = kind(uniform())
        total += np.ceil(kind(math.log(u)) / log_prob) if u > 0 else kind(np.inf)
        if total > count:
            return successes
        successes += 1


def _binomial_transformed(count: float, prob: float, uniform: _Uniforms, kind: type) -> float:
    """Hoermann, "The generation of binomial random variates" (1993), algorithm BTRS."""
    deviation = math.sqrt(count * prob * (1 - prob))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * prob
    c = count * prob + 0.5
    squeeze = 0.92 - 4.2 / b
    odds = prob / (1 - prob)
    alpha = (2.83 + 5.1 / b) * deviation
    m = math.floor((count + 1) * prob)
    while True:
        u = float(kind(uniform() - 0.5))
        v = float(kind(uniform()))
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + c) if us else -1
        if us >= 0.07 and v <= squeeze:
            return k
        if k < 0 or k > count:
            continue
        ratio = math.log(v * alpha / (a / (us * us) + b)) if v else -math.inf
        bound = (
            (m + 0.5) * math.log((m + 1) / (odds * (count - m + 1)))
            + (count + 1) * math.log((count - m + 1) / (count - k + 1))
            + (k + 0.5) * math.log(odds * (count - k + 1) / (k + 1))
            + _stirling_tail(m)
            + _stirling_tail(count - m)
            - _stirling_tail(k)
            - _stirling_tail(count - k)
        )
        if ratio <= bound:
            return k


def _binomial_one(count: float, prob: float, uniform: _Uniforms, kind: type) -> float:
    if count <= 0 or prob <= 0:
        return 0.0
    if prob >= 1:
        return count
    if prob != prob:
        return math.nan
    rare = min(prob, float(kind(1) - kind(prob))) if prob > 0.5 else prob
    draw = _binomial_transformed if count * rare >= 10 else _binomial_waiting
    drawn = draw(count, rare, uniform, kind)
    return count - drawn if prob > 0.5 else drawn


def binomial(gen: Generator, count: np.ndarray, prob: np.ndarray) -> np.ndarray:
    """How many of `count` trials succeed, each with probability `prob` (`binomial`): in their broadcast shape."""
    shape = np.broadcast_shapes(count.shape, prob.shape)
    counts = np.broadcast_to(count, shape).reshape(-1).tolist()
    probs = np.broadcast_to(prob, shape).reshape(-1).tolist()
    kind = count.dtype.type
    with gen.lock, np.errstate(all="ignore"):
        uniform = _Uniforms(gen.engine)
        values = [_binomial_one(n, p, uniform, kind) for n, p in zip(counts, probs)]
        uniform.close()
    return np.array(values, count.dtype).reshape(shape)
