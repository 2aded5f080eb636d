"""Derivatives of reductions, scans and sorting.

`grad` is the gradient of the result. `dim` is as the caller gave it: None or an empty list for all dimensions, a number,
or a list. Saved shapes stand for inputs whose values are not needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..._dispatch import ops
from ..._dtype import finfo
from ..._tensor import Tensor
from .pointwise import conj_of

Dim = int | Sequence[int] | None


def _dims(dim: Dim, ndim: int) -> list[int]:
    """The reduced dimensions, not negative, ascending."""
    if dim is None or not ndim:
        return list(range(ndim))
    if isinstance(dim, int):
        return [dim % ndim]
    return sorted(d % ndim for d in dim) or list(range(ndim))


def _count(shape: Sequence[int], dim: Dim) -> int:
    return math.prod(shape[d] for d in _dims(dim, len(shape)))


def restored(x: Tensor, ndim: int, dim: Dim, keepdim: bool) -> Tensor:
    """A reduced tensor with its reduced dimensions back, of length 1."""
    if keepdim or not ndim:
        return x
    for d in _dims(dim, ndim):
        x = ops.unsqueeze(x, d)
    return x


def sum_gradient(grad: Tensor, shape: Sequence[int], dim: Dim, keepdim: bool) -> Tensor:
    """grad spread over the reduced dimensions."""
    return ops.expand(restored(grad, len(shape), dim, keepdim), list(shape))


def mean_gradient(grad: Tensor, shape: Sequence[int], dim: Dim, keepdim: bool) -> Tensor:
    """grad spread over the reduced dimensions, divided by their size."""
    return sum_gradient(grad, shape, dim, keepdim) / _count(shape, dim)


def _others_product(self: Tensor, dim: int) -> Tensor:
    """For each element the product of the others along a dimension, right for zeros too."""
    n = self.shape[dim]
    one = ops.ones_like(ops.narrow(self, dim, 0, 1))
    before = ops.cumprod(ops.cat([one, ops.narrow(self, dim, 0, n - 1)], dim), dim)
    behind = ops.flip(
        ops.cat([one, ops.flip(ops.narrow(self, dim, 1, n - 1), [dim])], dim).cumprod(dim),
        [dim],
    )
    return before * behind


def prod_gradient(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """The gradient of the product of all elements."""
    if not self.dim():
        return grad
    if not self.numel():
        return ops.zeros_like(self)
    others = ops.reshape(_others_product(ops.reshape(self, [-1]), 0), list(self.shape))
    return grad * conj_of(others)


def prod_dim_gradient(grad: Tensor, self: Tensor, result: Tensor, dim: int, keepdim: bool) -> Tensor:
    """The gradient of the product over one dimension."""
    if not self.dim():
        return grad
    if not self.numel():
        return ops.zeros_like(self)
    return restored(grad, self.dim(), dim, keepdim) * conj_of(_others_product(self, dim % self.dim()))


# --- variance -----------------------------------------------------------------------------------------------------


def var_gradient(grad: Tensor, self: Tensor, dim: Dim, correction: Any, keepdim: bool) -> Tensor:
    """2 (self - mean) / (n - correction)."""
    freedom = _count(self.shape, dim) - (1 if correction is None else correction)
    grad = restored(grad, self.dim(), dim, keepdim)
    center = ops.mean(self, _dims(dim, self.dim()), True)
    if freedom <= 0:
        # The result was NaN or infinite; so is its gradient.
        return grad * (self - center) * math.inf
    return grad * (2.0 / freedom) * (self - center)


def std_gradient(grad: Tensor, self: Tensor, result: Tensor, dim: Dim, correction: Any, keepdim: bool) -> Tensor:
    """The gradient of the variance's root; 0 where it is 0."""
    share = ops.masked_fill(grad / (result * 2), result == 0, 0)
    return var_gradient(share, self, dim, correction, keepdim)


def _together(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    if first is None or second is None:
        return second if first is None else first
    return first + second


def var_mean_gradient(grads: Any, self: Tensor, dim: Dim, correction: Any, keepdim: bool) -> Tensor | None:
    """The sum of both results' gradients."""
    spread = None if grads[0] is None else var_gradient(grads[0], self, dim, correction, keepdim)
    return _together(
        spread,
        None if grads[1] is None else mean_gradient(grads[1], self.shape, dim, keepdim),
    )


def std_mean_gradient(
    grads: Any, self: Tensor, result: Tensor, dim: Dim, correction: Any, keepdim: bool
) -> Tensor | None:
    """The sum of both results' gradients."""
    spread = None if grads[0] is None else std_gradient(grads[0], self, result, dim, correction, keepdim)
    return _together(
        spread,
        None if grads[1] is None else mean_gradient(grads[1], self.shape, dim, keepdim),
    )


# --- extremes and ranks -------------------------------------------------------------------------------------------


def _equal_or_nan(self: Tensor, result: Tensor) -> Tensor:
    return ops.logical_or(self == result, ops.logical_and(ops.isnan(self), ops.isnan(result)))


def evenly_gradient(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """grad shared by all elements equal to the result."""
    mask = _equal_or_nan(self, result)
    return mask * (grad / ops.sum(mask))


def shared_gradient(grad: Tensor, self: Tensor, result: Tensor, dim: Dim, keepdim: bool) -> Tensor:
    """grad shared by the elements equal to the result, over dimensions."""
    ndim = self.dim()
    mask = restored(result, ndim, dim, keepdim) == self
    return restored(grad, ndim, dim, keepdim) * mask / ops.sum(mask, _dims(dim, ndim), True)


def aminmax_gradient(grads: Any, self: Tensor, low: Tensor, high: Tensor, dim: Dim, keepdim: bool) -> Tensor | None:
    """The sum of both results' gradients."""
    first, second = (
        None if grad is None else shared_gradient(grad, self, result, dim, keepdim)
        for grad, result in zip(grads, (low, high))
    )
    return _together(first, second)


def placed_gradient(grad: Tensor, shape: Sequence[int], dim: int, indices: Tensor) -> Tensor:
    """grad where the selected elements stood; several may be selected along `dim`."""
    if not shape:
        return grad
    return ops.scatter(ops.new_zeros(grad, list(shape)), dim, indices, grad)


def selected_gradient(grad: Tensor, shape: Sequence[int], dim: int, indices: Tensor, keepdim: bool) -> Tensor:
    """grad where the one element selected along `dim` stood."""
    if not shape:
        return grad
    if not keepdim:
        grad, indices = ops.unsqueeze(grad, dim), ops.unsqueeze(indices, dim)
    return placed_gradient(grad, shape, dim, indices)


def cumulative_selected_gradient(grad: Tensor, shape: Sequence[int], dim: int, indices: Tensor) -> Tensor:
    """grad added up where each running extreme stood."""
    if not shape:
        return grad
    return ops.scatter_add(ops.new_zeros(grad, list(shape)), dim, indices, grad)


# --- norms and logarithms of sums ---------------------------------------------------------------------------------


def logsumexp_gradient(grad: Tensor, self: Tensor, result: Tensor, dim: Dim, keepdim: bool) -> Tensor:
    """grad times the softmax."""
    ndim = self.dim()
    result = restored(result, ndim, dim, keepdim)
    shift = ops.masked_fill(result, ops.isinf(result), 0)
    return restored(grad, ndim, dim, keepdim) * conj_of(ops.exp(self - shift))


def norm_gradient(grad: Tensor, self: Tensor, result: Tensor, ord: Any, dim: Dim, keepdim: bool) -> Tensor:
    """The gradient of the ord-norm; 0 at 0, where the norm has a corner."""
    ndim = self.dim()
    grad = restored(grad, ndim, dim, keepdim)
    norm = restored(result, ndim, dim, keepdim)
    if ord == 0:
        return ops.zeros_like(self)
    if ord == 1:
        return ops.sgn(self) * grad
    if ord == 2:
        return grad * ops.masked_fill(self / norm, norm == 0, 0)
    if math.isinf(ord):
        mask = _equal_or_nan(ops.abs(self), norm)
        share = mask / ops.sum(mask, _dims(dim, ndim), True)
        return ops.sgn(self) * (share * grad)
    if ord < 1:
        scaled = ops.masked_fill(ops.sgn(self) * ops.pow(ops.abs(self), ord - 1), self == 0, 0)
        return scaled * (grad * ops.pow(norm, 1 - ord))
    scale = ops.masked_fill(grad / ops.pow(norm, ord - 1), norm == 0, 0)
    return self * ops.masked_fill(ops.pow(ops.abs(self), ord - 2), self == 0, 0) * scale


# --- scans --------------------------------------------------------------------------------------------------------


def cumsum_gradient(grad: Tensor, dim: int) -> Tensor:
    """The running sum from the end."""
    if grad.dim() == 0 or grad.shape[dim] <= 1:
        return grad
    return ops.flip(ops.cumsum(ops.flip(grad, [dim]), dim), [dim])


def cumprod_gradient(grad: Tensor, self: Tensor, dim: int, result: Tensor) -> Tensor:
    """The gradient of the running product, column by column where there are zeros."""
    if not self.dim() or self.shape[dim] <= 1:
        return grad
    if not bool((self == 0).any()):
        return cumsum_gradient(grad * conj_of(result), dim) / conj_of(self)
    n = self.shape[dim]
    columns = []
    for k in range(n):
        # Every later product without its factor k.
        later = ops.narrow(self, dim, k + 1, n - k - 1)
        first = ops.narrow(result, dim, k - 1, 1) if k else ops.ones_like(ops.narrow(self, dim, 0, 1))
        products = ops.cumprod(ops.cat([first, later], dim), dim)
        columns.append(ops.sum(ops.narrow(grad, dim, k, n - k) * conj_of(products), [dim], True))
    return ops.cat(columns, dim)


def logcumsumexp_gradient(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    """In logarithms, so that nothing overflows: positive and negative parts of grad apart."""
    if not grad.dim() or not grad.numel():
        return grad
    if grad.dtype.is_complex:
        return cumsum_gradient(grad * conj_of(ops.exp(-result)), dim) * conj_of(ops.exp(self))

    magnitude = ops.log(ops.abs(grad))
    # Finite, so that its own derivative is 0 rather than NaN.
    nothing = finfo(grad.dtype).min

    def part(there: Tensor) -> Tensor:
        logs = ops.where(there, magnitude, nothing) - result
        return ops.exp(ops.flip(ops.logcumsumexp(ops.flip(logs, [dim]), dim), [dim]) + self)

    return part(grad > 0) - part(grad < 0)


__all__ = [
    "aminmax_gradient",
    "cumprod_gradient",
    "cumsum_gradient",
    "cumulative_selected_gradient",
    "evenly_gradient",
    "logcumsumexp_gradient",
    "logsumexp_gradient",
    "mean_gradient",
    "norm_gradient",
    "placed_gradient",
    "prod_dim_gradient",
    "prod_gradient",
    "restored",
    "selected_gradient",
    "shared_gradient",
    "std_gradient",
    "std_mean_gradient",
    "sum_gradient",
    "var_gradient",
    "var_mean_gradient",
]
