"""Making sparse tensors, taking them apart, and turning them into dense ones and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...._dispatch import ops
from ...._dtype import get_default_dtype, int64
from ...._layout import preserve_format, strided
from ...._sparse_payload import CompressedPayload, CooPayload, CscPayload, CsrPayload
from ...._tensor import Tensor, wrap
from . import pieces
from .pieces import (
    alias,
    array_of,
    as_coo,
    coalesced,
    coo,
    integers,
    is_compressed,
    is_coo,
    is_csc,
    is_csr,
    layout_name,
    with_values,
)

COMPRESSED = {kind.layout: kind for kind in (CsrPayload, CscPayload)}


def from_indices(
    sparse_dim: int,
    dense_dim: int,
    size: Sequence[int],
    indices: Tensor,
    values: Tensor,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    is_coalesced: bool | None = None,
) -> Tensor:
    """A coo tensor over the memory of its members."""
    return coo(size, alias(indices), alias(values), bool(is_coalesced) or values._payload.shape[0] < 2)


def from_lines(
    compressed_indices: Tensor,
    plain_indices: Tensor,
    values: Tensor,
    size: Sequence[int],
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Tensor:
    """A compressed tensor over the memory of its members; one of rows when nothing is said."""
    kind = CsrPayload if layout is None else COMPRESSED[layout]
    return wrap(kind(tuple(size), alias(compressed_indices), alias(plain_indices), alias(values)), values._dtype)


# Empty ones


def empty(
    size: Sequence[int],
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Tensor:
    """No specified elements."""
    kind = get_default_dtype() if dtype is None else dtype
    lines = COMPRESSED.get(layout)
    if lines is not None:
        _check_matrix(size)
        begins = ops.zeros([*size[:-2], size[-2 if lines.of_rows else -1] + 1], dtype=int64, device=device)
        within = ops.empty([*size[:-2], 0], dtype=int64, device=device)
        return wrap(lines(tuple(size), begins, within, ops.empty([*size[:-2], 0], dtype=kind, device=device)), kind)
    return _nothing(size, len(size), kind, device)


def zeros(
    size: Sequence[int], dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> Tensor:
    """No specified elements."""
    return empty(size, dtype, layout, device)


def _nothing(size: Sequence[int], sparse_dim: int, kind: Any, device: Any) -> Tensor:
    indices = ops.empty([sparse_dim, 0], dtype=int64, device=device)
    return coo(size, indices, ops.empty([0, *size[sparse_dim:]], dtype=kind, device=device), len(indices.shape) > 1)


def _check_matrix(size: Sequence[int]) -> None:
    if len(size) < 2:
        raise RuntimeError(
            f"torch.empty: Only batched sparse compressed (non-block) tensors are supported, but got size {list(size)}"
        )


def like(
    self: Tensor,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Tensor:
    """`empty_like` and `zeros_like`: no specified elements, or dense zeros."""
    data = self._payload
    if layout is not strided and memory_format is not None:
        raise RuntimeError("memory format option is only supported by strided tensors")
    kind = self._dtype if dtype is None else dtype
    where = self.device if device is None else device
    if layout is strided:
        return ops.zeros(data.shape, dtype=kind, device=where)
    if data.__class__ is CooPayload and layout in (None, CooPayload.layout):
        return _nothing(data.shape, data.sparse_dim, kind, where)
    if isinstance(data, CompressedPayload) and layout in (None, data.layout):
        begins = ops.zeros(data.begins.shape, dtype=data.begins._dtype, device=where)
        batch = data.shape[: data.batch]
        within = ops.empty([*batch, 0], dtype=data.within._dtype, device=where)
        values = ops.empty([*batch, 0, *data.shape[data.batch + 2 :]], dtype=kind, device=where)
        return wrap(data.__class__(data.shape, begins, within, values), kind)
    return empty(data.shape, kind, data.layout if layout is None and pieces.is_sparse(self) else layout, where)


def new(
    self: Tensor, size: Sequence[int], dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> Tensor:
    """`new_empty` and `new_zeros`."""
    data = self._payload
    kind = self._dtype if dtype is None else dtype
    where = self.device if device is None else device
    if layout is strided:
        return ops.zeros(size, dtype=kind, device=where)
    return empty(size, kind, data.layout if layout is None else layout, where)


# Members


def coalesce(self: Tensor) -> Tensor:
    """Sorted coordinates, none of which stands twice."""
    return coalesced(self)


def _not_coo(name: str, self: Tensor) -> RuntimeError:
    return RuntimeError(f"{name} expected sparse coordinate tensor layout but got {layout_name(self)}")


def indices(self: Tensor) -> Tensor:
    """The coordinates. RuntimeError for another layout, and while coordinates may stand twice."""
    if not is_coo(self):
        raise _not_coo("indices", self)
    _check_coalesced("indices", self)
    return alias(self._payload.indices)


def values(self: Tensor) -> Tensor:
    """The values. RuntimeError for dense tensors, and while coordinates may stand twice."""
    if is_coo(self):
        _check_coalesced("values", self)
    elif not is_compressed(self):
        raise RuntimeError(f"values expected sparse tensor layout but got {layout_name(self)}")
    return alias(self._payload.values)


def _check_coalesced(name: str, self: Tensor) -> None:
    if not self._payload.coalesced:
        raise RuntimeError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")


def raw_indices(self: Tensor) -> Tensor:
    """The coordinates as they are."""
    return alias(self._payload.indices)


def raw_values(self: Tensor) -> Tensor:
    """The values as they are."""
    return alias(self._payload.values)


def crow_indices(self: Tensor) -> Tensor:
    """Where rows begin. RuntimeError for another layout."""
    if not is_csr(self):
        raise RuntimeError(f"crow_indices expected sparse row compressed tensor layout but got {layout_name(self)}")
    return alias(self._payload.crow)


def col_indices(self: Tensor) -> Tensor:
    """The columns of the specified elements. RuntimeError for another layout."""
    if not is_csr(self):
        raise RuntimeError(f"col_indices expected sparse row compressed tensor layout but got {layout_name(self)}")
    return alias(self._payload.col)


def ccol_indices(self: Tensor) -> Tensor:
    """Where columns begin. RuntimeError for another layout."""
    if not is_csc(self):
        raise RuntimeError(f"ccol_indices expected sparse column compressed tensor layout but got {layout_name(self)}")
    return alias(self._payload.begins)


def row_indices(self: Tensor) -> Tensor:
    """The rows of the specified elements. RuntimeError for another layout."""
    if not is_csc(self):
        raise RuntimeError(f"row_indices expected sparse column compressed tensor layout but got {layout_name(self)}")
    return alias(self._payload.within)


# Conversions


def to_dense(self: Tensor, dtype: Any = None, masked_grad: bool | None = None) -> Tensor:
    """Every element in memory of its own."""
    if dtype is not None and dtype is not self._dtype:
        raise RuntimeError("dtype argument is not supported by sparse_to_dense")
    data = self._payload
    if self.device.type == "meta":
        return ops.empty(data.shape, dtype=self._dtype, device=self.device)
    lines = is_compressed(self)
    if lines:
        self = as_coo(self)
    found = self._payload
    made = pieces.scattered(
        data.shape, pieces.flat(self), pieces.values_of(self), found.sparse_dim, found.coalesced or lines
    )
    return wrap(made, self._dtype)


def to_sparse_dim(self: Tensor, sparse_dim: int) -> Tensor:
    """The elements that are not zero of the first `sparse_dim` dimensions, as a coo tensor."""
    if pieces.is_sparse(self):
        if self._payload.layout is CooPayload.layout and sparse_dim != self._payload.sparse_dim:
            raise RuntimeError(
                "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not supported"
            )
        if is_compressed(self) and sparse_dim != 2:
            raise RuntimeError(
                f"sparse_compressed_to_sparse: conversion from {layout_name(self)} to Sparse with sparse_dim argument !=2 is not supported"
            )
        return as_coo(self)
    array = array_of(self)
    if array.ndim == 0:
        sparse_dim = 0
    elif not 0 < sparse_dim <= array.ndim:
        raise RuntimeError(
            f"dense_to_sparse: sparse_dim argument must be in [0,{array.ndim}] range, but {sparse_dim} is given"
            if sparse_dim
            else "dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0"
        )
    present = array != 0
    if sparse_dim < array.ndim:
        present = present.any(tuple(range(sparse_dim, array.ndim)))
    if array.ndim == 0:
        found = np.zeros((0, int(present)), np.int64)
        kept = array.reshape(1)[: int(present)]
    else:
        at = np.nonzero(present)
        found = np.stack(at)
        kept = array[at]
    return coo(array.shape, integers(found), pieces.of_array(kept, self), True)


def to_sparse(self: Tensor, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None) -> Tensor:
    """The elements that are not zero, in a sparse layout."""
    if layout is not None and layout is not CooPayload.layout and layout not in COMPRESSED:
        raise NotImplementedError(
            f"to_sparse(): tensors of the layout {layout} are not there; sparse_coo, sparse_csr and sparse_csc are"
        )
    if blocksize is not None:
        raise RuntimeError(f"to_sparse: blocksize is not supported by the layout {layout}")
    if layout in COMPRESSED:
        return _to_lines(self, COMPRESSED[layout], dense_dim)
    if pieces.is_sparse(self):
        return as_coo(self)
    return to_sparse_dim(self, self.dim() - (dense_dim or 0))


def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """The elements that are not zero by rows."""
    return _to_lines(self, CsrPayload, dense_dim)


def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """The elements that are not zero by columns."""
    return _to_lines(self, CscPayload, dense_dim)


def _to_lines(self: Tensor, kind: type[CompressedPayload], dense_dim: int | None) -> Tensor:
    given = self._payload
    if given.__class__ is kind:
        return self
    convert = pieces.as_csr if kind.of_rows else pieces.as_csc
    if isinstance(given, CompressedPayload):
        if not given.batch:
            return convert(self)
        return _stacked([convert(m) for m in pieces.batches(self)], given.shape[: given.batch], given.shape)
    if is_coo(self):
        if given.sparse_dim != 2 or self.dim() != 2:
            raise RuntimeError(
                f"coo_to_sparse_{kind.key}: conversion from Sparse to {kind.name} for input tensors with sparse_dim()!=2 is not supported"
            )
        made = convert(self)
        return made if given.coalesced is False else with_values(made, ops.clone(made._payload.values))
    lead = self.dim() - (dense_dim or 0)
    if lead < 2:
        raise RuntimeError(
            f"to_sparse_{kind.key}: expected a tensor with at least 2 dimensions that are not dense, but got "
            f"{self.dim()} dimensions and dense_dim {dense_dim or 0}"
        )
    if lead == 2:
        return convert(to_sparse_dim(self, 2))
    array = array_of(self)
    batch = array.shape[: lead - 2]
    matrices = [convert(to_sparse_dim(wrap(m, self._dtype), 2)) for m in array.reshape(-1, *array.shape[lead - 2 :])]
    if len({m._payload.nnz for m in matrices}) > 1:
        raise RuntimeError("Expect the same number of specified elements per batch.")
    return _stacked(matrices, batch, array.shape)


def _stacked(matrices: list[Tensor], batch: tuple, shape: Sequence[int]) -> Tensor:
    members = []
    for each in zip(*(m._payload.members() for m in matrices)):
        joined = ops.stack(list(each))
        members.append(ops.reshape(joined, [*batch, *joined.shape[1:]]))
    return wrap(matrices[0]._payload.__class__(tuple(shape), *members), members[-1]._dtype)


def to_copy(
    self: Tensor,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Members of their own, values in another dtype or all on another device; on the meta device no specified elements."""
    data = self._payload
    if device is not None and device.type == "meta" and self.device.type != "meta":
        return like(self, dtype, None, device)
    made = [ops._to_copy(t, device=device) for t in data.members()[:-1]]
    kept = ops._to_copy(data.values, dtype=dtype, device=device)
    if isinstance(data, CompressedPayload):
        return wrap(data.__class__(data.shape, *made, kept), kept._dtype)
    return coo(data.shape, *made, kept, data.coalesced)


def clone(self: Tensor, memory_format: Any = None) -> Tensor:
    """Members of their own."""
    if memory_format is not None and memory_format is not preserve_format:
        raise RuntimeError(f"unsupported memory format option {memory_format.name.title().removesuffix('_Format')}")
    return to_copy(self)


def detach(self: Tensor) -> Tensor:
    """The same members without history."""
    return wrap(self._payload, self._dtype)
