"""Derivatives of what makes sparse tensors, takes them apart and multiplies them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._dispatch import ops
from ..._sparse_payload import CooPayload, SparsePayload
from ..._tensor import Tensor
from .matmul import adjoint_of
from .pointwise import conj_of

__all__ = [
    "sparse_broadcast_gradient",
    "sampled_addmm_gradient",
    "sparse_mask_gradient",
    "sparse_mm_first",
    "sparse_mm_reduce_gradient",
    "sparse_sparse_first",
    "sparse_sparse_second",
    "sparse_values_gradient",
    "to_dense_gradient",
    "to_sparse_gradient",
    "values_gradient",
]

Maybe = Tensor | None


def _is_sparse(tensor: Tensor) -> bool:
    return isinstance(tensor._payload, SparsePayload)


def _dense(tensor: Tensor) -> Tensor:
    return tensor.to_dense()


def sparse_values_gradient(grad: Tensor, result: Tensor) -> Tensor:
    """The gradient of the values that a sparse tensor was made of: that of the tensor at its coordinates, each of those that stand twice."""
    data = result._payload
    if data.__class__ is CooPayload:
        if not data.coalesced:
            return _at(_dense(grad), data)
        return ops.sparse_mask(grad, result)._values()
    return ops.sparse_mask(_dense(grad), result).values()


def _at(dense: Tensor, data: CooPayload) -> Tensor:
    """The elements of a dense tensor at coordinates of which some may stand twice."""
    if not data.sparse_dim:
        return ops.expand(ops.unsqueeze(dense, 0), [data.nnz, *dense.shape])
    return ops.index(dense, list(ops.unbind(data.indices, 0)))


def values_gradient(grad: Tensor, self: Tensor) -> Tensor:
    """The gradient of a sparse tensor of that of its values."""
    data: Any = self._payload
    if data.__class__ is CooPayload:
        return ops._sparse_coo_tensor_unsafe(data.indices, grad, list(data.shape), is_coalesced=True)
    return ops._sparse_compressed_tensor_unsafe(data.begins, data.within, grad, list(data.shape), layout=data.layout)


def to_dense_gradient(grad: Tensor, self: Tensor, masked_grad: bool | None) -> Tensor:
    """The gradient of a sparse tensor of that of a dense one: its specified elements, or (not `masked_grad`) all that are not zero."""
    if not _is_sparse(self):
        return _dense(grad)
    data: Any = self._payload
    if masked_grad is None or masked_grad:
        return ops.sparse_mask(grad, self.coalesce() if data.__class__ is CooPayload else self)
    return grad.to_sparse(data.sparse_dim) if data.__class__ is CooPayload else grad.to_sparse(layout=data.layout)


def to_sparse_gradient(grad: Tensor, self: Tensor) -> Tensor:
    """The gradient of what was made sparse, in its own layout."""
    if not _is_sparse(self):
        return _dense(grad)
    return grad if grad.layout is self.layout else grad.to_sparse(layout=self.layout)


def sparse_broadcast_gradient(grad: Tensor, self: Tensor) -> Tensor:
    """The gradient of a sparse tensor whose elements were repeated: sums over the repetitions."""
    shape = self.shape
    lead = grad.dim() - len(shape)
    over = [*range(lead), *(lead + d for d, n in enumerate(shape) if n == 1 and grad.shape[lead + d] != 1)]
    if not _is_sparse(grad) or not over:
        return ops.sum_to_size(grad, shape) if not _is_sparse(grad) else grad
    made = ops._sparse_sum(grad, over)
    for d in over[lead:]:
        made = ops.unsqueeze(made, d - lead)
    return made


def sparse_mask_gradient(grad: Tensor, self: Tensor, mask: Tensor) -> Tensor:
    """The gradient of what was masked, in its own layout."""
    masked = ops.sparse_mask(grad, mask)
    return masked if _is_sparse(self) else _dense(masked)


def sparse_mm_first(grad: Tensor, mat1: Tensor, mat2: Tensor, alpha: Any) -> Tensor:
    """The gradient of the first matrix of a product: of a sparse one its specified elements only."""
    if not _is_sparse(mat1):
        product = ops.mm(grad, adjoint_of(mat2))
        return product if alpha == 1 else product * alpha
    data = mat1._payload
    mask = mat1.coalesce() if data.__class__ is CooPayload else mat1
    product = ops.mm(grad, adjoint_of(mat2))
    return ops.sparse_mask(product if alpha == 1 else product * alpha, mask)


def sparse_mm_reduce_gradient(
    grad: Tensor, self: Tensor, other: Tensor, reduce: str, which: Tensor, needs: Sequence[bool]
) -> tuple[Maybe, Maybe]:
    """The gradients of a product whose rows are reduced: of the sparse matrix its specified elements, of the other one dense."""
    data: Any = self._payload
    rows, columns = ops.unbind(ops._convert_indices_from_csr_to_coo(data.begins, data.within), 0)
    values = data.values
    if which.numel() or reduce not in ("sum", "mean"):
        return _of_selected(grad, self, other, which, columns, needs)
    if reduce == "mean":
        counts = ops.diff(data.begins).clamp(min=1).to(grad.dtype)
        grad = grad / ops.unsqueeze(counts, 1)
    met = ops.index_select(grad, 0, rows)
    first = second = None
    if needs[0]:
        first = ops.sum(met * conj_of(ops.index_select(other, 0, columns)), [1])
        first = values_gradient(first, self)
    if needs[1]:
        start = ops.zeros(list(other.shape), dtype=grad.dtype)
        second = ops.index_add(start, 0, columns, met * ops.unsqueeze(conj_of(values), 1))
    return first, second


def _of_selected(
    grad: Tensor, self: Tensor, other: Tensor, which: Tensor, columns: Tensor, needs: Sequence[bool]
) -> tuple[Maybe, Maybe]:
    """The gradients of the largest or smallest products: of those that were it."""
    data: Any = self._payload
    there = which < data.nnz
    at = ops.where(there, which, 0)
    grad = ops.where(there, grad, 0)
    first = second = None
    if not data.nnz:
        return (values_gradient(data.values * 0, self), ops.zeros_like(other))
    taken = ops.index_select(columns, 0, ops.reshape(at, [-1])).reshape(at.shape)
    if needs[0]:
        parts = grad * conj_of(ops.gather(other, 0, taken))
        start = ops.zeros(list(data.values.shape), dtype=grad.dtype)
        first = values_gradient(ops.index_add(start, 0, ops.reshape(at, [-1]), ops.reshape(parts, [-1])), self)
    if needs[1]:
        weights = ops.index_select(data.values, 0, ops.reshape(at, [-1])).reshape(at.shape)
        start = ops.zeros(list(other.shape), dtype=grad.dtype)
        second = ops.scatter_add(start, 0, taken, grad * conj_of(weights))
    return first, second


def sparse_sparse_first(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
    """The gradient of the first matrix of a product of two sparse ones, at its specified elements."""
    product = ops._sparse_sparse_matmul(grad, adjoint_of(other))
    return ops.sparse_mask(product, self.coalesce() if self.is_sparse else self)


def sparse_sparse_second(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
    """The gradient of the second matrix of a product of two sparse ones, at its specified elements."""
    product = ops._sparse_sparse_matmul(adjoint_of(self), grad)
    return ops.sparse_mask(product, other.coalesce() if other.is_sparse else other)


def sampled_addmm_gradient(
    grad: Tensor, self: Tensor, mat1: Tensor, mat2: Tensor, alpha: Any, beta: Any, needs: Sequence[bool]
) -> tuple[Maybe, Maybe, Maybe]:
    """The gradients of a sampled product: of the sparse summand its specified elements, of the matrices dense."""
    masked = ops.sparse_mask(grad, self)
    rows = masked.to_sparse()
    return (
        masked * beta if needs[0] else None,
        ops.mm(rows, ops.t(mat2)) * alpha if needs[1] else None,
        ops.mm(ops.t(rows), mat1) * alpha if needs[2] else None,
    )
