"""Random correlation matrices, by their Cholesky factors."""

from __future__ import annotations

import math
from typing import Any

import mindtorch_v2 as mt

from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Lower Cholesky factors of `dim` x `dim` correlation matrices M, whose density is proportional to det(M) ** (concentration - 1).

    Lewandowski, Kurowicka and Joe, "Generating random correlation matrices based on vines and extended onion method" (2009), section 3.

    Raises:
        ValueError: if `dim` is less than 2.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # The squared length of each row's part beside the diagonal.
        marginal = self.concentration + 0.5 * (self.dim - 2)
        rows = mt.arange(self.dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        rows = mt.cat([rows.new_zeros((1,)), rows])
        self._beta = Beta(rows + 0.5, marginal.unsqueeze(-1) - 0.5 * rows)
        super().__init__(self.concentration.size(), (dim, dim), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._expand_parameters(LKJCholesky, batch_shape, _instance, "concentration")
        made.dim = self.dim
        made._beta = self._beta.expand((*batch_shape, self.dim))
        return made

    def sample(self, sample_shape: Any = ()) -> Any:
        with mt.no_grad():
            squared = self._beta.sample(sample_shape).unsqueeze(-1)
            kind = self.concentration
            normal = mt.randn(self._extended_shape(sample_shape), dtype=kind.dtype, device=kind.device).tril(-1)
            direction = normal / normal.norm(dim=-1, keepdim=True)
            direction[..., 0, :].fill_(0.0)  # the first row has nothing beside the diagonal
            w = mt.sqrt(squared) * direction
            rest = (1 - mt.sum(w**2, dim=-1)).clamp(min=mt.finfo(w.dtype).tiny).sqrt()
            return w + mt.diag_embed(rest)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = mt.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        unnormalised = mt.sum(order * diagonal.log(), dim=-1)
        # The constant is a product of beta functions (page 1999 there).
        below = self.dim - 1
        alpha = self.concentration + 0.5 * below
        constant = 0.5 * below * math.log(math.pi) + mt.mvlgamma(alpha - 0.5, below) - mt.lgamma(alpha) * below
        return unnormalised - constant
