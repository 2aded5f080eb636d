"""Reductions on the CPU.

Arrays arrive in the dtype of the computation; `dim` as the caller gave it: None or an empty list for all dimensions, a
number, or a list. Float sums are pairwise along every axis, so that long reductions keep their digits.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...._dispatch import native
from .conversion import widened
from .view import taken

Array = np.ndarray
Dim = int | Sequence[int] | None
Number = int | float

_PAIR = 128  # rows that are added plainly, as numpy does along the innermost axis


def axes(dim: Dim, ndim: int) -> tuple[int, ...]:
    """The reduced axes, not negative, sorted."""
    if dim is None or ndim == 0:
        return tuple(range(ndim))
    if isinstance(dim, int):
        return (dim % ndim,)
    if len(dim) == 1:
        return (dim[0] % ndim,)
    return tuple(sorted([d % ndim for d in dim])) or tuple(range(ndim))


def _count(self: Array, axis: tuple[int, ...]) -> int:
    return self.shape[axis[0]] if len(axis) == 1 else math.prod([self.shape[a] for a in axis])


def _add(self: Array, axis: tuple[int, ...], keepdim: bool = False) -> Array:
    """The sum over axes. numpy adds pairwise only along the innermost axis; here long outer axes are halved too."""
    if self.dtype.kind in "fc" and axis and axis[-1] != self.ndim - 1 and _count(self, axis) > 2 * _PAIR:
        # Leading axes of a contiguous array are one axis of rows.
        if axis == tuple(range(len(axis))) and self.flags.c_contiguous:
            rest = self.shape[len(axis) :]
            total = _add_rows(self.reshape(-1, *rest))
        else:
            moved = np.moveaxis(self, axis, range(len(axis)))
            total = _add_rows(moved.reshape(-1, *moved.shape[len(axis) :]))
        if keepdim:
            total = total.reshape([1 if a in axis else n for a, n in enumerate(self.shape)])
        return total
    return np.add.reduce(self, axis, _whole(self), None, keepdim)


def _add_rows(rows: Array) -> Array:
    while (n := rows.shape[0]) > 2 * _PAIR:
        blocks = n // _PAIR
        body = np.add.reduce(rows[: blocks * _PAIR].reshape(blocks, _PAIR, *rows.shape[1:]), 1)
        rest = rows[blocks * _PAIR :]
        if len(rest):
            body[-1] += np.add.reduce(rest, 0)
        rows = body
    return np.add.reduce(rows, 0)


def _whole(self: Array) -> Any:
    """The dtype in which short integers are added or multiplied."""
    return np.int64 if self.dtype.kind in "biu" and self.dtype.itemsize < 8 else None


# --- sums and products --------------------------------------------------------------------------------------------


@native.kernel
def sum(self: Array, dtype: Any = None) -> Array:
    """The sum of all elements."""
    return np.add.reduce(
        self if self.flags.forc or self.dtype.kind not in "fc" else np.ascontiguousarray(self),
        None,
        _whole(self),
    )


@native.kernel
def sum_dim(self: Array, dim: Dim, keepdim: bool = False, dtype: Any = None) -> Array:
    """The sum over dimensions."""
    return _add(self, axes(dim, self.ndim), keepdim)


@native.kernel
def sum_fast(self: Array, dtype: Any = None) -> Array | None:
    """`sum()` of contiguous float32 and float64; declines the rest."""
    if dtype is None and self.dtype.char in "fd" and self.flags.c_contiguous:
        total = np.add.reduce(self, None)
        return np.asarray(total)
    return None


@native.kernel
def sum_dim_fast(self: Array, dim: Dim, keepdim: bool = False, dtype: Any = None) -> Array | None:
    """`sum(dim)` over one axis of a contiguous array; declines what needs pairs or checks."""
    if (
        dtype is None
        and dim.__class__ is int
        and self.dtype.char in "fd"
        and self.flags.c_contiguous
        and -self.ndim <= dim < self.ndim
        and self.shape[dim] <= 2 * _PAIR
        and keepdim.__class__ is bool
    ):
        return np.asarray(np.add.reduce(self, dim, None, None, keepdim))
    return None


@native.kernel
def nansum(self: Array, dim: Dim, keepdim: bool = False, dtype: Any = None) -> Array:
    """The sum of what is not NaN."""
    if self.dtype.kind in "fc":
        self = np.where(np.isnan(self), self.dtype.type(0), self)
    return sum_dim(self, dim, keepdim)


@native.kernel
def prod(self: Array, dtype: Any = None) -> Array:
    """The product of all elements."""
    return np.multiply.reduce(self, None, _whole(self))


@native.kernel
def prod_dim(self: Array, dim: int, keepdim: bool = False, dtype: Any = None) -> Array:
    """The product over one dimension."""
    return np.multiply.reduce(self, axes(dim, self.ndim), _whole(self), None, keepdim)


@native.kernel
def mean(self: Array, dtype: Any = None) -> Array:
    """The mean of all elements; NaN of nothing."""
    return np.divide(sum(self), self.dtype.type(self.size))


@native.kernel
def mean_dim(self: Array, dim: Dim, keepdim: bool = False, dtype: Any = None) -> Array:
    """The mean over dimensions."""
    axis = axes(dim, self.ndim)
    total = _add(self, axis, keepdim)
    return np.divide(total, self.dtype.type(_count(self, axis)))


@native.kernel
def mean_fast(self: Array, dtype: Any = None) -> Array | None:
    """`mean()` of contiguous float32 and float64; declines the rest."""
    if dtype is None and self.dtype.char in "fd" and self.flags.c_contiguous and self.size:
        return np.asarray(np.add.reduce(self, None) / self.dtype.type(self.size))
    return None


@native.kernel
def mean_dim_fast(self: Array, dim: Dim, keepdim: bool = False, dtype: Any = None) -> Array | None:
    """`mean(dim)` over one axis (a number, or a list of one) of a contiguous array; declines the rest."""
    if dim.__class__ is list or dim.__class__ is tuple:
        if len(dim) != 1:
            return None
        dim = dim[0]
    total = sum_dim_fast(self, dim, keepdim, dtype)
    if total is None or not self.size:
        return None
    return np.asarray(total / self.dtype.type(self.shape[dim]))


# --- variance -----------------------------------------------------------------------------------------------------


def _correction(correction: Any) -> Number:
    return 1 if correction is None else correction


def _moments(self: Array, dim: Dim, correction: Any, keepdim: bool) -> tuple[Array, Array]:
    """(variance, mean) in two passes, in double precision."""
    axis = axes(dim, self.ndim)
    n = _count(self, axis)
    work = self.astype(np.complex128 if self.dtype.kind == "c" else np.float64)
    center = np.add.reduce(work, axis, None, None, True)
    center = np.divide(center, n)
    work -= center
    square = (work * work.conj()).real if work.dtype.kind == "c" else np.multiply(work, work, work)
    variance = np.add.reduce(square, axis, None, None, keepdim)
    variance = np.divide(variance, builtins.max(float(n - _correction(correction)), 0.0))
    return variance, center if keepdim else center.reshape(variance.shape)


def _as(self: Array, *found: Array) -> Any:
    """`found` in the precision of self; complex numbers as complex ones."""
    real = self.dtype if self.dtype.kind == "f" else self.real.dtype
    made = [np.asarray(x, self.dtype if x.dtype.kind == "c" else real) for x in found]
    return tuple(made) if len(made) > 1 else made[0]


@native.kernel
def var(self: Array, dim: Dim, correction: Any = None, keepdim: bool = False) -> Array:
    """The variance over dimensions, the sum of squares divided by n - correction."""
    return _as(self, _moments(self, dim, correction, keepdim)[0])


@native.kernel
def std(self: Array, dim: Dim, correction: Any = None, keepdim: bool = False) -> Array:
    """The square root of the variance."""
    return _as(self, np.sqrt(_moments(self, dim, correction, keepdim)[0]))


@native.kernel
def var_mean(self: Array, dim: Dim, correction: Any = None, keepdim: bool = False) -> tuple[Array, Array]:
    """Variance and mean."""
    return _as(self, *_moments(self, dim, correction, keepdim))


@native.kernel
def std_mean(self: Array, dim: Dim, correction: Any = None, keepdim: bool = False) -> tuple[Array, Array]:
    """Square root of the variance, and mean."""
    variance, center = _moments(self, dim, correction, keepdim)
    return _as(self, np.sqrt(variance), center)


# --- extremes -----------------------------------------------------------------------------------------------------


@native.kernel
def max(self: Array) -> Array:
    """The largest element; NaN if there is one."""
    return np.maximum.reduce(self, None)


@native.kernel
def min(self: Array) -> Array:
    """The smallest element."""
    return np.minimum.reduce(self, None)


@native.kernel
def max_fast(self: Array) -> Array | None:
    """`max()` of a contiguous array of float32, float64 or int64; declines the rest."""
    if self.dtype.char in "fdl" and self.size and self.flags.c_contiguous:
        return np.asarray(np.maximum.reduce(self, None))
    return None


@native.kernel
def min_fast(self: Array) -> Array | None:
    """`min()` of a contiguous array of float32, float64 or int64; declines the rest."""
    if self.dtype.char in "fdl" and self.size and self.flags.c_contiguous:
        return np.asarray(np.minimum.reduce(self, None))
    return None


@native.kernel
def amax(self: Array, dim: Dim, keepdim: bool = False) -> Array:
    """The largest elements over dimensions."""
    return np.maximum.reduce(self, axes(dim, self.ndim), None, None, keepdim)


@native.kernel
def amin(self: Array, dim: Dim, keepdim: bool = False) -> Array:
    """The smallest elements over dimensions."""
    return np.minimum.reduce(self, axes(dim, self.ndim), None, None, keepdim)


@native.kernel
def aminmax(self: Array, dim: int | None, keepdim: bool = False) -> tuple[Array, Array]:
    """Smallest and largest elements, over one dimension or all."""
    axis = axes(dim, self.ndim)
    return np.minimum.reduce(self, axis, None, None, keepdim), np.maximum.reduce(self, axis, None, None, keepdim)


def _with_index(find: Any, self: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    if self.ndim == 0:
        return self.copy(), np.zeros((), np.int64)
    work = widened(self) if self.dtype.kind == "V" else self  # ml_dtypes have no arg functions
    index = find(work, dim, None, keepdims=True)
    values = taken(self, index, dim)
    if not keepdim:
        values, index = values.squeeze(dim), index.squeeze(dim)
    return values, index


@native.kernel
def max_dim(self: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """The largest elements over one dimension and where each stands first; NaN counts as largest."""
    return _with_index(Array.argmax, self, dim, keepdim)


@native.kernel
def min_dim(self: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """The smallest elements over one dimension and where each stands first; NaN counts as smallest."""
    return _with_index(Array.argmin, self, dim, keepdim)


def _arg(find: Any, self: Array, dim: int | None, keepdim: bool) -> Array:
    if self.dtype.kind == "V":
        self = widened(self)
    if dim is None:
        index = np.asarray(find(self))
        return index.reshape((1,) * self.ndim) if keepdim else index
    if self.ndim == 0:
        return np.zeros((), np.int64)
    return find(self, dim, None, keepdims=keepdim)


@native.kernel
def argmax(self: Array, dim: int | None, keepdim: bool = False) -> Array:
    """Where the largest element stands first."""
    return _arg(Array.argmax, self, dim, keepdim)


@native.kernel
def argmin(self: Array, dim: int | None, keepdim: bool = False) -> Array:
    """Where the smallest element stands first."""
    return _arg(Array.argmin, self, dim, keepdim)


# --- truth and counts ---------------------------------------------------------------------------------------------


@native.kernel
def all(self: Array) -> Array:
    """Whether every element is true."""
    return np.logical_and.reduce(self, None)


@native.kernel
def any(self: Array) -> Array:
    """Whether some element is true."""
    return np.logical_or.reduce(self, None)


@native.kernel
def all_dim(self: Array, dim: Dim, keepdim: bool = False) -> Array:
    """Whether every element is true, over dimensions. An empty list of dimensions reduces nothing."""
    if dim is not None and not isinstance(dim, int) and not len(dim):
        return self.astype(bool)
    return np.logical_and.reduce(self, axes(dim, self.ndim), None, None, keepdim)


@native.kernel
def any_dim(self: Array, dim: Dim, keepdim: bool = False) -> Array:
    """Whether some element is true, over dimensions. An empty list of dimensions reduces nothing."""
    if dim is not None and not isinstance(dim, int) and not len(dim):
        return self.astype(bool)
    return np.logical_or.reduce(self, axes(dim, self.ndim), None, None, keepdim)


@native.kernel
def truth_fast(self: Array) -> Array | None:
    """`all()` of a bool array; declines the rest."""
    return np.asarray(np.logical_and.reduce(self, None)) if self.dtype.char == "?" else None


@native.kernel
def some_fast(self: Array) -> Array | None:
    """`any()` of a bool array; declines the rest."""
    return np.asarray(np.logical_or.reduce(self, None)) if self.dtype.char == "?" else None


@native.kernel
def count_nonzero(self: Array, dim: Dim) -> Array:
    """How many elements are not zero."""
    return np.add.reduce(self != 0, axes(dim, self.ndim), np.int64)


# --- norms and logarithms of sums ---------------------------------------------------------------------------------


@native.kernel
def logsumexp(self: Array, dim: Dim, keepdim: bool = False) -> Array:
    """log(sum(exp(self))), shifted by the largest element."""
    axis = axes(dim, self.ndim)
    if self.dtype.kind == "c":
        return np.log(np.add.reduce(np.exp(self), axis, None, None, keepdim))
    if _count(self, axis) == 0:
        return np.log(np.add.reduce(self, axis, None, None, keepdim))
    largest = np.maximum.reduce(self, axis, None, None, True)
    shift = np.where(np.isinf(largest), self.dtype.type(0), largest)
    total = np.log(_add(np.exp(self - shift), axis, True)) + shift
    return total if keepdim else total.reshape([n for a, n in enumerate(self.shape) if a not in axis])


@native.kernel
def vector_norm(
    self: Array,
    ord: Number = 2,
    dim: Dim = None,
    keepdim: bool = False,
    dtype: Any = None,
) -> Array:
    """The ord-norm of the elements over dimensions."""
    axis = axes(dim, self.ndim)
    if ord == 2 and self.dtype.kind == "f":
        # float32 squares overflow early; double keeps range and digits, as a reduction over many needs.
        wide = self.astype(np.float64) if self.dtype == np.float32 else self
        if len(axis) == self.ndim and not keepdim and wide.flags.c_contiguous:
            flat = wide.reshape(-1)
            return _as(self, np.sqrt(np.dot(flat, flat)))
        return _as(self, np.sqrt(_add(np.multiply(wide, wide), axis, keepdim)))
    magnitude = np.abs(self)
    if ord == math.inf:
        return np.maximum.reduce(magnitude, axis, None, None, keepdim)
    if ord == -math.inf:
        return np.minimum.reduce(magnitude, axis, None, None, keepdim)
    if ord == 0:
        return np.add.reduce(magnitude != 0, axis, magnitude.dtype, None, keepdim)
    if ord == 1:
        return _add(magnitude, axis, keepdim)
    if ord == 2:
        return np.sqrt(_add(magnitude * magnitude, axis, keepdim))
    kind = magnitude.dtype.type
    return np.power(_add(np.power(magnitude, kind(ord)), axis, keepdim), kind(1.0 / ord))


def hash_tensor(self: Array, dim: Any, keepdim: bool, mode: int) -> Array:
    """The exclusive or of the bits of the elements, as int64 or as float64."""
    wide = self.astype(np.int64 if self.dtype.kind in "biu" else np.float64, copy=False)
    dims = [dim] if isinstance(dim, int) else dim
    axes = tuple(dims) if dims and self.ndim else tuple(range(self.ndim))
    bits = np.ascontiguousarray(wide).reshape(wide.shape).view(np.uint64)
    return np.bitwise_xor.reduce(bits, axis=axes, keepdims=keepdim)
