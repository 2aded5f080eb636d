"""What is made of operators of sparse tensors: conversions that may have nothing to do, products, sums, diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindtorch_v2._generated import functions as F
from mindtorch_v2._layout import LAYOUTS, strided
from mindtorch_v2._sparse_payload import CooPayload, SparsePayload
from mindtorch_v2._tensor import Tensor

COO = LAYOUTS["sparse_coo"]
CSR = LAYOUTS["sparse_csr"]
CSC = LAYOUTS["sparse_csc"]


def coo_tensor_unsafe(
    indices: Tensor,
    values: Tensor,
    size: Sequence[int],
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """A coo tensor of members that nobody checks."""
    if values.dim() == 0:
        values = values.expand(1)
    return F._sparse_coo_tensor_with_dims_and_tensors(
        indices.shape[0], values.dim() - 1, list(size), indices, values, is_coalesced=is_coalesced
    )


def embedding_sparse_backward(
    grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    """The gradient of a table of embeddings: a row of it for each index, but for padding."""
    if scale_grad_by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    width = grad.shape[-1]
    rows = grad.reshape(indices.numel() if width else 0, width)
    at = indices.reshape(-1) if width else indices.new_empty(0)
    if padding_idx != -1:
        kept = F.nonzero(at != padding_idx).reshape(-1)
        rows, at = F.index_select(rows, 0, kept), F.index_select(at, 0, kept)
    return coo_tensor_unsafe(at.unsqueeze(0).long(), rows, [num_weights, width])


def indices_from_coo_to_csr(self: Tensor, size: int, out_int32: bool = False) -> Tensor:
    """Where each of `size` rows begins, of sorted rows."""
    return F.searchsorted(self, F.arange(size + 1, dtype=self.dtype, device=self.device), out_int32=out_int32)


def indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """The coordinates of the elements of rows."""
    rows = F.arange(crow_indices.shape[-1] - 1, dtype=crow_indices.dtype).repeat_interleave(crow_indices.diff())
    pair = [col_indices.to(rows.dtype), rows] if transpose else [rows, col_indices.to(rows.dtype)]
    made = F.stack(pair)
    return made.int() if out_int32 else made.long()


def coalesce(self: Tensor) -> Tensor:
    """self, with each coordinate once. RuntimeError for another layout."""
    data = self._payload
    if data.__class__ is not CooPayload:
        name = data.name if isinstance(data, SparsePayload) else "Strided"
        raise RuntimeError(f"coalesce expected sparse coordinate tensor layout but got {name}")
    return self if data.coalesced else F._coalesce(self)


def to_dense(self: Tensor, dtype: Any = None, masked_grad: bool | None = None) -> Tensor:
    """self with memory for every element; a dense tensor itself."""
    if not isinstance(self._payload, SparsePayload):
        return self if dtype is None else self.to(dtype)
    return self._to_dense(dtype, masked_grad)


def _checked_layout(self: Tensor, name: str, layout: Any, blocksize: Any, dense_dim: int | None) -> None:
    if layout is not None and layout not in (COO, CSR, CSC):
        raise NotImplementedError(
            f"{name}(): tensors of the layout {layout} are not there; sparse_coo, sparse_csr and sparse_csc are"
        )
    if blocksize is not None:
        raise RuntimeError(
            f"{name}: conversion from {self.layout} to {layout or COO} with blocksize argument given is not supported"
        )
    if dense_dim is not None and not 0 <= dense_dim <= self.dim():
        raise RuntimeError(
            f"{name}: expected dense_dim to be non-negative and at most {self.dim()}, but got {dense_dim}"
        )


def to_sparse_dim(self: Tensor, sparse_dim: int) -> Tensor:
    """The elements of self that are not zero; a coo tensor itself."""
    return self if self.layout is COO and self.sparse_dim() == sparse_dim else self._to_sparse(sparse_dim)


def to_sparse(self: Tensor, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None) -> Tensor:
    """The elements of self that are not zero, in a sparse layout; a tensor of this layout itself."""
    if layout is strided:
        return self.to_dense()
    _checked_layout(self, "to_sparse", layout, blocksize, dense_dim)
    if self.layout is (layout or COO):
        return self
    return self._to_sparse(layout=layout, blocksize=blocksize, dense_dim=dense_dim)


def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """The elements of self that are not zero by rows; a csr tensor itself."""
    return self if self.layout is CSR else self._to_sparse_csr(dense_dim)


def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """The elements of self that are not zero by columns; a csc tensor itself."""
    return self if self.layout is CSC else self._to_sparse_csc(dense_dim)


def mm(sparse: Tensor, dense: Tensor) -> Tensor:
    """`torch.sparse.mm`, whose gradient of a sparse matrix is sparse."""
    if sparse.layout is not strided and dense.layout is not strided:
        return F._sparse_sparse_matmul(sparse, dense)
    if sparse.layout is strided and dense.layout is strided:
        return F.mm(sparse, dense)
    if sparse.dim() != 2 or dense.dim() != 2:
        raise RuntimeError(f"sparse.mm: matrices expected, got {sparse.dim()}D and {dense.dim()}D tensors")
    start = F.zeros([sparse.shape[0], dense.shape[-1]], dtype=dense.dtype, device=dense.device)
    return F._sparse_addmm(start, sparse, dense, beta=0, alpha=1)


def mm_reduce(sparse: Tensor, dense: Tensor, reduce: str) -> Tensor:
    """`torch.sparse.mm` with another reduction than a sum, of compressed rows."""
    return F._sparse_mm_reduce_impl(sparse, dense, reduce)[0]


def smm(self: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse matrix with a dense one, as a sparse one."""
    start = F.zeros([self.shape[0], mat2.shape[1]], dtype=mat2.dtype, layout=COO, device=mat2.device)
    return F.sspaddmm(start, self, mat2, beta=0, alpha=1)


def sum(self: Tensor) -> Tensor:
    """The sum of all specified elements."""
    return self.coalesce().values().sum()


def sum_dtype(self: Tensor, dtype: Any) -> Tensor:
    """The sum of all specified elements in another dtype."""
    return self.coalesce().values().sum(dtype=dtype)


def sum_dim_dtype(self: Tensor, dim: Sequence[int], dtype: Any) -> Tensor:
    """Sums over dimensions in another dtype."""
    return F._sparse_sum(self.to(dtype), list(dim))


def softmax(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Softmax over the specified elements of a dimension."""
    return F._sparse_softmax(self if dtype is None else self.to(dtype), dim, False)


def log_softmax(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """The logarithm of softmax over the specified elements of a dimension."""
    return F._sparse_log_softmax(self if dtype is None else self.to(dtype), dim, False)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: Any = None) -> Tensor:
    """A matrix with the rows of `diagonals` along its diagonals."""
    rows = diagonals.unsqueeze(0) if diagonals.dim() == 1 else diagonals
    wanted = offsets.reshape(1) if offsets.dim() == 0 else offsets
    if rows.dim() != 2:
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if wanted.dim() != 1:
        raise RuntimeError("Offsets must be scalar or vector")
    if rows.shape[0] != wanted.shape[0]:
        raise RuntimeError(
            f"Number of diagonals ({rows.shape[0]}) does not match the number of offsets ({wanted.shape[0]})"
        )
    if wanted.dtype.name != "int64":
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {wanted.dtype.cpp}")
    if layout not in (None, COO, CSR, CSC):
        raise RuntimeError(f"Only output layouts (Sparse, SparseCsr, SparseCsc) are supported, got {layout}")
    numbers = wanted.tolist()
    if len(set(numbers)) != len(numbers):
        raise RuntimeError("Offset tensor contains duplicate values")
    indices, found = [], []
    for number, offset in enumerate(numbers):
        first = max(0, -offset)
        last = min(shape[0], rows.shape[1] - offset, shape[1] - offset)
        at = F.arange(first, max(first, last))
        indices.append(F.stack([at, at + offset]))
        found.append(rows[number, at + offset])
    made = coo_tensor_unsafe(
        F.cat(indices, 1) if indices else F.zeros([2, 0], dtype=offsets.dtype),
        F.cat(found) if found else rows.reshape(-1)[:0],
        shape,
    )
    return made if layout is None else made.to_sparse(layout=layout)
