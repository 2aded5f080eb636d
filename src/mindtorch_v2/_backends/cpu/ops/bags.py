"""Bags of embeddings: sums, means and maxima of rows of a table, bag by bag; and their gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import ndarray

from ...._dispatch import native
from .nn import add_rows

SUM, MEAN, MAX = range(3)


def _check_values(weight: ndarray, indices: ndarray, offsets: ndarray, plain: bool) -> None:
    """RuntimeError for an index that is no row, in the words of PyTorch's quick loops for `plain` bags and of the slow ones for
    others, and for offsets that do not begin or end within the indices."""
    if offsets.size:
        if offsets[0] != 0:
            raise RuntimeError(
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
                f"However, got {offsets[0]}"
            )
        if offsets[-1] > indices.shape[0]:
            raise RuntimeError(
                f"offsets[-1] can not be greater than input's length {indices.shape[0]} but got offsets[-1] of {offsets[-1]}"
            )
    outside = (indices < 0) | (indices >= weight.shape[0])
    if outside.any():
        place = int(outside.argmax())
        if not plain:
            raise RuntimeError(
                f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {indices.flat[place]}"
            )
        raise RuntimeError(
            f"Index {place} of input takes value {indices.flat[place]} which is not in the valid range [0, {weight.shape[0]})"
        )


def _bags_of(offsets: ndarray, count: int, bags: int) -> ndarray:
    """The bag of each index; -1 where there is none."""
    begun = np.zeros(count + 1, np.intp)
    np.add.at(begun, offsets, 1)
    return np.minimum(np.cumsum(begun[:count]) - 1, bags - 1)


@native.kernel
def sum_bags(weight: ndarray, indices: ndarray, bag_of: ndarray, bags: int, factors: ndarray | None) -> ndarray:
    """The sums of rows, each with a factor, by bag."""
    rows = weight[indices]
    if factors is not None:
        rows = rows * factors[:, None]
    total = np.zeros((bags, weight.shape[1]), weight.dtype)
    add_rows(total, bag_of, rows)
    return total


def _max_bags(weight: ndarray, indices: ndarray, bag_of: ndarray, bags: int) -> tuple[ndarray, ndarray]:
    """The maxima of rows by bag and whose rows they are; an element after the first counts where it is greater, which NaN is not."""
    sizes = np.bincount(bag_of, minlength=bags)
    starts = np.cumsum(sizes) - sizes
    best = np.zeros((bags, weight.shape[1]), weight.dtype)
    place = np.zeros(best.shape, np.int64)
    for step in range(int(sizes.max(initial=0))):
        which = np.flatnonzero(sizes > step)
        row = indices[starts[which] + step]
        values = weight[row]
        better = np.ones(values.shape, bool) if step == 0 else values > best[which]
        best[which] = np.where(better, values, best[which])
        place[which] = np.where(better, row[:, None], place[which])
    return best, place


def embedding_bag(
    weight: ndarray,
    indices: ndarray,
    offsets: ndarray,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: ndarray | None,
    include_last_offset: bool,
    padding_idx: int,
) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    """(bags, bags of the indices, sizes, rows of the maxima). Where the rule leaves the bags of the indices away, they are not made."""
    plain = padding_idx < 0 and weight.dtype != np.float64  # half types come as float32
    _check_values(weight, indices, offsets, plain and mode != MAX)
    bags = len(offsets) - include_last_offset
    bag_of = _bags_of(offsets[:bags], len(indices), bags)
    counted = indices != padding_idx if padding_idx >= 0 else None
    rows, owner = (indices, bag_of) if counted is None else (indices[counted], bag_of[counted])
    rows = rows.astype(np.intp, copy=False)
    kept = owner >= 0
    if not kept.all():  # no bags at all
        rows, owner = rows[kept], owner[kept]
    sizes = np.bincount(owner, minlength=bags)[:bags]
    kind = np.int64 if np.int64 in (indices.dtype, offsets.dtype) else np.int32
    if mode == MAX:
        out, places = _max_bags(weight, rows, owner, bags)
        return out, bag_of.astype(kind), sizes.astype(kind), places.astype(kind)
    factors = per_sample_weights
    if factors is not None and counted is not None:
        factors = factors[counted]
    out = sum_bags(weight, rows, owner, bags, factors if bags else None)
    if mode == MEAN:
        out = out / np.maximum(sizes, 1).astype(out.dtype)[:, None]
        return out, bag_of.astype(kind), sizes.astype(kind), sizes.astype(kind)
    none = np.zeros(bags, kind)
    return out, (bag_of[:0] if plain else bag_of).astype(kind), none, none.copy()


def embedding_bag_forward_only(
    weight: ndarray,
    indices: ndarray,
    offsets: ndarray,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: ndarray | None,
    include_last_offset: bool,
    padding_idx: int,
) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    """`embedding_bag`; the sizes, which sums do without, have one for each offset then, as PyTorch's have."""
    found = embedding_bag(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
    )
    if mode != SUM:
        return found
    none = np.zeros(len(offsets), found[2].dtype)
    return found[0], found[1], none, none.copy()


def embedding_bag_dense_backward(
    grad: ndarray,
    indices: ndarray,
    offset2bag: ndarray,
    bag_size: ndarray,
    maximum_indices: ndarray,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: ndarray | None,
    padding_idx: int,
) -> ndarray:
    result = np.zeros((num_weights, grad.shape[1]), grad.dtype)
    if mode == MAX:
        full = np.flatnonzero(bag_size)
        columns = np.broadcast_to(np.arange(grad.shape[1]), (len(full), grad.shape[1]))
        np.add.at(result, (maximum_indices[full], columns), grad[full])
        return result
    rows, owner, factors = (
        indices.astype(np.intp, copy=False),
        offset2bag.astype(np.intp, copy=False),
        per_sample_weights,
    )
    kept = owner >= 0
    if padding_idx >= 0:
        kept &= rows != padding_idx
    if not kept.all():
        rows, owner = rows[kept], owner[kept]
        factors = None if factors is None else factors[kept]
    shares = grad[owner]
    if mode == MEAN:
        shares = shares / np.maximum(bag_size, 1).astype(grad.dtype)[owner, None]
    if factors is not None:
        shares = shares * factors[:, None]
    if scale_grad_by_freq:
        shares = shares / np.bincount(indices, minlength=num_weights).astype(grad.dtype)[rows, None]
    add_rows(result, rows, np.ascontiguousarray(shares))
    return result


# Segments


class _Segments:
    """The elements of all segments one after the other, in data flattened to (rows before and along the axis, rest)."""

    def __init__(self, data: ndarray, lengths: ndarray | None, offsets: ndarray | None, axis: int):
        at = axis % max(data.ndim, 1)
        size, outer = data.shape[at], math.prod(data.shape[:at])
        self.shape = data.shape
        self.flat = (outer * size, math.prod(data.shape[at + 1 :]))
        if offsets is not None:
            starts, counts = offsets[..., :-1], np.diff(offsets)
        else:
            assert lengths is not None
            if (lengths < 0).any():
                raise RuntimeError("lengths contains negative value!")
            starts, counts = np.cumsum(lengths, -1) - lengths, lengths
        if counts.size and (counts.min() < 0 or starts.min() < 0 or (starts + counts).max() > size):
            raise RuntimeError(f"segment_reduce(): Expected segments within data.size(axis)={size}")
        self.result = (*data.shape[:at], counts.shape[-1], *data.shape[at + 1 :])
        first = starts.reshape(outer, -1) + (np.arange(outer) * size)[:, None]
        self.counts = counts.reshape(-1).astype(np.intp)
        self.full = self.counts > 0
        self.owner = np.repeat(np.arange(len(self.counts)), self.counts)
        self.starts = np.cumsum(self.counts) - self.counts
        steps = np.arange(len(self.owner)) - self.starts[self.owner]
        self.rows = first.reshape(-1).astype(np.intp)[self.owner] + steps

    def reduce(self, ufunc: np.ufunc, values: ndarray, empty: Any) -> ndarray:
        """A result for each segment, from the values of its elements; `empty` for those that have none."""
        out = np.full((len(self.counts), *values.shape[1:]), empty, values.dtype)
        if len(values):
            out[self.full] = ufunc.reduceat(values, self.starts[self.full], 0)
        return out


_REDUCE: dict[str, tuple[np.ufunc, float]] = {
    "sum": (np.add, 0),
    "mean": (np.add, 0),
    "max": (np.maximum, -math.inf),
    "amax": (np.maximum, -math.inf),
    "min": (np.minimum, math.inf),
    "amin": (np.minimum, math.inf),
    "prod": (np.multiply, 1),
}


def segment_reduce(
    data: ndarray,
    reduce: str,
    lengths: ndarray | None,
    indices: None,
    offsets: ndarray | None,
    axis: int,
    unsafe: bool,
    initial: Any,
) -> ndarray:
    """A reduction of each segment; `initial` takes part in each, and stands for those without elements."""
    if offsets is None and not unsafe and lengths is not None:
        if (lengths.sum(-1) != data.shape[axis]).any() and not (lengths < 0).any():
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe."
            )
    segments = _Segments(data, lengths, offsets, axis)
    ufunc, empty = _REDUCE[reduce]
    out = segments.reduce(ufunc, data.reshape(segments.flat)[segments.rows], empty)
    if initial is not None:
        out = ufunc(out, data.dtype.type(initial))
    if reduce == "mean":
        counts = segments.counts[:, None].astype(out.dtype)
        nothing = out if initial is not None else out.dtype.type(np.nan)
        out = np.where(counts == 0, nothing, out / np.where(counts == 0, 1, counts))
    return out.reshape(segments.result)


def segment_reduce_backward(
    grad: ndarray,
    output: ndarray,
    data: ndarray,
    reduce: str,
    lengths: ndarray | None,
    offsets: ndarray | None,
    axis: int,
    initial: Any,
) -> ndarray:
    """Extrema share the gradient evenly among the elements that are equal to them."""
    segments = _Segments(data, lengths, offsets, axis)
    owner, rows = segments.owner, segments.rows
    width = segments.flat[1]
    upper = grad.reshape(-1, width)[owner]
    values = data.reshape(segments.flat)[rows]
    found = output.reshape(-1, width)[owner]
    if reduce == "mean":
        upper = upper / segments.counts[owner, None].astype(grad.dtype)
    elif reduce in ("max", "amax", "min", "amin"):
        equal = (values == found) | (np.isnan(values) & np.isnan(found))
        shares = segments.reduce(np.add, equal.astype(grad.dtype), 0)
        upper = np.where(equal, upper / np.maximum(shares, 1)[owner], 0)
    elif reduce == "prod":
        upper = upper * _others(segments, values, found, initial)
    result = np.zeros(segments.flat, grad.dtype)
    result[rows] = upper
    return result.reshape(segments.shape)


def _others(segments: _Segments, values: ndarray, found: ndarray, initial: Any) -> ndarray:
    """The product of the other elements of each one's segment. Beside zeros and NaN, by which nothing can be divided, it is multiplied anew."""
    plain = (values != 0) & ~np.isnan(values)
    quotient = np.where(plain, found / np.where(plain, values, 1), 0)
    for place, column in np.argwhere(~plain):
        segment = segments.owner[place]
        first = segments.starts[segment]
        mates = values[first : first + segments.counts[segment], column].copy()
        mates[place - first] = 1 if initial is None else initial
        quotient[place, column] = mates.prod()
    return quotient
