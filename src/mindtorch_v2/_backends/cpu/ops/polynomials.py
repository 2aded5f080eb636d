"""Orthogonal polynomials on the CPU: Chebyshev's of four kinds, Hermite's of two, Laguerre's and Legendre's.

By their recurrences in the degree (Abramowitz and Stegun, 22.7), for all elements at once; Chebyshev's of high degrees within (-1, 1) by the
cosines and sines that they are (22.3.15, 22.3.16), since the recurrence loses digits there. A degree is cut to an integer; below 0, and
where no int64 holds it, the value is 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Array = np.ndarray
Step = Callable[[int, Array, Array, Array], Array]
"""The polynomial of degree k + 1, of the degree k, x, and the polynomials of degrees k and k - 1."""

_BY_COSINE = 8
"""Chebyshev polynomials of higher degrees are computed by cosines."""


def _recur(x: Array, n: Array, first: Array, step: Step, known: Array, values: Array) -> Array:
    """The polynomial of degree n at x: 1 for 0, `first` for 1, then by `step`; where it is `known` beforehand, `values`."""
    known = known & (n > 1)
    n = np.where(known, 0, n)
    before, now = np.ones_like(x), first
    out = np.where(n == 0, before, np.where(n == 1, now, 0.0))
    out = np.where(known, values, np.where(np.isnan(x) & (n > 0), np.nan, out))
    top = int(n.max(initial=0))
    degree = 1
    with np.errstate(all="ignore"):
        while degree < top:
            before, now = now, step(degree, x, now, before)
            degree += 1
            out = np.where(n == degree, now, out)
            if np.isnan(now[n > degree]).all():  # as all that follows is
                return np.where(n > degree, now, out)
    return out


def _operands(x: Array, n: Array) -> tuple[Array, Array, np.dtype]:
    kind = np.result_type(x, n)
    x, n = np.broadcast_arrays(np.asarray(x, kind), np.asarray(n, np.float64))
    with np.errstate(invalid="ignore"):
        return x, np.where(np.abs(n) < 2.0**63, np.trunc(n), -1.0).astype(np.int64), kind


def _at_ones(x: Array, n: Array, right: Array | int, left: Array | int) -> tuple[Array, Array]:
    """Where x is 1 or -1, and what is there: `right` at 1, and `left` with the sign of the degree's parity at -1."""
    return np.abs(x) == 1, np.where(x > 0, right, (1 - n % 2 * 2) * left)


def _chebyshev(
    x: Array, n: Array, first: Array, wave: Callable[[Array, Array], Array], right: Array | int, left: Array | int
) -> Array:
    """By recurrence, or of a high degree within (-1, 1) by `wave`, of the angle and the degree."""
    by_wave = (n > _BY_COSINE) & (np.abs(x) < 1)
    ends = _at_ones(x, n, right, left)
    out = _recur(x, np.where(by_wave, 0, n), first, lambda k, x, p, q: 2.0 * x * p - q, *ends)
    if by_wave.any():
        out[by_wave] = wave(np.arccos(x[by_wave]), n[by_wave])
    return out


def _t(x: Array, n: Array) -> Array:
    return _chebyshev(x, n, x, lambda angle, n: np.cos(n * angle), 1, 1)


def _u(x: Array, n: Array) -> Array:
    return _chebyshev(x, n, 2.0 * x, lambda angle, n: np.sin((n + 1) * angle) / np.sin(angle), n + 1, n + 1)


def _v(x: Array, n: Array) -> Array:
    return _chebyshev(x, n, 2.0 * x - 1.0, lambda angle, n: np.cos((n + 0.5) * angle) / np.cos(angle / 2), 1, 2 * n + 1)


def _w(x: Array, n: Array) -> Array:
    return _chebyshev(x, n, 2.0 * x + 1.0, lambda angle, n: np.sin((n + 0.5) * angle) / np.sin(angle / 2), 2 * n + 1, 1)


def _laguerre(x: Array, n: Array) -> Array:
    return _recur(x, n, 1.0 - x, lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1), x == 0, np.ones_like(x))


def _legendre(x: Array, n: Array) -> Array:
    return _recur(x, n, x, lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1), *_at_ones(x, n, 1, 1))


def _polynomial(x: Array, n: Array, function: Callable[[Array, Array], Array], shifted: bool = False) -> Array:
    x, n, kind = _operands(x, n)
    with np.errstate(over="ignore"):
        return function(2.0 * x - 1.0 if shifted else x, n).astype(kind, copy=False)


def chebyshev_polynomial_t(x: Array, n: Array) -> Array:
    """Chebyshev's polynomial of the first kind, cos(n arccos(x))."""
    return _polynomial(x, n, _t)


def chebyshev_polynomial_u(x: Array, n: Array) -> Array:
    """Chebyshev's polynomial of the second kind."""
    return _polynomial(x, n, _u)


def chebyshev_polynomial_v(x: Array, n: Array) -> Array:
    """Chebyshev's polynomial of the third kind."""
    return _polynomial(x, n, _v)


def chebyshev_polynomial_w(x: Array, n: Array) -> Array:
    """Chebyshev's polynomial of the fourth kind."""
    return _polynomial(x, n, _w)


def shifted_chebyshev_polynomial_t(x: Array, n: Array) -> Array:
    """Chebyshev's polynomial of the first kind at 2 x - 1."""
    return _polynomial(x, n, _t, True)


def shifted_chebyshev_polynomial_u(x: Array, n: Array) -> Array:
    """Chebyshev's polynomial of the second kind at 2 x - 1."""
    return _polynomial(x, n, _u, True)


def shifted_chebyshev_polynomial_v(x: Array, n: Array) -> Array:
    """Chebyshev's polynomial of the third kind at 2 x - 1."""
    return _polynomial(x, n, _v, True)


def shifted_chebyshev_polynomial_w(x: Array, n: Array) -> Array:
    """Chebyshev's polynomial of the fourth kind at 2 x - 1."""
    return _polynomial(x, n, _w, True)


_HERMITE_LIMIT = {"f": 128, "d": 512}
"""The largest degree that PyTorch computes in a dtype; NaN beyond."""


def _hermite(x: Array, n: Array, factor: float) -> Array:
    x, n, kind = _operands(x, n)
    beyond = n > _HERMITE_LIMIT[kind.char]
    with np.errstate(over="ignore"):
        out = _recur(x, n, factor * x, lambda k, x, p, q: factor * (x * p - k * q), beyond, np.full_like(x, np.nan))
    return out.astype(kind, copy=False)


def hermite_polynomial_h(x: Array, n: Array) -> Array:
    """Hermite's polynomial of the physicists, with the weight exp(-x x)."""
    return _hermite(x, n, 2.0)


def hermite_polynomial_he(x: Array, n: Array) -> Array:
    """Hermite's polynomial of the probabilists, with the weight exp(-x x / 2)."""
    return _hermite(x, n, 1.0)


def laguerre_polynomial_l(x: Array, n: Array) -> Array:
    """Laguerre's polynomial."""
    return _polynomial(x, n, _laguerre)


def legendre_polynomial_p(x: Array, n: Array) -> Array:
    """Legendre's polynomial."""
    return _polynomial(x, n, _legendre)
