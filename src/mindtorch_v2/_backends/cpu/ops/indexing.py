"""Reading and writing at positions: index, gather, scatter, masks, nonzero.

Note [Flat places]: gather and scatter along a dimension address single elements. numpy's fancy index with one array per dimension costs several
times what `take` on flat element numbers costs, so the kernels compute those numbers once.

Note [Sums in wide types]: half types have no indexed loops in numpy; their sums run in float32 and are rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from ...._dispatch.native import kernel
from ...common.convert import wrapped
from .blocked import chosen
from .conversion import copy_, widened
from .nn import add_rows
from .view import PREFIX

Indices = Sequence["ndarray | None"]


def _is_half(dtype: np.dtype) -> bool:
    return dtype.itemsize <= 2 and dtype.kind not in "biu"


def _through_float32(kernel: Callable[..., Any], self: ndarray, *args: Any) -> ndarray:
    """Run a kernel that writes into `self` on a float32 copy, see Note [Sums in wide types]."""
    wide = widened(self)
    kernel(wide, *args)
    return copy_(self, wide)


def _in_place(self: ndarray) -> tuple[ndarray, bool]:
    """(contiguous array to write into, whether it is a copy that must be written back)."""
    return (self, False) if self.flags.c_contiguous else (np.ascontiguousarray(self), True)


# ----------------------------------------------------------------------------------------------------------------------- index


def key_of(indices: Indices) -> tuple:
    """numpy's index for PyTorch's list: None selects all, uint8 tensors are masks."""
    return tuple([slice(None) if i is None else (i.view(np.bool_) if i.dtype == np.uint8 else i) for i in indices])


def _in_words(error: IndexError, indices: Indices) -> str:
    """numpy's message in PyTorch's words, which counts only the dimensions that are indexed."""
    if "could not be broadcast" in str(error):  # of what masks select: the rule saw the others
        parts: list[ndarray] = []
        for index in key_of([index for index in indices if index is not None]):
            parts.extend(np.atleast_1d(index).nonzero() if index.dtype.kind == "b" else [index])
        shapes = ", ".join(str(list(part.shape)) for part in parts)
        return f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
    before, found, after = str(error).partition(" for axis ")
    if after.endswith("with size 0"):
        return "index is out of bounds for dimension with size 0"
    if not found:
        return before
    axis, _, size = after.partition(" ")
    return f"{before} for dimension {sum(i is not None for i in indices[: int(axis)])} {size}"


@kernel
def index(self: ndarray, indices: Indices) -> ndarray:
    only = [d for d, i in enumerate(indices) if i is not None]
    try:
        if len(only) == 1:
            places = indices[only[0]]
            assert places is not None
            if places.dtype.kind == "i":
                return self.take(places, only[0])
        result = self[key_of(indices)]
    except IndexError as error:
        raise IndexError(_in_words(error, indices)) from None
    return result.copy() if result.base is not None else result


@kernel
def index_put_(self: ndarray, indices: Indices, values: ndarray, accumulate: bool = False) -> ndarray:
    key = key_of(indices)
    try:
        if not accumulate:
            self[key] = values
        elif _is_half(self.dtype):
            _through_float32(_accumulate, self, key, widened(values))
        else:
            _accumulate(self, key, values)
    except IndexError as error:
        raise IndexError(_in_words(error, indices)) from None
    except ValueError:  # masks decide the shape, so the rule could not tell
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of shape "
            f"{list(self[key].shape)}"
        ) from None
    return self


def _accumulate(self: ndarray, key: tuple, values: ndarray) -> None:
    if any(isinstance(k, ndarray) and k.dtype.kind == "b" for k in key):
        parts: list[Any] = []
        for k in key:
            parts.extend(np.nonzero(k) if isinstance(k, ndarray) and k.dtype.kind == "b" and k.ndim else [k])
        key = tuple(parts)
    if self.dtype.kind == "b":
        np.logical_or.at(self, key, values)  # a sum of truth values
        return
    if len(key) == 1 and isinstance(key[0], ndarray) and self.flags.c_contiguous and self.ndim and self.size:
        rows = np.where(key[0] < 0, key[0] + self.shape[0], key[0]).reshape(-1).astype(np.intp, copy=False)
        _check_index(rows, self.shape[0], IndexError, "index {0} is out of bounds for dimension 0 with size {1}")
        width = self.size // self.shape[0]
        spread = np.broadcast_to(values, key[0].shape + self.shape[1:]).reshape(rows.size, width)
        add_rows(self.reshape(self.shape[0], width), rows, spread)
        return
    np.add.at(self, key, values)


def _check_index(index: ndarray, size: int, error: type[Exception], message: str) -> None:
    """Raise `error` with the first index that is not in [0, size)."""
    if index.size and (np.minimum.reduce(index, axis=None) < 0 or np.maximum.reduce(index, axis=None) >= size):
        wrong = index[(index < 0) | (index >= size)].flat[0]
        raise error(message.format(wrong, size))


# ------------------------------------------------------------------------------------------------------------ whole slices


@kernel
def index_select(self: ndarray, dim: int, index: ndarray) -> ndarray:
    if not self.ndim:
        _check_index(index, 1, IndexError, "index out of range in self")
        return self.copy()
    size = self.shape[dim]
    if self.ndim > 1 and (dim in (1, 1 - self.ndim) or not self.size):
        _check_index(index, size, RuntimeError, "INDICES element is out of DATA bounds, id={0} axis_dim={1}")
    else:
        _check_index(index, size, IndexError, "index out of range in self")
    return self.take(index.reshape(-1), dim)


def _wrapped(number: Any, kind: np.dtype) -> ndarray:
    """A number in a dtype; integers that it cannot hold wrap around, as in C."""
    return np.asarray(number).astype(kind)


@kernel
def index_add_(self: ndarray, dim: int, index: ndarray, source: ndarray, alpha: Any = 1) -> ndarray:
    if _is_half(self.dtype):
        return _through_float32(index_add_, self, dim, index, widened(source), alpha)
    if not self.ndim:
        added = (source * _wrapped(alpha, self.dtype)).sum()
        self[...] = self | bool(added) if self.dtype.kind == "b" else self + added
        return self
    dim %= self.ndim
    if self.ndim > 1:
        message = "index {0} is out of bounds for dimension " + str(dim) + " with size {1}"
        _check_index(index, self.shape[dim], RuntimeError, message)
    else:
        _check_index(index, self.shape[dim], IndexError, "index out of range in self")
    if alpha != 1:
        source = source * _wrapped(alpha, self.dtype)
    rows = index.reshape(-1).astype(np.intp, copy=False)
    if self.dtype.kind == "b":
        for row, value in zip(rows.tolist(), np.moveaxis(source, dim, 0), strict=True):
            self[(*PREFIX[dim], row)] |= value
        return self
    source = source.reshape((1,) if not source.ndim else source.shape)
    if dim == 0 and self.flags.c_contiguous and self.size:
        width = self.size // self.shape[0]
        add_rows(self.reshape(self.shape[0], width), rows, source.reshape(rows.size, width))
    else:
        np.add.at(np.moveaxis(self, dim, 0), rows, np.moveaxis(source, dim, 0))
    return self


@kernel
def index_copy_(self: ndarray, dim: int, index: ndarray, source: ndarray) -> ndarray:
    if not self.ndim:
        _check_index(index, 1, IndexError, "index_copy_(): index {0} is out of bounds for dimension 0 with size {1}")
        if source.size:
            self[...] = source.reshape(-1)[-1]
        return self
    dim %= self.ndim
    message = "index_copy_(): index {0} is out of bounds for dimension " + str(dim) + " with size {1}"
    _check_index(index, self.shape[dim], IndexError, message)
    self[(*PREFIX[dim], index.reshape(-1))] = source if source.ndim else source.reshape(1)
    return self


@kernel
def index_fill_(self: ndarray, dim: int, index: ndarray, value: Any) -> ndarray:
    size = self.shape[dim] if self.ndim else 1
    message = "index {0} is out of bounds for dimension " + str(dim) + " with size {1}"
    places = index.reshape(-1)
    if places.size and not -size <= np.minimum.reduce(places) <= np.maximum.reduce(places) < size:
        raise IndexError(message.format(places[(places < -size) | (places >= size)][0], size))
    if not self.ndim:
        if places.size:
            self[...] = wrapped(value, self.dtype)
        return self
    self[(*PREFIX[dim % self.ndim], places)] = wrapped(value, self.dtype)
    return self


# ------------------------------------------------------------------------------------------------------------ gather, scatter


def _flat_places(shape: tuple[int, ...], dim: int, index: ndarray) -> ndarray:
    """The element numbers, in a contiguous array of `shape`, that `index` along `dim` means. See Note [Flat places]."""
    message = "index {0} is out of bounds for dimension " + str(dim) + " with size {1}"
    _check_index(index, shape[dim], RuntimeError, message)
    steps = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        steps[d] = steps[d + 1] * shape[d + 1]
    places = index * np.intp(steps[dim])
    for d, step in enumerate(steps):
        if d != dim and index.shape[d] > 1:
            axis = np.arange(0, index.shape[d] * step, step, dtype=np.intp)
            places += axis.reshape((-1,) + (1,) * (len(shape) - 1 - d))
    return places


@kernel
def gather(self: ndarray, dim: int, index: ndarray, sparse_grad: bool = False) -> ndarray:
    if not self.ndim or not index.ndim:
        flat = index.reshape(-1)
        _check_index(flat, self.size, RuntimeError, "index {0} is out of bounds for dimension 0 with size {1}")
        return self.reshape(-1).take(flat).reshape(index.shape)
    if not index.size:
        return np.empty(index.shape, self.dtype)
    places = _flat_places(self.shape, dim % self.ndim, index)
    return np.ascontiguousarray(self).reshape(-1).take(places)


def _scatter(self: ndarray, dim: int, index: ndarray, write: Callable[[ndarray, ndarray], None]) -> ndarray:
    """Let `write(flat array, flat places)` change `self`, which may have any strides."""
    if not index.size:
        return self
    target, copied = _in_place(self)
    if self.ndim:
        shape = index.shape if index.ndim else (1,) * self.ndim
        places = _flat_places(self.shape, dim % self.ndim, index.reshape(shape))
    else:
        places = index.reshape(-1)
        _check_index(places, 1, RuntimeError, "index {0} is out of bounds for dimension 0 with size {1}")
    write(target.reshape(-1), places.reshape(-1))
    if copied:
        self[...] = target
    return self


def _source(src: ndarray, index: ndarray) -> ndarray:
    """The part of `src` that `index` covers, flat."""
    if src.shape != index.shape and src.ndim == index.ndim:
        src = src[tuple([slice(n) for n in index.shape])]
    return src.reshape(-1)[: index.size]


@kernel
def scatter_src(self: ndarray, dim: int, index: ndarray, src: ndarray) -> ndarray:
    def write(flat: ndarray, places: ndarray) -> None:
        flat[places] = _source(src, index)

    return _scatter(self, dim, index, write)


@kernel
def scatter_value(self: ndarray, dim: int, index: ndarray, value: Any) -> ndarray:
    def write(flat: ndarray, places: ndarray) -> None:
        flat[places] = wrapped(value, self.dtype)

    return _scatter(self, dim, index, write)


@kernel
def scatter_add_(self: ndarray, dim: int, index: ndarray, src: ndarray) -> ndarray:
    return scatter_reduce_(self, dim, index, src, "sum")


@kernel
def scatter_reduce(self: ndarray, dim: int, index: ndarray, src: ndarray, reduce: str) -> ndarray:
    """`scatter` with reduce='add' or 'multiply'."""
    return scatter_reduce_(self, dim, index, src, {"add": "sum", "multiply": "prod"}[reduce])


def scatter_value_reduce(self: ndarray, dim: int, index: ndarray, value: Any, reduce: str) -> ndarray:
    return scatter_reduce(self, dim, index, np.full(index.shape, wrapped(value, self.dtype), self.dtype), reduce)


_REDUCE: dict[str, np.ufunc] = {
    "sum": np.add,
    "mean": np.add,
    "prod": np.multiply,
    "amax": np.maximum,
    "amin": np.minimum,
}


def _neutral(reduce: str, dtype: np.dtype) -> Any:
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype.kind == "b":
        return reduce == "amin"
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if reduce == "amax" else np.iinfo(dtype).max
    return -np.inf if reduce == "amax" else np.inf


@kernel
def scatter_reduce_(
    self: ndarray, dim: int, index: ndarray, src: ndarray, reduce: str, include_self: bool = True
) -> ndarray:
    """The values that meet at a place are reduced, together with what stood there unless `include_self` is false."""
    if _is_half(self.dtype):
        return _through_float32(scatter_reduce_, self, dim, index, widened(src), reduce, include_self)

    def write(flat: ndarray, places: ndarray) -> None:
        if not include_self:
            flat[places] = _neutral(reduce, flat.dtype)
        _REDUCE[reduce].at(flat, places, _source(src, index))
        if reduce == "mean":
            count = np.bincount(places, minlength=flat.size) + (1 if include_self else 0)
            np.maximum(count, 1, out=count)
            if flat.dtype.kind in "iu":
                flat //= count.astype(flat.dtype)
            else:
                flat /= count.astype(flat.real.dtype)

    return _scatter(self, dim, index, write)


def index_reduce_(
    self: ndarray, dim: int, index: ndarray, source: ndarray, reduce: str, include_self: bool = True
) -> ndarray:
    shape = [1] * source.ndim
    if shape:
        shape[dim] = index.size
    places = np.broadcast_to(index.reshape(shape), source.shape)
    return scatter_reduce_(self, dim, places, source, reduce, include_self)


# ----------------------------------------------------------------------------------------------------------------------- masks


@kernel
def masked_fill(self: ndarray, mask: ndarray, value: Any, out: ndarray | None = None) -> ndarray:
    value = np.asarray(value)
    if value.dtype != self.dtype:
        value = value.astype(self.dtype)
    if out is None:
        return chosen(mask, value, self)
    # In place what is not chosen stays untouched, so that the block's expression would write too much.
    if out is not self:
        np.copyto(out, self)
    np.copyto(out, value, where=mask)
    return out


def fast_masked_fill(self: ndarray, mask: ndarray, value: Any) -> ndarray | None:
    """`masked_fill` of a contiguous float array with a float."""
    if value.__class__ is not float or mask.dtype.kind != "b" or not self.flags.c_contiguous or self.dtype.kind != "f":
        return None
    if self.itemsize == 2 or not self.ndim:
        return None
    if mask.shape != self.shape:
        return None
    return chosen(mask, self.dtype.type(value), self)


@kernel
def masked_select(self: ndarray, mask: ndarray) -> ndarray:
    if self.shape != mask.shape:
        shape = np.broadcast_shapes(self.shape, mask.shape)
        self, mask = np.broadcast_to(self, shape), np.broadcast_to(mask, shape)
    return self[mask]


@kernel
def masked_scatter(self: ndarray, mask: ndarray, source: ndarray, out: ndarray | None = None) -> ndarray:
    """Copy the first elements of `source` to the places of the mask."""
    if out is None:
        shape = np.broadcast_shapes(self.shape, mask.shape)
        out = np.broadcast_to(self, shape).copy()
    elif out is not self:
        np.copyto(out, self)
    chosen = np.broadcast_to(mask, out.shape)
    count = int(np.count_nonzero(chosen))
    if count > source.size:
        raise RuntimeError("masked_scatter: expected self and source to have same number of elements as the mask")
    out[chosen] = source.reshape(-1)[:count]
    return out


def masked_scatter_backward(grad_output: ndarray, mask: ndarray, sizes: Sequence[int]) -> ndarray:
    result = np.zeros(math.prod(sizes), grad_output.dtype)
    shape = np.broadcast_shapes(grad_output.shape, mask.shape)
    found = np.broadcast_to(grad_output, shape)[np.broadcast_to(mask, shape)]
    result[: found.size] = found
    return result.reshape(tuple(sizes))


# ------------------------------------------------------------------------------------------------------------------ take, put


def _linear(index: ndarray, size: int) -> ndarray:
    """Non-negative element numbers of `index` into `size` elements."""
    message = "out of range: tried to access index {0} on a tensor of {1} elements."
    wrong = (index < -size) | (index >= size)
    if wrong.any():
        raise IndexError(message.format(index[wrong].flat[0], size))
    return np.where(index < 0, index + size, index)


@kernel
def take(self: ndarray, index: ndarray) -> ndarray:
    return self.reshape(-1).take(_linear(index, self.size)).reshape(index.shape)


def put_(self: ndarray, index: ndarray, source: ndarray, accumulate: bool = False) -> ndarray:
    if accumulate and _is_half(self.dtype):
        return _through_float32(put_, self, index, widened(source), accumulate)
    target, copied = _in_place(self)
    flat = target.reshape(-1)
    places = _linear(index, self.size).reshape(-1)
    if accumulate:
        np.add.at(flat, places, source.reshape(-1))
    else:
        flat[places] = source.reshape(-1)
    if copied:
        self[...] = target
    return self


def take_along_dim(self: ndarray, indices: ndarray, dim: int | None = None) -> ndarray:
    if dim is None:
        return gather(self.reshape(-1), 0, indices.reshape(-1))
    dim %= self.ndim
    front = np.broadcast_shapes(
        self.shape[:dim] + (1,) + self.shape[dim + 1 :], indices.shape[:dim] + (1,) + indices.shape[dim + 1 :]
    )
    shape = [*front]
    shape[dim] = self.shape[dim]
    shape_index = [*front]
    shape_index[dim] = indices.shape[dim]
    return gather(np.broadcast_to(self, shape), dim, np.broadcast_to(indices, shape_index))


# --------------------------------------------------------------------------------------------------------------- nonzero, where


@kernel
def nonzero(self: ndarray) -> ndarray:
    """Coordinates of the elements that are not zero, (count, ndim) in row-major order."""
    truth = self if self.dtype.kind in "biufc" else self != 0
    if not truth.ndim:
        return np.zeros((int(bool(truth)), 0), np.int64)
    places = np.nonzero(truth)
    result = np.empty((len(places), places[0].size), np.int64)
    for row, place in zip(result, places, strict=True):
        row[...] = place
    return result.T


def nonzero_static(self: ndarray, size: int, fill_value: int) -> ndarray:
    """The first `size` coordinates of `nonzero`, filled up with rows of a value."""
    found = nonzero(self)[:size]
    result = np.full((size, self.ndim), fill_value, np.int64)
    result[: len(found)] = found
    return result


@kernel
def one_hot(self: ndarray, num_classes: int = -1) -> ndarray:
    if num_classes == -1:
        num_classes = int(self.max()) + 1 if self.min() >= 0 else 1
    if self.size:
        if np.minimum.reduce(self, axis=None) < 0:
            raise RuntimeError("Class values must be non-negative.")
        if np.maximum.reduce(self, axis=None) >= num_classes:
            raise RuntimeError("Class values must be smaller than num_classes.")
    result = np.zeros((self.size, num_classes), np.int64)
    result[np.arange(self.size), self.reshape(-1)] = 1
    return result.reshape(*self.shape, num_classes)
