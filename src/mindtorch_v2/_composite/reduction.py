"""Reductions made of other operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindtorch_v2 import _dtype
from mindtorch_v2._generated import functions as F
from mindtorch_v2._tensor import Tensor

Dim = int | Sequence[int] | None


def nanmean(self: Tensor, dim: Dim = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The mean of what is not NaN. Raises RuntimeError for integers."""
    if not (self.dtype.is_floating_point or self.dtype.is_complex):
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {self.dtype.cpp}"
        )
    count = F.sum(F.logical_not(F.isnan(self)), dim, keepdim)
    return F.div(F.nansum(self, dim, keepdim, dtype=dtype), count)


def sum_to_size(self: Tensor, size: Sequence[int]) -> Tensor:
    """The sum over whatever dimensions broadcasting to `size` would have added. RuntimeError if it would not broadcast."""
    size = list(size)
    if not size:
        return F.sum(self)
    lead = self.dim() - len(size)
    tail = list(self.shape[lead:]) if lead >= 0 else []
    if lead < 0 or any(want not in (1, have) for want, have in zip(size, tail)):
        raise RuntimeError(f"size {{{size}}} is not expandable to size {{{list(self.shape)}}}.")
    dims = [
        *range(lead),
        *(lead + i for i, want in enumerate(size) if want == 1 and tail[i] != 1),
    ]
    if not dims:
        return self
    return F.reshape(F.sum(self, dims, True), size)


# --- variances with `unbiased` ------------------------------------------------------------------------------------


def var(self: Tensor, unbiased: bool = True) -> Tensor:
    """The variance of all elements."""
    return F.var(self, None, correction=int(unbiased), keepdim=False)


def var_dim(self: Tensor, dim: Dim, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    """The variance over dimensions."""
    return F.var(self, dim, correction=int(unbiased), keepdim=keepdim)


def std(self: Tensor, unbiased: bool = True) -> Tensor:
    """The standard deviation of all elements."""
    return F.std(self, None, correction=int(unbiased), keepdim=False)


def std_dim(self: Tensor, dim: Dim, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    """The standard deviation over dimensions."""
    return F.std(self, dim, correction=int(unbiased), keepdim=keepdim)


def var_mean(self: Tensor, unbiased: bool = True) -> tuple[Tensor, Tensor]:
    """Variance and mean of all elements."""
    return F.var_mean(self, None, correction=int(unbiased), keepdim=False)


def var_mean_dim(self: Tensor, dim: Dim, unbiased: bool = True, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Variance and mean over dimensions."""
    return F.var_mean(self, dim, correction=int(unbiased), keepdim=keepdim)


def std_mean(self: Tensor, unbiased: bool = True) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean of all elements."""
    return F.std_mean(self, None, correction=int(unbiased), keepdim=False)


def std_mean_dim(self: Tensor, dim: Dim, unbiased: bool = True, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean over dimensions."""
    return F.std_mean(self, dim, correction=int(unbiased), keepdim=keepdim)


# --- extremes of two tensors --------------------------------------------------------------------------------------


def max_other(self: Tensor, other: Tensor) -> Tensor:
    """The larger elements."""
    return F.maximum(self, other)


def min_other(self: Tensor, other: Tensor) -> Tensor:
    """The smaller elements."""
    return F.minimum(self, other)


# --- norms under their old name -----------------------------------------------------------------------------------


def norm_scalar(self: Tensor, p: float = 2) -> Tensor:
    """The p-norm of all elements."""
    return F.linalg_vector_norm(self, p, None, False)


def norm_dim(self: Tensor, p: float | None, dim: Dim, keepdim: bool = False) -> Tensor:
    """The p-norm over dimensions; `p` of None is 2."""
    return F.linalg_vector_norm(self, 2 if p is None else p, dim, keepdim)


def norm_dtype(self: Tensor, p: float | None, dtype: Any) -> Tensor:
    """The p-norm of all elements, computed in `dtype`."""
    return F.linalg_vector_norm(self, 2 if p is None else p, None, False, dtype=dtype)


def norm_dim_dtype(self: Tensor, p: float | None, dim: Dim, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The p-norm over dimensions, computed in `dtype`."""
    return F.linalg_vector_norm(self, 2 if p is None else p, dim, keepdim, dtype=dtype)


def dist(self: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of the difference."""
    return F.linalg_vector_norm(F.sub(self, other), p, None, False)


def frobenius_norm(self: Tensor, dim: list[int], keepdim: bool) -> Tensor:
    """The root of the sum of squares over one or two dimensions."""
    if len(dim) > 2:
        raise RuntimeError(f"Expected at most 2 dimensions, but got {len(dim)} dimensions instead.")
    return F.linalg_vector_norm(self, 2, dim, keepdim)


def norm_except_dim(v: Tensor, pow: int, dim: int) -> Tensor:
    """Norms over all dimensions but one, which stays where it is; over all for -1."""
    if dim == -1:
        return F.linalg_vector_norm(v, pow)
    v.size(dim)  # says so when there is none
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    return F.linalg_vector_norm(v, pow, others, True)


def is_all_true(self: Tensor) -> Tensor:
    """Whether every element of a bool tensor holds. RuntimeError for another dtype."""
    _check_bool(self)
    return F.all(self)


def is_any_true(self: Tensor) -> Tensor:
    """Whether some element of a bool tensor holds. RuntimeError for another dtype."""
    _check_bool(self)
    return F.any(self)


def _check_bool(self: Tensor) -> None:
    if self.dtype is not _dtype.bool:
        raise RuntimeError("Expected self.scalar_type() == at::kBool to be true, but got false.")
