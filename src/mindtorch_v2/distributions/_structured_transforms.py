"""Transforms of vectors and matrices, and those that treat parts of a tensor differently."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mindtorch_v2 as mt

from . import constraints
from ._transform_base import Transform
from .utils import tril_matrix_to_vec, vec_to_tril_matrix

__all__ = [
    "CatTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "ReshapeTransform",
    "SoftmaxTransform",
    "StackTransform",
    "StickBreakingTransform",
]

_pad = mt.nn.functional.pad


def _clipped_sigmoid(x: Any) -> Any:
    info = mt.finfo(x.dtype)
    return mt.sigmoid(x).clamp(min=info.tiny, max=1.0 - info.eps)


class ReshapeTransform(Transform):
    """The last dimensions in another shape of as many elements.

    Raises:
        ValueError: if the shapes have different numbers of elements.
    """

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape = mt.Size(in_shape)
        self.out_shape = mt.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:  # type: ignore[override]  (an attribute in most classes)
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:  # type: ignore[override]
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Transform:
        return (
            self
            if self._cache_size == cache_size
            else ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)
        )

    def _call(self, x: Any) -> Any:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Any) -> Any:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return self._exchanged(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._exchanged(shape, self.out_shape, self.in_shape)

    @staticmethod
    def _exchanged(shape: Any, before: Any, after: Any) -> Any:
        if len(shape) < len(before):
            raise ValueError("Too few dimensions on input")
        cut = len(shape) - len(before)
        if shape[cut:] != before:
            raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {before}")
        return shape[:cut] + after


class SoftmaxTransform(Transform):
    """`y = softmax(x)` along the last dimension; the inverse is the logarithm. Not bijective: it forgets a number that is added to all."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxTransform)

    __hash__ = Transform.__hash__

    def _call(self, x: Any) -> Any:
        unnormalised = (x - x.max(-1, True)[0]).exp()
        return unnormalised / unnormalised.sum(-1, True)

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """n numbers to n + 1 probabilities: each takes its share, a sigmoid of it, of what the former have left."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StickBreakingTransform)

    __hash__ = Transform.__hash__

    @staticmethod
    def _remaining(x: Any) -> Any:
        """How many shares are left at each of the numbers, without the last; zero shares equally then."""
        return x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)

    def _call(self, x: Any) -> Any:
        share = _clipped_sigmoid(x - self._remaining(x).log())
        left = (1 - share).cumprod(-1)
        return _pad(share, [0, 1], value=1) * _pad(left, [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        head = y[..., :-1]
        left = (1 - head.cumsum(-1)).clamp(min=mt.finfo(y.dtype).tiny)
        return head.log() - left.log() + self._remaining(head).log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        moved = x - self._remaining(x).log()
        return (-moved + mt.nn.functional.logsigmoid(moved) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape[:-1] + (shape[-1] - 1,)


class LowerCholeskyTransform(Transform):
    """A square matrix to a lower triangular one with a positive diagonal, the exponential of that of x."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LowerCholeskyTransform)

    __hash__ = Transform.__hash__

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """A square matrix to a positive definite one, whose Cholesky factor is that of `LowerCholeskyTransform`."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositiveDefiniteTransform)

    __hash__ = Transform.__hash__

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(mt.linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """n (n - 1) / 2 numbers to the Cholesky factor of an n x n correlation matrix.

    Their hyperbolic tangents are partial correlations; row by row each takes its share of the length 1 that the former have left.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Any) -> Any:
        eps = mt.finfo(x.dtype).eps
        partial = vec_to_tril_matrix(mt.tanh(x).clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - partial**2).sqrt().cumprod(-1)
        unit = partial + mt.eye(partial.shape[-1], dtype=partial.dtype, device=partial.device)
        return unit * _pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        left = _pad((1 - mt.cumsum(y * y, dim=-1))[..., :-1], [1, 0], value=1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Any:
        left = 1 - (y * y).cumsum(dim=-1)
        # What the first column and the diagonal leave does not vary with x.
        shares = 0.5 * tril_matrix_to_vec(left, diag=-2).log().sum(-1)
        tangents = -2 * (x + mt.nn.functional.softplus(-2 * x) - math.log(2.0)).sum(dim=-1)
        return shares + tangents

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        count = shape[-1]
        n = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (n, n)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        n = shape[-1]
        return shape[:-2] + (n * (n - 1) // 2,)


class CatTransform(Transform):
    """Maps of parts side by side along a dimension, of given lengths (1 each unless said)."""

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"{len(self.transforms)} transforms, but {len(self.lengths)} lengths")
        self.dim = dim

    @property
    def event_dim(self) -> int:
        """How many of the last dimensions belong to one value."""
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """The length of the dimension."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, value: Any) -> list[Any]:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} out of range for tensor with {value.dim()} dimensions")
        if value.size(self.dim) != self.length:
            raise AssertionError(f"size at dim {self.dim} is {value.size(self.dim)}, expected {self.length}")
        return list(value.split(self.lengths, self.dim))

    def _call(self, x: Any) -> Any:
        return mt.cat([t(part) for t, part in zip(self.transforms, self._parts(x))], dim=self.dim)

    def _inverse(self, y: Any) -> Any:
        return mt.cat([t.inv(part) for t, part in zip(self.transforms, self._parts(y))], dim=self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        terms = []
        for t, before, after in zip(self.transforms, self._parts(x), self._parts(y)):
            term = t.log_abs_det_jacobian(before, after)
            if t.event_dim < self.event_dim:
                term = _summed(term, self.event_dim - t.event_dim)
            terms.append(term)
        dim = self.dim if self.dim < 0 else self.dim - x.dim()
        dim += self.event_dim
        return mt.cat(terms, dim=dim) if dim < 0 else sum(terms)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether all of them have inverses."""
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self) -> Any:  # type: ignore[override]  (an attribute in most classes)
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:  # type: ignore[override]
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


def _summed(value: Any, count: int) -> Any:
    return value.reshape(value.shape[:-count] + (-1,)).sum(-1)


class StackTransform(Transform):
    """Maps of the slices of a dimension, one each."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.dim = dim

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _slice(self, z: Any) -> list[Any]:
        return [z.select(self.dim, i) for i in range(z.size(self.dim))]

    def _checked(self, value: Any) -> Any:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} out of range for tensor with {value.dim()} dimensions")
        if value.size(self.dim) != len(self.transforms):
            raise AssertionError(f"size at dim {self.dim} is {value.size(self.dim)}, expected {len(self.transforms)}")
        return value

    def _call(self, x: Any) -> Any:
        return mt.stack([t(part) for part, t in zip(self._slice(self._checked(x)), self.transforms)], dim=self.dim)

    def _inverse(self, y: Any) -> Any:
        return mt.stack([t.inv(part) for part, t in zip(self._slice(self._checked(y)), self.transforms)], dim=self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        pairs = zip(self.transforms, self._slice(self._checked(x)), self._slice(self._checked(y)))
        return mt.stack([t.log_abs_det_jacobian(before, after) for t, before, after in pairs], dim=self.dim)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether all of them have inverses."""
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self) -> Any:  # type: ignore[override]  (an attribute in most classes)
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:  # type: ignore[override]
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


class CumulativeDistributionTransform(Transform):
    """The distribution function of `distribution`: to probabilities."""

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:  # type: ignore[override]  (an attribute in most classes)
        """Where x lies: the distribution's support."""
        return self.distribution.support

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)
