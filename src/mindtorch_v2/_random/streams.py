"""Every distribution by name: the one module that kernels import.

See `continuous`, `discrete`, `rejection` and `layout`.
"""

from __future__ import annotations

from .continuous import cauchy, exponential, log_normal, normal, normal_like, uniform
from .discrete import bernoulli, bernoulli_tensor, dropout_mask, geometric, multinomial, randint, random, randperm
from .gamma import binomial, dirichlet, gamma
from .layout import draw_order, fill, fill_like
from .rejection import poisson

__all__ = [
    "bernoulli",
    "bernoulli_tensor",
    "binomial",
    "cauchy",
    "dirichlet",
    "draw_order",
    "dropout_mask",
    "exponential",
    "fill",
    "fill_like",
    "gamma",
    "geometric",
    "log_normal",
    "multinomial",
    "normal",
    "normal_like",
    "poisson",
    "randint",
    "random",
    "randperm",
    "uniform",
]
