"""Sorting, selection by rank, unique values and searches on the CPU.

NaN counts as larger than every number. Sorts are stable; which of several equal elements is chosen by rank, `selection` says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...._dispatch.native import extension, kernel
from . import selection
from .conversion import widened
from .view import PREFIX, taken

Array = np.ndarray
_BACK = slice(None, None, -1)


def _comparable(x: Array) -> Array:
    """`x` in a dtype that numpy sorts with NaN at the end."""
    return widened(x) if x.dtype.kind == "V" or x.dtype.char == "e" else x


def _widened(x: Array) -> Array:
    """`x` in one of the dtypes that are ordered in C: itself where it has one."""
    if x.dtype.kind in "iub" and x.dtype.itemsize < 4:
        return x.astype(np.int32)
    return x.astype(np.int64) if x.dtype == np.uint32 else _comparable(x)


def _order(x: Array, axis: int, descending: bool) -> Array:
    """The indices of a stable sort."""
    if not descending:
        return x.argsort(axis, "stable")
    # Reversed twice: equal elements keep their order, NaN comes first.
    back = (*PREFIX[axis % x.ndim], _BACK)
    order = x[back].argsort(axis, "stable")[back]
    return np.subtract(x.shape[axis] - 1, order)


@kernel
def sort(self: Array, dim: int = -1, descending: bool = False) -> tuple[Array, Array]:
    """(values, indices) in order."""
    if self.ndim == 0:
        return self.copy(), np.zeros((), np.int64)
    order = _order(_comparable(self), dim, descending)
    return taken(self, order, dim), order


@kernel
def sort_stable(self: Array, stable: bool | None, dim: int = -1, descending: bool = False) -> tuple[Array, Array]:
    """`sort`, which is always stable."""
    return sort(self, dim, descending)


@kernel
def argsort(self: Array, dim: int = -1, descending: bool = False) -> Array:
    """The indices of `sort`."""
    return sort(self, dim, descending)[1]


@kernel
def argsort_stable(self: Array, stable: bool, dim: int = -1, descending: bool = False) -> Array:
    """The indices of `sort`, which is always stable."""
    return sort(self, dim, descending)[1]


@kernel
def topk(self: Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Array, Array]:
    """The k largest (or smallest) elements, in order if `sorted`, and their indices; of equal elements those that PyTorch takes."""
    if self.ndim == 0:
        return self.copy(), np.zeros((), np.int64)
    x = np.ascontiguousarray(np.moveaxis(_widened(self), dim, -1))
    if k == 0:
        chosen = np.zeros((*x.shape[:-1], 0), np.int64)
    elif (
        extension is not None
        and x.size
        and not (x.dtype == self.dtype and self.flags.c_contiguous and dim in (-1, self.ndim - 1))
    ):
        chosen = topk(x, k, -1, largest, sorted)[1]
    else:
        chosen = _first(x, k, largest, sorted)
    chosen = np.moveaxis(chosen, -1, dim)
    return taken(self, chosen, dim), chosen


def _first(x: Array, k: int, largest: bool, in_order: bool) -> Array:
    """The places of the k first of each row, where nothing does it in C: by a stable sort, unless there are several that might be meant."""
    n = x.shape[-1]
    order = _order(x, -1, largest)
    ordered = np.take_along_axis(x, order[..., : k + 1], -1)
    if (
        in_order
        and (ordered[..., 1:] > ordered[..., :-1] if not largest else ordered[..., 1:] < ordered[..., :-1]).all()
    ):
        return order[..., :k]
    if n == 1 or not x.size:
        return order[..., :k]
    return selection.places(x, selection.topk(k, largest, in_order))[..., :k]


@kernel
def kthvalue(self: Array, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Array, Array]:
    """The k-th smallest element and its index."""
    if self.ndim == 0:
        return self.copy(), np.zeros((), np.int64)
    x = _widened(self)
    if extension is not None and x.dtype != self.dtype and x.size:
        return _picked(self, kthvalue(x, k, dim, True)[1], dim, keepdim)
    index = selection.places(np.moveaxis(x, dim, -1), selection.kth(k - 1))[..., k - 1 : k]
    return _picked(self, np.moveaxis(index, -1, dim), dim, keepdim)


def _picked(self: Array, index: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    values = np.take_along_axis(self, index, dim)
    return (values, index) if keepdim else (values.squeeze(dim), index.squeeze(dim))


def _median_index(x: Array, axis: int, skip_nan: bool) -> Array:
    """The index of the lower median, in an axis of length 1."""
    order = np.argsort(x, axis=axis, kind="stable")
    n = x.shape[axis]
    shape = [1 if a == axis % x.ndim else s for a, s in enumerate(x.shape)]
    if x.dtype.kind != "f":
        return np.take(order, [(n - 1) // 2], axis=axis)
    nans = np.add.reduce(np.isnan(x), axis, np.int64, None, True)
    if skip_nan:
        rank = np.maximum(n - nans - 1, 0) // 2
    else:
        # Sorted NaNs stand at the end, the first of them at n - nans.
        rank = np.where(nans > 0, n - nans, (n - 1) // 2)
    return np.take_along_axis(order, rank.reshape(shape), axis)


def _median_all(self: Array, skip_nan: bool) -> Array:
    flat = self.reshape(-1)
    if not flat.size:
        return np.asarray(np.nan)
    return flat[_median_index(_comparable(flat), 0, skip_nan)[0]]


def _median_dim(self: Array, dim: int, keepdim: bool, skip_nan: bool) -> tuple[Array, Array]:
    if self.ndim == 0:
        return self.copy(), np.zeros((), np.int64)
    return _picked(self, _median_index(_comparable(self), dim, skip_nan), dim, keepdim)


@kernel
def median(self: Array) -> Array:
    """The lower median of all elements; NaN if there is one."""
    return _median_all(self, False)


@kernel
def nanmedian(self: Array) -> Array:
    """The lower median of what is not NaN."""
    return _median_all(self, True)


@kernel
def median_dim(self: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """The lower median over one dimension, and its index."""
    return _median_dim(self, dim, keepdim, False)


@kernel
def nanmedian_dim(self: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """The lower median of what is not NaN over one dimension, and its index."""
    return _median_dim(self, dim, keepdim, True)


@kernel
def mode(self: Array, dim: int = -1, keepdim: bool = False) -> tuple[Array, Array]:
    """The smallest of the most frequent elements, and the index at which PyTorch finds it."""
    if self.ndim == 0:
        return self.copy(), np.zeros((), np.int64)
    x = _widened(self)
    if extension is not None and x.dtype != self.dtype and x.size:
        return _picked(self, mode(x, dim, True)[1], dim, keepdim)
    x = np.moveaxis(x, dim, -1)
    order = selection.places(x, selection.sort)
    ordered = np.take_along_axis(x, order, -1)
    position = np.arange(x.shape[-1])
    starts = np.ones(x.shape, bool)
    starts[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    run = position - np.maximum.accumulate(np.where(starts, position, 0), -1)
    # The first position with the longest run ends the run of the smallest most frequent element.
    last = np.argmax(run, -1, keepdims=True)
    index = np.moveaxis(np.take_along_axis(order, last, -1), -1, dim)
    return _picked(self, index, dim, keepdim)


# --- unique values ------------------------------------------------------------------------------------------------


@kernel
def unique2(
    self: Array,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Array, Array, Array]:
    """(values in order, inverse or empty, counts or empty)."""
    values, inverse, counts = np.unique(_comparable(self), return_inverse=True, return_counts=True, equal_nan=False)
    return (
        values.astype(self.dtype, copy=False),
        inverse.reshape(self.shape) if return_inverse else np.empty(0, np.int64),
        counts if return_counts else np.empty(0, np.int64),
    )


def unique_dim(
    self: Array,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Array, Array, Array]:
    """Unique slices along a dimension: (slices in order, inverse, counts)."""
    values, inverse, counts = np.unique(
        _comparable(self), return_inverse=True, return_counts=True, axis=dim, equal_nan=False
    )
    return _slices_first(values.astype(self.dtype, copy=False), dim), inverse.reshape(-1), counts


def _slices_first(x: Array, dim: int) -> Array:
    """x in memory slice by slice along `dim`."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, dim, 0)), 0, dim)


@kernel
def unique_consecutive(
    self: Array,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> tuple[Array, Array, Array]:
    """The first of each run of equal elements (or slices): (values, inverse or empty, counts or empty)."""
    x = self.reshape(-1) if dim is None else np.moveaxis(self, dim, 0)
    n = x.shape[0]
    starts = np.ones(n, bool)
    if n > 1:
        starts[1:] = (x[1:] != x[:-1]).reshape(n - 1, -1).any(1)
    first = np.flatnonzero(starts)
    inverse = np.cumsum(starts) - 1
    counts = np.diff(np.append(first, n))
    values = x[first] if dim is None else np.moveaxis(np.ascontiguousarray(x[first]), 0, dim)
    return (
        values,
        (inverse.reshape(self.shape) if dim is None else inverse) if return_inverse else np.empty(0, np.int64),
        counts if return_counts else np.empty(0, np.int64),
    )


# --- searches and histograms --------------------------------------------------------------------------------------


def searchsorted(
    sorted_sequence: Array,
    self: Array,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Array | None = None,
) -> Array:
    """Where each value would stand in a sorted sequence; sequences of several dimensions row by row."""
    where: Any = "right" if right or side == "right" else "left"
    if sorter is not None:
        if sorter.size and not 0 <= sorter.min() <= sorter.max() < sorted_sequence.shape[-1]:
            raise RuntimeError("torch.searchsorted(): sorter index out of range")
        sorted_sequence = np.take_along_axis(sorted_sequence, sorter, -1)
    if sorted_sequence.ndim == 1:
        return np.asarray(np.searchsorted(sorted_sequence, self, where))
    if not self.size:
        return np.zeros(self.shape, np.int64)
    rows = sorted_sequence.reshape(math.prod(sorted_sequence.shape[:-1]), sorted_sequence.shape[-1])
    values = self.reshape(len(rows), -1)
    found = [np.searchsorted(row, value, where) for row, value in zip(rows, values)]
    return np.asarray(found, np.int64).reshape(self.shape)


def bucketize(self: Array, boundaries: Array, out_int32: bool = False, right: bool = False) -> Array:
    """The bucket of each value among sorted boundaries."""
    return np.asarray(np.searchsorted(boundaries, self, "right" if right else "left"))


def isin(
    elements: Array,
    test_elements: Array,
    assume_unique: bool = False,
    invert: bool = False,
) -> Array:
    """Whether each element is among the test elements."""
    tests = np.asarray(test_elements).reshape(-1)
    if tests.size <= 8:
        found = np.zeros(np.shape(elements), bool)
        for value in tests:
            found |= elements == value
    else:
        found = np.isin(elements, tests)
    return np.logical_not(found) if invert else found


def bincount(self: Array, weights: Array | None = None, minlength: int = 0) -> Array:
    """How often each number occurs, or the sum of its weights."""
    if self.size and self.min() < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights.dtype == np.float32:
        # The sum stays in float32, one weight after the other, which numpy's bincount would widen.
        size = max(minlength, int(self.max()) + 1 if self.size else 0)
        counts = np.bincount(self, weights, size)
        return counts.astype(np.float32)
    if weights is not None:  # imaginary parts are left out
        weights = weights.real.astype(np.float64)
    return np.bincount(self.astype(np.int64), weights, minlength)


def histc(self: Array, bins: int = 100, min: float = 0, max: float = 0) -> Array:
    """Counts in equal bins from min to max (of the data when both are equal); outside elements are not counted."""
    low, high = float(min), float(max)
    if low == high and self.size:
        low, high = float(self.min()), float(self.max())
    if low == high:
        low, high = low - 1, high + 1
    if not np.isfinite(low) or not np.isfinite(high):
        raise RuntimeError(f"range of [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")
    x = self.reshape(-1)
    x = x[(x >= low) & (x <= high)]
    first, last = self.dtype.type(low), self.dtype.type(high)
    # In the dtype of the data and in this order, as PyTorch: what lies on an edge falls into the same bin.
    bucket = np.minimum(((x - first) * self.dtype.type(bins) / (last - first)).astype(np.int64), bins - 1)
    return np.bincount(bucket, minlength=bins).astype(self.dtype)


def histogram(
    self: Array,
    bins: int = 100,
    range: Sequence[float] | None = None,
    weight: Array | None = None,
    density: bool = False,
) -> tuple[Array, Array]:
    """(weights by bin, edges) for equal bins over `range`, or over the data."""
    if range is not None:
        low, high = range
    elif self.size:
        low, high = float(self.min()), float(self.max())
    else:
        low, high = 0.0, 1.0
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"torch.histogramdd: dimension 0's range [{low:g}, {high:g}] is not finite")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return histogram_edges(self, np.linspace(low, high, bins + 1).astype(self.dtype), weight, density)


def histogram_edges(
    self: Array, bins: Array, weight: Array | None = None, density: bool = False
) -> tuple[Array, Array]:
    """(weights by bin, edges); the last bin includes its right edge, and what lies outside does not count."""
    x = self.reshape(-1)
    inside = (x >= bins[0]) & (x <= bins[-1])
    place = np.minimum(np.searchsorted(bins, x[inside], "right"), len(bins) - 1) - 1
    weights = None if weight is None else weight.reshape(-1)[inside]
    hist = np.bincount(place, weights, len(bins) - 1).astype(self.dtype)
    if density:
        hist = hist / (hist.sum() * np.diff(bins))
    return hist, bins.copy()
