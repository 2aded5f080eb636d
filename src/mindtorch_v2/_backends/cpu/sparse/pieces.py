"""What kernels of sparse tensors are made of: members as arrays, tensors of members, places in memory of coordinates.

Note [Coordinates]
Coordinates are one number each in most kernels (`flat`): the place that the element would have in a contiguous array of the sparse dimensions. Coordinates
outside of the shape, which nobody need have checked when the tensor was made, are refused where they would become places in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from ...._dispatch import ops
from ...._dtype import int64
from ...._pending import settled
from ...._sparse_payload import CompressedPayload, CooPayload, CscPayload, CsrPayload, SparsePayload
from ...._tensor import Tensor, alias_as, wrap


def coo(shape: Sequence[int], indices: Tensor, values: Tensor, coalesced: bool) -> Tensor:
    """A tensor of coordinates and values."""
    return wrap(CooPayload(tuple(shape), indices, values, coalesced), values._dtype)


def csr(shape: Sequence[int], crow: Tensor, col: Tensor, values: Tensor) -> Tensor:
    """A tensor of rows."""
    return wrap(CsrPayload(tuple(shape), crow, col, values), values._dtype)


def csc(shape: Sequence[int], ccol: Tensor, row: Tensor, values: Tensor) -> Tensor:
    """A tensor of columns."""
    return wrap(CscPayload(tuple(shape), ccol, row, values), values._dtype)


def with_values(self: Tensor, values: Tensor) -> Tensor:
    """Other values at the same places."""
    return wrap(self._payload.like(values), values._dtype)


def integers(array: ndarray) -> Tensor:
    """A tensor of int64."""
    return wrap(np.ascontiguousarray(array, np.int64), int64)


def values_at(tensor: Tensor, places: Tensor) -> np.ndarray:
    """The values of a coalesced tensor where another one has specified elements; zeros where it has none."""
    have, want = flat(tensor), flat(places)
    at = np.searchsorted(have, want)
    at[at == len(have)] = 0
    values = values_of(tensor)
    found = have[at] == want if len(have) else np.zeros(len(want), bool)
    made = np.zeros((len(want), *values.shape[1:]), values.dtype)
    made[found] = values[at[found]]
    return made


def of_array(array: ndarray, like: Tensor) -> Tensor:
    """A tensor of an array's elements in the dtype of another one."""
    kind = like._dtype.np
    made = np.ascontiguousarray(array if array.dtype == kind else array.astype(kind)).reshape(array.shape)
    return wrap(made, like._dtype)


def alias(tensor: Tensor) -> Tensor:
    """Another tensor with the same memory, without history, whose changes in place are counted with the given one's."""
    made = alias_as(Tensor, tensor)
    made._shares = tensor
    return made


def is_coo(value: Any) -> bool:
    """Whether a value is a tensor of the layout sparse_coo."""
    return isinstance(value, Tensor) and value._payload.__class__ is CooPayload


def is_csr(value: Any) -> bool:
    """Whether a value is a tensor of the layout sparse_csr."""
    return isinstance(value, Tensor) and value._payload.__class__ is CsrPayload


def is_csc(value: Any) -> bool:
    """Whether a value is a tensor of the layout sparse_csc."""
    return isinstance(value, Tensor) and value._payload.__class__ is CscPayload


def is_compressed(value: Any) -> bool:
    """Whether a value is a tensor of rows or of columns."""
    return isinstance(value, Tensor) and isinstance(value._payload, CompressedPayload)


def is_sparse(value: Any) -> bool:
    """Whether a value is a sparse tensor."""
    return isinstance(value, Tensor) and isinstance(value._payload, SparsePayload)


def layout_name(tensor: Tensor) -> str:
    """The layout as PyTorch's messages write it."""
    data = tensor._payload
    return data.name if isinstance(data, SparsePayload) else "Strided"


def array_of(tensor: Tensor) -> ndarray:
    """A member as an array. NotImplementedError for one that is not on the CPU."""
    data = settled(tensor)
    if data.__class__ is not ndarray:
        raise NotImplementedError(
            f"what a sparse tensor holds on {tensor.device} cannot be looked at: only the CPU has kernels for it"
        )
    return data


def indices_of(self: Tensor) -> ndarray:
    """The coordinates: sparse dimensions by specified elements."""
    return array_of(self._payload.indices)


def values_of(self: Tensor) -> ndarray:
    """The values."""
    return array_of(self._payload.values)


def refuse_bounds(indices: ndarray, shape: Sequence[int]) -> None:
    """RuntimeError for a coordinate outside of the shape."""
    if not indices.shape[1]:
        return
    low, high = indices.min(1), indices.max(1)
    for dim, n in enumerate(shape[: len(indices)]):
        if low[dim] < 0:
            raise RuntimeError(f"found negative index {low[dim]} for dim {dim}")
        if high[dim] >= n:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {dim}, size is {n} but found index {high[dim]}"
            )


def flat_of(indices: ndarray, shape: Sequence[int]) -> ndarray:
    """Each column of coordinates as one number. RuntimeError for a coordinate outside of the shape; see Note [Coordinates]."""
    refuse_bounds(indices, shape)
    if len(indices) == 1:
        return indices[0]
    flat = np.zeros(indices.shape[1], np.int64)
    for dim in range(len(indices)):
        flat *= shape[dim]
        flat += indices[dim]
    return flat


def flat(self: Tensor) -> ndarray:
    """`flat_of` a tensor's coordinates."""
    return flat_of(indices_of(self), self._payload.shape)


def coordinates(places: ndarray, shape: Sequence[int]) -> ndarray:
    """The coordinates of numbers that `flat_of` gave."""
    made = np.empty((len(shape), len(places)), np.int64)
    for dim in range(len(shape) - 1, -1, -1):
        places, made[dim] = np.divmod(places, max(shape[dim], 1))
    return made


def merged(places: ndarray, values: ndarray) -> tuple[ndarray, ndarray]:
    """Sorted places without repeats, with the sum of the values at each; bools are joined by or."""
    if len(places) < 2 or bool((places[1:] > places[:-1]).all()):
        return places, values
    order = np.argsort(places, kind="stable")
    places = places[order]
    first = np.empty(len(places), bool)
    first[0] = True
    np.not_equal(places[1:], places[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    return places[starts], sums_of_runs(values[order], starts)


_ROUNDS = 32
_MOST = 1 << 22  # elements that are taken at a time


def sums_of_runs(values: ndarray, starts: ndarray) -> ndarray:
    """The sums of the runs of values that begin at `starts`, in their dtype; bools are joined by or."""
    if len(starts) == len(values):
        return values
    narrow = values.dtype.itemsize < 4 and values.dtype.kind not in "iub"
    given = values.astype(np.float32) if narrow else values
    if given.ndim > 1:
        sums = summed(given.__getitem__, starts, len(given))
    elif given.dtype == bool:
        sums = np.logical_or.reduceat(given, starts)
    else:
        sums = np.add.reduceat(given, starts)
    return sums.astype(values.dtype, copy=False)


def summed(take: Callable[[ndarray], ndarray], starts: ndarray, count: int) -> ndarray:
    """The sums of runs of rows that begin at `starts`, of `count` rows; `take` makes rows of their numbers.

    The first rows of all runs, then the second ones, and so on, longer runs first, since numpy adds many rows to many at once; what is behind the
    first `_ROUNDS` rows of a run is summed by itself.
    """
    lengths = np.diff(starts, append=count)
    order = np.argsort(-lengths, kind="stable")
    begins, lengths = starts[order], lengths[order]
    sums = take(begins)
    for k in range(1, min(int(lengths[0]), _ROUNDS)):
        here = int(np.searchsorted(-lengths, -k))
        sums[:here] += take(begins[:here] + k)
    step = max(1, _MOST // max(1, sums[0].size))
    for at in range(int(np.searchsorted(-lengths, -_ROUNDS))):
        for start in range(begins[at] + _ROUNDS, begins[at] + lengths[at], step):
            sums[at] += take(np.arange(start, min(start + step, begins[at] + lengths[at]))).sum(0, dtype=sums.dtype)
    made = np.empty_like(sums)
    made[order] = sums
    return made


def coalesced(self: Tensor) -> Tensor:
    """The tensor with sorted coordinates, none of which stands twice."""
    data = self._payload
    if data.coalesced:
        return self
    if self.device.type == "meta":  # any number of elements will do
        return coo(data.shape, data.indices, data.values, True)
    sizes = data.shape[: data.sparse_dim]
    if data.nnz < 2:
        refuse_bounds(indices_of(self), sizes)
        return coo(data.shape, ops.clone(data.indices), ops.clone(data.values), True)
    before = flat(self)
    places, values = merged(before, values_of(self))
    if places is before:
        return coo(data.shape, ops.clone(data.indices), ops.clone(data.values), True)
    return coo(data.shape, integers(coordinates(places, sizes)), of_array(values, data.values), True)


def scattered(shape: Sequence[int], places: ndarray, values: ndarray, sparse_dim: int, unique: bool) -> ndarray:
    """A dense array with the values at places of the sparse dimensions, and zeros elsewhere."""
    target = np.zeros(shape, values.dtype)
    if values.size:
        rows = target.reshape(-1, *shape[sparse_dim:])
        if not unique:
            places, values = merged(places, values)
        rows[places] = values
    return target


def lines_of(self: Tensor) -> ndarray:
    """The row of each specified element of a csr tensor without batches, or the column of a csc tensor's. RuntimeError for pointers that do not fit."""
    data = self._payload
    begins = array_of(data.begins)
    which = "row" if data.of_rows else "column"
    name = f"c{which[:3]}_indices"
    if begins.ndim != 1:
        raise RuntimeError(f"sparse_{data.key}: batches of matrices are not supported here")
    counts = np.diff(begins)
    if len(counts) != data.shape[not data.of_rows] or (counts < 0).any() or begins[0] != 0 or begins[-1] != data.nnz:
        raise RuntimeError(f"sparse_{data.key}: {name} do not count the {which}s' elements")
    return np.repeat(np.arange(len(counts), dtype=np.int64), counts)


def places_of(self: Tensor) -> ndarray:
    """The coordinates of the specified elements of a compressed tensor without batches, line by line."""
    pair = [lines_of(self), array_of(self._payload.within).astype(np.int64)]
    return np.stack(pair if self._payload.of_rows else pair[::-1])


def as_coo(self: Tensor) -> Tensor:
    """A tensor of any layout as a coo tensor, which is sorted if it was one of rows."""
    if is_coo(self):
        return self
    data = self._payload
    if data.batch:
        matrices = batches(self)
        count = int(np.prod(data.shape[: data.batch], dtype=np.int64))
        lead = coordinates(np.arange(count), data.shape[: data.batch])
        found = [
            np.concatenate([np.repeat(lead[:, [k]], m._payload.nnz, 1), places_of(m)]) for k, m in enumerate(matrices)
        ]
        kept = np.concatenate(found, 1) if found else np.zeros((data.batch + 2, 0), np.int64)
        values = array_of(data.values)
        tail = values.shape[data.batch + 1 :]
        values = values.reshape(count * data.nnz, *tail)
        return coo(data.shape, integers(kept), of_array(values, data.values), data.of_rows)
    return coo(data.shape, integers(places_of(self)), data.values, data.of_rows or data.nnz < 2)


def batches(self: Tensor) -> list[Tensor]:
    """The matrices of a batch of compressed ones."""
    data = self._payload
    begins, within, values = (array_of(t) for t in data.members())
    shape = data.shape[data.batch :]
    count = math.prod(data.shape[: data.batch])
    begins, within = begins.reshape(count, begins.shape[-1]), within.reshape(count, within.shape[-1])
    values = values.reshape(count, *values.shape[data.batch :])
    kinds = [t._dtype for t in data.members()]
    matrices = [[wrap(part, kind) for part, kind in zip(parts, kinds)] for parts in zip(begins, within, values)]
    return [wrap(data.__class__(shape, *members), kinds[-1]) for members in matrices]


def as_csr(self: Tensor) -> Tensor:
    """A matrix of any layout as a csr tensor."""
    if is_csr(self):
        return self
    self = coalesced(as_coo(self))
    data = self._payload
    rows, col = indices_of(self)
    refuse_bounds(indices_of(self), data.shape)
    return csr(data.shape, integers(row_pointers(rows, data.shape[0])), integers(col), data.values)


def as_csc(self: Tensor) -> Tensor:
    """A matrix of any layout as a csc tensor."""
    if is_csc(self):
        return self
    data = as_coo(self)._payload
    flipped = coo(
        (data.shape[1], data.shape[0], *data.shape[2:]), ops.flip(data.indices, [0]), data.values, data.nnz < 2
    )
    made = as_csr(flipped)._payload
    return csc(data.shape, made.begins, made.within, made.values)


def row_pointers(rows: ndarray, count: int) -> ndarray:
    """Where each row begins, of sorted rows."""
    crow = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=crow[1:])
    return crow
