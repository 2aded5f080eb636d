"""How samples move with the parameters that they were drawn with, on the CPU: gamma and Dirichlet numbers.

The derivative is that of the sample at a fixed quantile, -(d cdf / d parameter) / pdf. No closed form of it is known; the series and expansions here, each where it holds, and the
rational fits between them are PyTorch's, so that gradients are.
"""

from __future__ import annotations

import numpy as np

from .special import digamma

Array = np.ndarray

# Of log(x / alpha), by power in each group of eight: the coefficients of a rational function of log(alpha), see `_fitted_gamma`.
_GAMMA_FIT = np.array(
    [
        [0.16009398, -0.094634809, 0.025146376, -0.0030648343, 1, 0.32668115, 0.10406089, 0.0014179084],
        [0.53487893, 0.1298071, 0.065735949, -0.0015649758, 0.16639465, 0.020070113, -0.0035938915, -0.00058392623],
        [
            0.040121004,
            -0.0065914022,
            -0.0026286047,
            -0.0013441777,
            0.017050642,
            -0.0021309326,
            0.00085092367,
            -1.5247877e-07,
        ],
    ]
)

# Numerator and denominator of a correction, by powers of log(x), of log(alpha / x) and of log(total / alpha * x), see `_fitted_beta`.
_BETA_FIT = np.array(
    [
        [
            [
                [1.003668233, -0.01061107488, -0.0657888334, 0.01201642863],
                [0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033],
                [-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013],
            ],
            [
                [0.221950385, -0.3187676331, 0.01799915743, 0.01074823814],
                [-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057],
                [0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05],
            ],
            [
                [-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565],
                [0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181],
                [0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05],
            ],
        ],
        [
            [
                [1, -0.02924021934, -0.04438342661, 0.007285809825],
                [0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521],
                [-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149],
            ],
            [
                [0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273],
                [0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956],
                [-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05],
            ],
            [
                [0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05],
                [0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05],
                [-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06],
            ],
        ],
    ]
)


def _pieces(shape: tuple[int, ...], choices: list) -> Array:
    """An array put together of functions of flat places: of each place, that of the first condition that holds."""
    out = np.empty(shape, np.float64).reshape(-1)
    left = np.ones(out.shape, bool)
    with np.errstate(all="ignore"):
        for condition, function in choices:
            here = left & condition
            if here.any():
                out[here] = function(here)
            left &= ~here
    return out.reshape(shape)


def _flat(*arrays: Array) -> tuple[tuple[int, ...], list[Array]]:
    joined = np.broadcast_arrays(*(a.astype(np.float64) for a in arrays))
    return joined[0].shape, [a.reshape(-1) for a in joined]


def _zero_where_nan(values: Array) -> Array:
    return np.where(np.isnan(values), 0.0, values)


# --------------------------------------------------------------------------------------------------------------- gamma


def _small_gamma(alpha: Array, x: Array) -> Array:
    """A Taylor series of the incomplete gamma function, for small x."""
    term, below = np.ones_like(x), alpha.copy()
    first, second = term / below, term / (below * below)
    for i in range(1, 6):
        term = term * (-x / i)
        below = below + 1
        first = first + term / below
        second = second + term / (below * below)
    power = x**alpha
    by_alpha = (np.log(x) - digamma(alpha)) * (power * first) - power * second
    return _zero_where_nan(-by_alpha / (x ** (alpha - 1) * np.exp(-x)))


def _large_gamma_near(alpha: Array, x: Array) -> Array:
    """Rice's saddle point expansion where x is near alpha, a removable singularity of it."""
    first = 1 + 24 * alpha * (1 + 12 * alpha)
    second = 1440 * (alpha * alpha) + 6 * x * (53 - 120 * x) - 65 * x * x / alpha + alpha * (107 + 3600 * x)
    return first * second / (1244160 * (alpha * alpha) * (alpha * alpha))


def _large_gamma(alpha: Array, x: Array) -> Array:
    """Rice's saddle point expansion, for large alpha."""
    below = np.sqrt(8 * alpha)
    second = below / (alpha - x)
    third = (x - alpha - alpha * np.log(x / alpha)) ** -1.5
    both = np.where(x < alpha, second - third, second + third)
    first = np.log(x / alpha) * both - np.sqrt(2 / alpha) * (alpha + x) / ((alpha - x) * (alpha - x))
    stirling = 1 + 1 / (12 * alpha) * (1 + 1 / (24 * alpha))
    return -stirling * x * first / below


def _fitted_gamma(alpha: Array, x: Array) -> Array:
    u, v = np.log(x / alpha), np.log(alpha)
    c = [_GAMMA_FIT[0, i] + u * (_GAMMA_FIT[1, i] + u * _GAMMA_FIT[2, i]) for i in range(8)]
    p = c[0] + v * (c[1] + v * (c[2] + v * c[3]))
    q = c[4] + v * (c[5] + v * (c[6] + v * c[7]))
    return np.exp(p / q)


def standard_gamma_grad(self: Array, output: Array) -> Array:
    """d sample / d alpha of gamma numbers `output` with the shapes `self`."""
    shape, (alpha, x) = _flat(self, output)
    large = alpha > 8
    near = (0.9 * alpha <= x) & (x <= 1.1 * alpha)
    return _pieces(
        shape,
        [
            (x < 0.8, lambda i: _small_gamma(alpha[i], x[i])),
            (large & near, lambda i: _large_gamma_near(alpha[i], x[i])),
            (large, lambda i: _large_gamma(alpha[i], x[i])),
            (np.ones(x.shape, bool), lambda i: _fitted_gamma(alpha[i], x[i])),
        ],
    )


# ----------------------------------------------------------------------------------------------------------- dirichlet


def _small_beta_by_alpha(x: Array, alpha: Array, beta: Array) -> Array:
    """A series of the incomplete beta function for x near 0, by its first parameter."""
    factor = digamma(alpha) - digamma(alpha + beta) - np.log(x)
    term = np.ones_like(x)
    series = term / alpha * (factor + 1 / alpha)
    for i in range(1, 11):
        term = term * ((i - beta) * x / i)
        below = alpha + i
        series = series + term / below * (factor + 1 / below)
    return _zero_where_nan(x * (1 - x) ** -beta * series)


def _small_beta_by_beta(x: Array, alpha: Array, beta: Array) -> Array:
    """The same by the second parameter."""
    factor = digamma(alpha + beta) - digamma(beta)
    term, betas, slopes = np.ones_like(x), np.ones_like(x), np.zeros_like(x)
    series = factor / alpha
    for i in range(1, 9):
        term = term * (-x / i)
        slopes = slopes * (beta - i) + betas
        betas = betas * (beta - i)
        series = series + term / (alpha + i) * (slopes + factor * betas)
    return _zero_where_nan(-((1 - x) ** (1 - beta)) * series)


def _large_beta(x: Array, alpha: Array, beta: Array) -> Array:
    """A saddle point expansion, for large parameters."""
    total = alpha + beta
    mean = alpha / total
    deviation = np.sqrt(alpha * beta / (total + 1)) / total
    near = (mean - 0.1 * deviation <= x) & (x <= mean + 0.1 * deviation)
    squared = beta * beta
    polynomial = 47 * x * squared * squared + alpha * (
        (43 + 20 * (16 + 27 * beta) * x) * squared * beta
        + alpha
        * (
            3 * (59 + 180 * beta - 90 * x) * squared
            + alpha * ((453 + 1620 * beta * (1 - x) - 455 * x) * beta + alpha * (8 * (1 - x) * (135 * beta - 11)))
        )
    )
    above = (1 + 12 * alpha) * (1 + 12 * beta) / (total * total)
    below = 12960 * alpha * alpha * alpha * squared * (1 + 12 * total)
    at_mean = above / (1 - x) * polynomial / below

    def stirling(n: Array) -> Array:
        return 1 + 1 / (12 * n) + 1 / (288 * n * n)

    prefactor = -x / np.sqrt(2 * alpha * beta / total)
    distance = alpha * (x - 1) + beta * x
    first = (2 * (alpha * alpha) * (x - 1) + alpha * beta * (x - 1) - x * squared) / (
        np.sqrt(2 * alpha / beta) * total**1.5 * distance * distance
    )
    second = 0.5 * np.log(alpha / (total * x))
    third = np.sqrt(8 * alpha * beta / total) / distance
    fourth = (beta * np.log(beta / (total * (1 - x))) + alpha * np.log(alpha / (total * x))) ** -1.5
    away = prefactor * (first + second * (third + np.where(x < mean, fourth, -fourth)))
    return np.where(near, at_mean, stirling(alpha) * stirling(beta) / stirling(total) * away)


def _fitted_beta(x: Array, alpha: Array, total: Array) -> Array:
    u = np.log(x)
    a = np.log(alpha) - u
    b = np.log(total) - a
    p, q = (
        sum(
            u**i * a**j * (c[i, j, 0] + b * (c[i, j, 1] + b * (c[i, j, 2] + b * c[i, j, 3])))
            for i in range(3)
            for j in range(3)
        )
        for c in _BETA_FIT
    )
    return p / q * x * (digamma(total) - digamma(alpha)) / (total - alpha)


def dirichlet_grad(x: Array, alpha: Array, total: Array) -> Array:
    """d sample / d alpha of Dirichlet numbers `x` with the concentrations `alpha`, which sum to `total`, over 1 - x."""
    shape, (x, alpha, total) = _flat(x, alpha, total)
    beta = total - alpha
    boundary = total * x * (1 - x)
    return _pieces(
        shape,
        [
            ((x <= 0.5) & (boundary < 2.5), lambda i: _small_beta_by_alpha(x[i], alpha[i], beta[i])),
            ((x >= 0.5) & (boundary < 0.75), lambda i: -_small_beta_by_beta(1 - x[i], beta[i], alpha[i])),
            ((alpha > 6) & (beta > 6), lambda i: _large_beta(x[i], alpha[i], beta[i])),
            (np.ones(x.shape, bool), lambda i: _fitted_beta(x[i], alpha[i], total[i])),
        ],
    )
