"""Distributions by rejection, whose number of draws depends on the numbers drawn: Poisson.

They are loops over the elements, in the order of their indices.
"""

from __future__ import annotations

import math

import numpy as np

from .._dispatch.native import kernel
from .._rules import distributions as checks
from .continuous import cast, unit64
from .engine import Mt19937
from .generator import Generator

# Uniforms drawn ahead.
_CHUNK = 512


class _Uniforms:
    """53-bit uniforms one by one, drawn in chunks; `close` leaves the engine as if only those used had been drawn."""

    def __init__(self, engine: Mt19937) -> None:
        self._engine = engine
        self._start = engine.position()
        self._used = 0
        self._chunk: list[float] = []
        self._at = 0

    def __call__(self) -> float:
        if self._at == len(self._chunk):
            self._used += self._at
            self._chunk = unit64(self._engine, _CHUNK).tolist()
            self._at = 0
        value = self._chunk[self._at]
        self._at += 1
        return value

    def close(self) -> None:
        self._engine.set_position(*self._start)
        left = 2 * (self._used + self._at)
        while left:
            left -= len(self._engine.raw(min(left, 1 << 16)))


def _poisson_one(rate: float, uniform: _Uniforms) -> int:
    if rate >= 10:
        return _poisson_transformed(rate, uniform)
    if rate == 0:
        return 0
    # Arrivals before time 1, their gaps multiplied (Knuth, volume 2, 3.4.1).
    threshold, product, count = math.exp(-rate), 1.0, 0
    while True:
        product *= uniform()
        if product <= threshold:
            return count
        count += 1


def _poisson_transformed(rate: float, uniform: _Uniforms) -> int:
    """W.

    Hoermann, "The transformed rejection method for generating Poisson random variables" (1993), algorithm PTRS.
    """
    log_rate = math.log(rate)
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    squeeze = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = uniform() - 0.5
        v = uniform()
        us = 0.5 - abs(u)
        if us == 0:
            continue
        k = math.floor((2 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= squeeze:
            return k
        if k < 0 or (us < 0.013 and v > us):
            continue
        ratio = (math.log(v) if v else -math.inf) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
        if ratio <= -rate + k * log_rate - math.lgamma(k + 1.0):
            return k


@kernel
def poisson(gen: Generator, rates: np.ndarray) -> np.ndarray:
    """Poisson numbers of `rates` (`poisson`), of the same shape and dtype.

    Raises RuntimeError for a rate below zero or NaN.
    """
    checks.poisson(rates.dtype.name)
    if not (rates >= 0).all():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    flat = rates.astype(np.float64).reshape(-1).tolist()
    with gen.lock:
        uniform = _Uniforms(gen.engine)
        values = [_poisson_one(rate, uniform) for rate in flat]
        uniform.close()
    return cast(np.array(values, np.float64), checks.resolve(rates.dtype.name)).reshape(rates.shape)
