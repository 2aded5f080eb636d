"""Other shapes and parts of sparse tensors, and what joins them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...._dispatch import ops
from ...._dispatch.sparse import unavailable
from ...._sparse_payload import CscPayload, CsrPayload
from ...._tensor import Tensor, wrap
from . import pieces
from .pieces import array_of, as_coo, as_csr, coalesced, coo, integers, is_compressed, is_coo, is_csr, with_values
from .pointwise import broadcast, sampled


def _dim(self: Tensor, dim: int, extra: int = 0) -> int:
    n = max(self.dim() + extra, 1)
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return dim % n


def transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions changed over: both sparse, or both dense."""
    dim0, dim1 = _dim(self, dim0), _dim(self, dim1)
    dims = list(range(self.dim()))
    if dims:
        dims[dim0], dims[dim1] = dims[dim1], dims[dim0]
    if is_compressed(self):
        return self if dim0 == dim1 else _transposed_lines(self, dim0, dim1)
    lead = self._payload.sparse_dim
    if dim0 != dim1 and (dim0 < lead) != (dim1 < lead):
        raise RuntimeError(
            f"sparse transpose: transposed dimensions must be sparse Got sparse_dim: {lead}, d0: {dim0}, d1: {dim1}"
        )
    return permute(self, dims)


_KINDS = ("Batch", "Sparse", "Dense")


def _transposed_lines(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """The matrices changed over: what were rows are columns then. The members are the same."""
    data = self._payload
    kinds = [0 if d < data.batch else 1 if d < data.batch + 2 else 2 for d in (dim0, dim1)]
    if kinds[0] != kinds[1]:
        raise RuntimeError(
            "transpose(): can only transpose dimensions of the same type (Batch, Sparse, Dense), got "
            f"{dim0}({_KINDS[kinds[0]]}) and {dim1}({_KINDS[kinds[1]]})"
        )
    shape = list(data.shape)
    shape[dim0], shape[dim1] = shape[dim1], shape[dim0]
    if kinds[0] == 1:
        made = (CscPayload if data.of_rows else CsrPayload)(tuple(shape), *data.members())
    elif kinds[0] == 0:
        made = data.__class__(tuple(shape), *(ops.transpose(m, dim0, dim1) for m in data.members()))
    else:
        made = data.like(ops.transpose(data.values, dim0 - 1, dim1 - 1), tuple(shape))
    return wrap(made, self._dtype)


def t(self: Tensor) -> Tensor:
    """The transpose of a matrix."""
    if self.dim() > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {self._payload.sparse_dim} sparse and "
            f"{self.dim() - self._payload.sparse_dim} dense dimensions"
            if is_coo(self)
            else f"t() expects a tensor with <= 2 dimensions, but self is {self.dim()}D"
        )
    return self if self.dim() < 2 else transpose(self, 0, 1)


def reverse_dims(self: Tensor) -> Tensor:
    """All dimensions in the opposite order."""
    return t(self) if self.dim() <= 2 else permute(self, list(range(self.dim()))[::-1])


def movedim(self: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Dimensions put to other places, the others in their order."""
    froms = [_dim(self, d) for d in ([source] if isinstance(source, int) else source)]
    places = [_dim(self, d) for d in ([destination] if isinstance(destination, int) else destination)]
    left = [d for d in range(self.dim()) if d not in froms]
    taken = dict(zip(places, froms))
    return permute(self, [taken[d] if d in taken else left.pop(0) for d in range(self.dim())])


def view_as_real(self: Tensor) -> Tensor:
    """Real and imaginary parts along a new dense dimension."""
    data = self._payload
    return coo((*data.shape, 2), data.indices, ops.view_as_real(data.values), data.coalesced)


def view_as_complex(self: Tensor) -> Tensor:
    """Complex numbers of the last dimension, a dense one."""
    data = self._payload
    return coo(data.shape[:-1], data.indices, ops.view_as_complex(data.values), data.coalesced)


def broadcast_to(self: Tensor, size: Sequence[int]) -> Tensor:
    """The elements repeated along dimensions that are new or of size 1."""
    shape = self._payload.shape
    if len(size) < len(shape) or any(n not in (1, m) for n, m in zip(reversed(shape), reversed(size))):
        raise RuntimeError(
            f"The expanded size of the tensor {list(size)} does not go with the existing size {list(shape)}"
        )
    return broadcast(self, tuple(size))


def matrix_transpose(self: Tensor) -> Tensor:
    """The last two dimensions changed over."""
    return transpose(self, -2, -1)


def permute(self: Tensor, dims: Sequence[int]) -> Tensor:
    """Dimensions in another order: sparse ones and dense ones each among themselves."""
    if is_compressed(self):
        raise NotImplementedError(f"permute(): not there for the layout {self.layout.name}; transpose() is")
    if len(dims) != self.dim():
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {self.dim()} is not equal to len(dims) = {len(dims)}"
        )
    order = [_dim(self, d) for d in dims]
    if len(set(order)) != len(order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    if order == list(range(self.dim())):
        return with_values(self, self._payload.values)
    data = self._payload
    lead = data.sparse_dim
    if sorted(order[:lead]) != list(range(lead)):
        raise RuntimeError("permute(sparse_coo): transpositions between sparse and dense dimensions are not allowed.")
    shape = [data.shape[d] for d in order]
    indices, values = data.indices, data.values
    if order[:lead] != list(range(lead)):
        indices = ops.stack([ops.select(data.indices, 0, d) for d in order[:lead]])
    if order[lead:] != list(range(lead, self.dim())):
        values = ops.permute(values, [0, *(d - lead + 1 for d in order[lead:])])
    kept = (data.coalesced and order[:lead] == list(range(lead))) or not data.nnz
    return coo(shape, indices, values, kept)


def unsqueeze(self: Tensor, dim: int) -> Tensor:
    """A dimension of size 1 more."""
    if is_compressed(self):
        raise NotImplementedError(f"unsqueeze(): not there for the layout {self.layout.name}")
    dim = _dim(self, dim, 1)
    data = self._payload
    shape = [*data.shape[:dim], 1, *data.shape[dim:]]
    if dim <= data.sparse_dim:
        indices = np.insert(pieces.indices_of(self), dim, 0, axis=0)
        return coo(shape, integers(indices), data.values, data.coalesced)
    return coo(shape, data.indices, ops.unsqueeze(data.values, dim - data.sparse_dim + 1), data.coalesced)


def select(self: Tensor, dim: int, index: int) -> Tensor:
    """One place of a dimension, which is gone then; dense when no sparse dimension is left."""
    if self.dim() == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = _dim(self, dim)
    size = self.shape[dim]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(self.shape)} at dimension {dim}"
        )
    index %= size
    if is_compressed(self):
        return _select_lines(self, dim, index)
    data = self._payload
    shape = [*data.shape[:dim], *data.shape[dim + 1 :]]
    if dim >= data.sparse_dim:
        return coo(shape, data.indices, ops.select(data.values, dim - data.sparse_dim + 1, index), data.coalesced)
    indices = pieces.indices_of(self)
    at = integers(np.flatnonzero(indices[dim] == index))
    values = ops.index_select(data.values, 0, at)
    if data.sparse_dim == 1:
        return ops.sum(values, [0], dtype=self._dtype)
    left = integers(np.delete(indices[:, array_of(at)], dim, axis=0))
    return coo(shape, left, values, data.coalesced)


def _select_lines(self: Tensor, dim: int, index: int) -> Tensor:
    data = self._payload
    if dim < data.batch:
        members = [ops.select(member, dim, index) for member in data.members()]
        return wrap(data.__class__((*data.shape[:dim], *data.shape[dim + 1 :]), *members), self._dtype)
    if data.batch:
        raise RuntimeError("selecting sparse dimensions is not supported for batched sparse compressed tensors.")
    return coalesced(select(as_coo(self), dim, index))


def unbind(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """All places of a dimension."""
    dim = _dim(self, dim)
    return tuple(select(self, dim, index) for index in range(self.shape[dim]))


def narrow_copy(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A range of places of a dimension."""
    if not 0 <= dim < self.dim():
        raise RuntimeError(f"Dimension {dim} out of range. Expecting 0 <= dim < {self.dim()}.")
    size = self.shape[dim]
    if not 0 <= start <= size or length < 0 or start + length > size:
        raise RuntimeError(f"Invalid range to narrow. range(start, start+length) must be a subset of range(0, {size}).")
    if is_csr(self):
        raise NotImplementedError("narrow_copy(): not there for the layout sparse_csr")
    data = self._payload
    shape = [*data.shape[:dim], length, *data.shape[dim + 1 :]]
    if dim >= data.sparse_dim:
        part = ops.narrow_copy(data.values, dim - data.sparse_dim + 1, start, length)
        return coo(shape, data.indices, part, data.coalesced)
    indices = pieces.indices_of(self)
    at = np.flatnonzero((indices[dim] >= start) & (indices[dim] < start + length))
    kept = indices[:, at]
    kept[dim] -= start
    return coo(shape, integers(kept), ops.index_select(data.values, 0, integers(at)), data.coalesced)


def index_select(self: Tensor, dim: int, index: Tensor) -> Tensor:
    """The places of a dimension that `index` names, in its order."""
    dim = _dim(self, dim)
    if index.dim() > 1:
        raise IndexError("index_select(): Index is supposed to be 1-dimensional")
    given = array_of(index).reshape(-1).astype(np.int64)
    size = self.shape[dim]
    if len(given) and (given.min() < -size or given.max() >= size):
        wrong = given[(given < -size) | (given >= size)][0]
        raise IndexError(
            f"index_select(): index contains {wrong} that is out of range for tensor of size {list(self.shape)} at dimension {dim}"
        )
    given = np.where(given < 0, given + size, given)
    if is_csr(self):
        return as_csr(index_select(as_coo(self), dim, integers(given)))
    data = self._payload
    shape = [*data.shape[:dim], len(given), *data.shape[dim + 1 :]]
    if dim >= data.sparse_dim:
        part = ops.index_select(data.values, dim - data.sparse_dim + 1, integers(given))
        return coo(shape, data.indices, part, data.coalesced)
    indices = pieces.indices_of(self)
    # Each element goes to all places of the result that ask for it.
    order = np.argsort(given, kind="stable")
    low = np.searchsorted(given[order], indices[dim], "left")
    counts = np.searchsorted(given[order], indices[dim], "right") - low
    source = np.repeat(np.arange(indices.shape[1]), counts)
    within = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = indices[:, source]
    kept[dim] = order[np.repeat(low, counts) + within]
    values = ops.index_select(data.values, 0, integers(source))
    made = coo(shape, integers(kept), values, False)
    if not data.coalesced:
        return made
    places = pieces.flat(made)
    sorting = integers(np.argsort(places, kind="stable"))
    return coo(shape, ops.index_select(made._payload.indices, 1, sorting), ops.index_select(values, 0, sorting), True)


def cat(tensors: list[Tensor], dim: int = 0) -> Tensor:
    """Sparse tensors one behind the other along a dimension."""
    if not all(pieces.is_sparse(x) for x in tensors):
        at = next(i for i, x in enumerate(tensors) if not pieces.is_sparse(x))
        raise RuntimeError(f"Concatenating sparse tensors, but a dense tensor was found at position {at}.")
    if all(is_csr(x) for x in tensors):
        return as_csr(cat([as_coo(x) for x in tensors], dim))
    dim = _dim(tensors[0], dim)
    first = tensors[0]._payload
    for at, each in enumerate(tensors):
        data = each._payload
        if data.sparse_dim != first.sparse_dim or data.ndim != first.ndim:
            raise RuntimeError(
                f"All tensors must have the same sparse_dim and dense_dim: {first.sparse_dim}, {first.ndim - first.sparse_dim}, but tensor at "
                f"position {at} has {data.sparse_dim}, {data.ndim - data.sparse_dim}."
            )
        if any(d != dim and n != m for d, (n, m) in enumerate(zip(first.shape, data.shape))):
            raise RuntimeError(
                f"All tensors must have the same shape: {list(first.shape)} (except in the concatenating dimension), but found shape: "
                f"{list(data.shape)} at position {at}."
            )
    total = 0
    for each in tensors:
        total += each.shape[dim]
    shape = [*first.shape[:dim], total, *first.shape[dim + 1 :]]
    if dim >= first.sparse_dim:
        return _cat_dense(tensors, dim, shape)
    found, offset = [], 0
    for each in tensors:
        indices = pieces.indices_of(each).copy()
        indices[dim] += offset
        offset += each.shape[dim]
        found.append(indices)
    values = ops.cat([each._payload.values for each in tensors])
    return coo(shape, integers(np.concatenate(found, 1)), values, False)


def stack(tensors: list[Tensor], dim: int = 0) -> Tensor:
    """Sparse tensors one behind the other along a new dimension."""
    dim = _dim(tensors[0], dim, 1)
    return cat([unsqueeze(tensor, dim) for tensor in tensors], dim)


def reshape(self: Tensor, shape: Sequence[int]) -> Tensor:
    """There is none. RuntimeError."""
    raise RuntimeError("reshape is not implemented for sparse tensors")


def expand(self: Tensor, size: Sequence[int], implicit: bool = False) -> Tensor:
    """There is none. RuntimeError."""
    raise RuntimeError(f"expand is unsupported for {pieces.layout_name(self)} tensors")


def _cat_dense(tensors: list[Tensor], dim: int, shape: list[int]) -> Tensor:
    lead = tensors[0]._payload.sparse_dim
    at, found = 0, []
    for each in tensors:
        values = each._payload.values
        before = list(values.shape)
        after = list(values.shape)
        before[dim - lead + 1] = at
        at += each.shape[dim]
        after[dim - lead + 1] = shape[dim] - at
        zeros = [ops.zeros(sizes, dtype=values._dtype) for sizes in (before, after)]
        found.append(ops.cat([zeros[0], values, zeros[1]], dim - lead + 1))
    indices = ops.cat([each._payload.indices for each in tensors], 1)
    return coo(shape, indices, ops.cat(found), False)


def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """The elements of self where `mask` has specified ones."""
    if not pieces.is_sparse(mask):
        raise unavailable("sparse_mask", "strided")
    if self._payload.shape != mask._payload.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(self.shape)} but mask has size {list(mask.shape)}"
        )
    if not pieces.is_sparse(self):
        return with_values(mask, sampled(self, mask))
    if is_compressed(mask):
        return with_values(mask, sampled(ops._to_dense(self), mask))
    if is_compressed(self):
        raise RuntimeError("sparse_mask_sparse_compressed expects mask to have sparse compressed layout, got Sparse")
    return with_values(mask, pieces.of_array(pieces.values_at(coalesced(as_coo(self)), mask), self))


# In place


def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """The elements of another tensor of the same layout. RuntimeError for another layout."""
    if self.layout is not src.layout and (is_compressed(self) or is_compressed(src)):
        raise RuntimeError(
            "copy of sparse compressed tensors having different layouts is not supported. self layout is "
            f"{self.layout} and src layout is {src.layout}"
        )
    if not pieces.is_sparse(self) or not pieces.is_sparse(src):
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type = "
            f"{self.type()} and src type = {src.type()}"
        )
    data, given = self._payload, src._payload
    if self is src:
        return self
    if data.shape != given.shape and is_compressed(self):
        raise RuntimeError(
            f"copy_: only sparse compressed tensors of equal sizes can be copied, but got {list(data.shape)} and {list(given.shape)}"
        )
    if is_coo(self) and data.shape != given.shape:
        resize_(self, given.shape, given.sparse_dim, given.ndim - given.sparse_dim)
    members = [ops.clone(m) for m in given.members()[:-1]]
    values = ops._to_copy(given.values, dtype=data.dtype)
    self._payload = data.__class__(given.shape, *members, values, *([given.coalesced] if is_coo(src) else []))
    return self


def zero_(self: Tensor) -> Tensor:
    """No specified elements any more."""
    data = self._payload
    if is_compressed(self):
        within, values = (ops.narrow(t, data.batch, 0, 0).clone() for t in (data.within, data.values))
        self._payload = data.__class__(data.shape, ops.zeros_like(data.begins), within, values)
        return self
    resize_and_clear_(self, data.shape, data.sparse_dim, data.ndim - data.sparse_dim)
    return self


def resize_and_clear_(self: Tensor, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Tensor:
    """Another shape, with no specified elements."""
    _check_dims(size, sparse_dim, dense_dim)
    self._payload = coo(
        size,
        integers(np.zeros((sparse_dim, 0), np.int64)),
        ops.empty([0, *size[sparse_dim:]], dtype=self._dtype),
        True,
    )._payload
    return self


_ADVICE = (
    "You could try the following options:\n1. If you need an empty sparse tensor of this size, call `x = torch.sparse_coo_tensor(size)`.\n2. If you "
    "need to resize this tensor, you have the following options:\n    1. For both sparse and dense dimensions, keep the number of them constant and "
    "the size of them non-shrinking, and then try the same call again.\n    2. Or, create a new sparse tensor with the correct indices and values "
    "from this sparse tensor."
)


def _check_dims(size: Sequence[int], sparse_dim: int, dense_dim: int) -> None:
    if sparse_dim + dense_dim != len(size):
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {sparse_dim}, dense_dim = "
            f"{dense_dim}"
        )


def resize_(self: Tensor, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Tensor:
    """A larger shape with the same specified elements, or any while there are none. RuntimeError where elements would be lost."""
    _check_dims(size, sparse_dim, dense_dim)
    data = self._payload
    if data.nnz:
        if sparse_dim != data.sparse_dim:
            raise RuntimeError(
                f"changing the number of sparse dimensions (from {data.sparse_dim} to {sparse_dim}) on a non-empty sparse tensor is not "
                f"supported.\n{_ADVICE}"
            )
        if dense_dim != data.ndim - data.sparse_dim:
            raise RuntimeError(
                f"changing the number of dense dimensions (from {data.ndim - data.sparse_dim} to {dense_dim}) on a non-empty sparse tensor is "
                f"not supported.\n{_ADVICE}"
            )
        if any(n < m for n, m in zip(size, data.shape)):
            which = "sparse" if any(n < m for n, m in zip(size[:sparse_dim], data.shape[:sparse_dim])) else "dense"
            part = np.s_[:sparse_dim] if which == "sparse" else np.s_[sparse_dim:]
            raise RuntimeError(
                f"shrinking the size of {which} dimensions (from {list(data.shape[part])} to {list(size[part])}) on a non-empty sparse tensor is "
                f"not supported.\n{_ADVICE}"
            )
        values = array_of(data.values)
        tail = tuple(size[sparse_dim:])
        if values.shape[1:] != tail:
            grown = np.zeros((len(values), *tail), values.dtype)
            grown.reshape(-1)[: values.size] = values.reshape(
                -1
            )  # memory stays as it is, whatever its elements are then
            kept = pieces.of_array(grown, data.values)
        else:
            kept = data.values
        self._payload = coo(size, data.indices, kept, data.coalesced)._payload
        return self
    return resize_and_clear_(self, size, sparse_dim, dense_dim)


def resize_csr_(self: Tensor, size: Sequence[int]) -> Tensor:
    """Another shape of a tensor of rows: more rows have no elements, those of rows that are gone are gone. RuntimeError for fewer columns."""
    data = self._payload
    if len(size) < 2:
        raise RuntimeError(
            "torch.resize_: Only batched sparse CSR matrices are supported, but got size " + str(list(size))
        )
    rows, columns = size[-2:]
    before_rows, before = data.shape[data.batch : data.batch + 2]
    if columns < before:
        raise RuntimeError(
            "torch.resize_: Resizing columns of sparse CSR tensors to a smaller value is not supported. The original number of columns is "
            f"{before} while the requested new number of columns is {columns}."
        )
    crow, col, values = data.members()
    batch = tuple(size[:-2])
    if batch != tuple(data.shape[: data.batch]):
        if len(batch) > data.batch or values.dim() != data.batch + 1:
            raise NotImplementedError("torch.resize_: batches of sparse csr matrices can only be left out")
        count = 1
        for n in batch:
            count *= n
        crow, col, values = (
            ops.reshape(ops.narrow(ops.reshape(t, [-1, t.shape[-1]]), 0, 0, count), [*batch, t.shape[-1]])
            for t in (crow, col, values)
        )
    if rows >= before_rows:
        last = ops.narrow(crow, -1, crow.shape[-1] - 1, 1)
        crow = ops.cat([crow, ops.expand(last, [*batch, rows - before_rows])], -1)
    else:
        crow = ops.narrow(crow, -1, 0, rows + 1).clone()
        kept = min(data.nnz, rows * columns)  # as PyTorch counts them: whatever the rows had
        ops.narrow(crow, -1, rows, 1).fill_(kept)
        col, values = (ops.narrow(t, len(batch), 0, kept).clone() for t in (col, values))
    self._payload = data.__class__(tuple(size), crow, col, values)
    return self
