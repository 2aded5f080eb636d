"""Products of matrices of which one is sparse.

Note [Products by rows]
A product with a dense matrix gathers the rows that specified elements multiply, and sums them by the row of the result (`pieces.summed`). Products of two sparse matrices
go row by row too, by the elements of the second one that each element of the first one meets.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from ...._dispatch import ops
from ...._dispatch.sparse import unavailable
from ...._dtype import float32, int64
from ...._tensor import Tensor, wrap
from . import pieces
from .pieces import array_of, as_coo, as_csr, coalesced, coo, csr, is_compressed, is_coo, is_csr, with_values


def _narrow(kind: Any) -> bool:
    return kind.itemsize < 4 and kind.is_floating_point


def _arrays(self: Tensor) -> tuple[ndarray, ndarray, ndarray]:
    """Rows, columns and values of a matrix, sorted by rows."""
    values = pieces.values_of(self)
    if _narrow(self._dtype):
        values = values.astype(np.float32)
    if is_csr(self):
        if self._payload.batch:
            raise NotImplementedError("products of batches of sparse csr matrices are not there")
        rows, columns = pieces.places_of(self)
        pieces.refuse_bounds(np.stack([rows, columns]), self._payload.shape)
        return rows, columns, values
    self = as_coo(self)
    indices = pieces.indices_of(self)
    pieces.refuse_bounds(indices, self._payload.shape)
    rows, columns = indices
    if not self._payload.coalesced and (rows[1:] < rows[:-1]).any():
        order = np.argsort(rows, kind="stable")
        rows, columns, values = rows[order], columns[order], values[order]
    return rows, columns, values


def times_dense(self: Tensor, dense: ndarray) -> ndarray:
    """A sparse matrix times the rows of a dense array. See Note [Products by rows]."""
    rows, columns, values = _arrays(self)
    if dense.dtype.itemsize < 4 and dense.dtype.kind not in "iub":
        dense = dense.astype(np.float32)
    kind = np.result_type(values, dense)
    made = np.zeros((self._payload.shape[0], *dense.shape[1:]), kind)
    if not len(rows) or not made.size:
        return made
    starts = np.flatnonzero(np.r_[True, rows[1:] != rows[:-1]])
    if dense.ndim == 1:
        made[rows[starts]] = np.add.reduceat(dense[columns] * values, starts)
    else:
        factors = values[:, None]
        made[rows[starts]] = pieces.summed(lambda at: dense[columns[at]] * factors[at], starts, len(rows))
    return made


def _check_product(self: Tensor, other: Tensor, name: str = "mm") -> None:
    if self.dim() != 2 or other.dim() != 2:
        which, found = ("self", self) if self.dim() != 2 else ("mat2", other)
        raise RuntimeError(f"{name}: Expected {which} to be a matrix, got {found.dim()}D tensor")
    if self.shape[1] != other.shape[0]:
        raise RuntimeError(
            f"addmm: Argument #3 (dense): Expected dim 0 size {self.shape[1]}, got {other.shape[0]}"
            if not pieces.is_sparse(other)
            else f"mat1 and mat2 shapes cannot be multiplied ({self.shape[0]}x{self.shape[1]} and {other.shape[0]}x{other.shape[1]})"
        )
    for tensor in (self, other):
        if is_coo(tensor) and tensor._payload.sparse_dim != 2:
            raise RuntimeError(
                f"{name}: Expected a matrix with two sparse dimensions, got {tensor._payload.sparse_dim}"
            )
    _check_dtypes(self, other)


def _check_dtypes(self: Tensor, other: Tensor) -> None:
    if self._dtype is not other._dtype:
        raise RuntimeError(f"expected scalar type {self._dtype.cpp} but found {other._dtype.cpp}")


def mm(self: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices; sparse only where both are."""
    if pieces.is_sparse(self) and pieces.is_sparse(mat2):
        return sparse_sparse(self, mat2)
    _check_product(self, mat2)
    if self.device.type == "meta":
        return ops.empty([self.shape[0], mat2.shape[1]], dtype=self._dtype, device=self.device)
    if not pieces.is_sparse(mat2):
        return pieces.of_array(times_dense(self, array_of(mat2)), mat2)
    made = times_dense(_transposed(mat2), array_of(self).T)
    return pieces.of_array(made.T, self)


def _transposed(self: Tensor) -> Tensor:
    self = as_coo(self)
    data = self._payload
    return coo(data.shape[::-1], ops.flip(data.indices, [0]), data.values, False)


def sparse_sparse(self: Tensor, other: Tensor) -> Tensor:
    """The product of two sparse matrices: of rows if the first one is compressed."""
    if self._dtype is not other._dtype:
        raise RuntimeError(f"mat1 dtype {self._dtype.cpp} does not match mat2 dtype {other._dtype.cpp}")
    _check_product(self, other)
    left, right = (coalesced(as_coo(t)) if not is_csr(t) else t for t in (self, other))
    rows, middle, values = _arrays(left)
    _, columns, others = _arrays(right)
    starts = array_of(as_csr(right)._payload.crow).astype(np.int64)
    counts = np.diff(starts)[middle]
    total = int(counts.sum())
    begin = np.repeat(starts[middle], counts)
    within = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    met = begin + within
    products = np.repeat(values, counts) * others[met]
    shape = (self.shape[0], other.shape[1])
    places, sums = pieces.merged(np.repeat(rows, counts) * shape[1] + columns[met], products)
    made = coo(
        shape, pieces.integers(pieces.coordinates(places, shape)), pieces.of_array(sums, self._payload.values), True
    )
    return as_csr(made) if is_compressed(self) else made


_REDUCTIONS = {"sum": "sum", "mean": "mean", "max": "amax", "amax": "amax", "min": "amin", "amin": "amin"}


def mm_reduce(self: Tensor, other: Tensor, reduce: str) -> tuple[Tensor, Tensor]:
    """A matrix of rows times a dense one, with what a row meets reduced; and of amax and amin, which element it was.

    Rows without elements give zeros, and the number of all elements.
    """
    if not is_csr(self):
        if not is_compressed(self):
            raise unavailable("_sparse_mm_reduce_impl", "coo" if is_coo(self) else "strided")
        raise RuntimeError(f"sparse_mm_reduce: expect self to be SparseCsr, got {pieces.layout_name(self)}")
    if reduce not in _REDUCTIONS:
        known = reduce == "prod"
        raise RuntimeError(
            "sparse_mm_reduce: reduce type of prod has not been enabled."
            if known
            else f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    if pieces.is_sparse(other):
        raise RuntimeError(f"sparse_mm_reduce: expect other to be Strided, got {pieces.layout_name(other)}")
    _check_product(self, other)
    how = _REDUCTIONS[reduce]
    rows, columns, values = _arrays(self)
    dense = array_of(other)
    none = wrap(np.empty(0, np.int64), int64)
    counts = np.bincount(rows, minlength=self._payload.shape[0])
    if how in ("sum", "mean"):
        made = times_dense(self, dense)
        if how == "mean":
            made /= np.maximum(counts, 1)[:, None].astype(made.dtype)
        return pieces.of_array(made, other), none
    if _narrow(other._dtype):
        dense = dense.astype(np.float32)
    made = np.zeros((self._payload.shape[0], dense.shape[1]), np.result_type(values, dense))
    which = np.full(made.shape, len(rows), np.int64)
    if not len(rows) or not made.size:
        return pieces.of_array(made, other), wrap(which, int64)
    met = dense[columns] * values[:, None]
    starts = np.flatnonzero(np.r_[True, rows[1:] != rows[:-1]])
    there = rows[starts]
    made[there] = (np.maximum if how == "amax" else np.minimum).reduceat(met, starts)
    # The first of those that are the largest: others are none of them.
    best = made[rows]
    same = (met == best) | (np.isnan(met) & np.isnan(best))
    numbers = np.where(same, np.arange(len(rows))[:, None], len(rows))
    which[there] = np.minimum.reduceat(numbers, starts)
    return pieces.of_array(made, other), wrap(which, int64)


def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * self + alpha * mat1 @ mat2; sparse where all of them are."""
    _check_product(mat1, mat2, "addmm")
    product = mm(mat1, mat2)
    if is_coo(self) or (pieces.is_sparse(self) and not pieces.is_sparse(product)):
        raise RuntimeError(
            f"addmm_sparse_dense: expected strided result tensor, got tensor with layout {pieces.layout_name(self)}"
        )
    if _narrow(product._dtype) and not pieces.is_sparse(product) and alpha == 1 and beta == 0:
        return product
    scaled = product if alpha == 1 else product * alpha
    if beta == 0:
        return scaled if pieces.is_sparse(scaled) else ops.expand(scaled, [mat1.shape[0], mat2.shape[1]])
    first = self if beta == 1 else self * beta
    return ops.add(first, scaled)


def mv(self: Tensor, vec: Tensor) -> Tensor:
    """A sparse matrix times a dense vector."""
    if self.dim() != 2 or vec.dim() != 1:
        raise RuntimeError(
            f"mv: two tensor dim should be 2 and 1, but got SparseTensor Dim: {self.dim()}Tensor Dim: {vec.dim()}"
        )
    if pieces.is_sparse(vec) or not pieces.is_sparse(self):
        raise RuntimeError("mv: a sparse vector is not supported")
    if self.shape[1] != vec.shape[0]:
        raise RuntimeError("mv: expected self.size(-1) == vec.size(-1)")
    _check_dtypes(self, vec)
    return pieces.of_array(times_dense(self, array_of(vec)), vec)


def addmv(self: Tensor, mat: Tensor, vec: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * self + alpha * mat @ vec with a sparse matrix."""
    product = mv(mat, vec)
    scaled = product if alpha == 1 else product * alpha
    return scaled if beta == 0 else ops.add(self if beta == 1 else self * beta, scaled)


def matmul(self: Tensor, other: Tensor) -> Tensor:
    """Matrices and vectors of which one is sparse."""
    if self.dim() == 2 and other.dim() == 2:
        return mm(self, other)
    if self.dim() == 2 and other.dim() > 2 and not pieces.is_sparse(other):
        return _times_batch(self, other)
    if self.dim() > 2 and other.dim() == 2 and not pieces.is_sparse(self):
        made = mm(ops.reshape(self, [-1, self.shape[-1]]), other)
        return ops.reshape(made, [*self.shape[:-1], other.shape[-1]])
    if self.dim() == 2 and other.dim() == 1:
        return mv(self, other)
    if self.dim() == 1 and other.dim() == 2 and pieces.is_sparse(other) and not pieces.is_sparse(self):
        return mv(_transposed(other), self)
    if is_coo(self) and self.dim() == 3 and other.dim() == 3:
        return bmm(self, other)
    raise RuntimeError(
        f"matmul: products of {self.dim()}D {self.layout} and {other.dim()}D {other.layout} tensors are not there"
    )


def _times_batch(self: Tensor, batch: Tensor) -> Tensor:
    """A sparse matrix times each matrix of a batch of dense ones, whose columns stand side by side for it."""
    columns = ops.movedim(batch, -2, 0)
    made = mm(self, ops.reshape(columns, [columns.shape[0], -1]))
    return ops.movedim(ops.reshape(made, [self.shape[0], *columns.shape[1:]]), 0, -2).contiguous()


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias of which one is sparse."""
    flipped = _transposed(weight) if pieces.is_sparse(weight) else ops.t(weight)
    made = matmul(input, flipped)
    return made if bias is None else ops.add(made, bias)


def bmm(self: Tensor, mat2: Tensor) -> Tensor:
    """Products of a batch of sparse matrices with dense ones."""
    if pieces.is_sparse(mat2):
        raise NotImplementedError("bmm: Tensor 'mat2' must be dense")
    if is_compressed(self):
        found = [mm(m, wrap(d, mat2._dtype)) for m, d in zip(pieces.batches(self), array_of(mat2))]
        return ops.stack(found)
    if self.dim() != 3 or mat2.dim() != 3:
        raise RuntimeError("bmm: Tensors must be 3D")
    if self.shape[0] != mat2.shape[0] or self.shape[2] != mat2.shape[1]:
        raise RuntimeError("bmm: 'self.size(0)' and 'mat2.size(0)' must match, and 'self.size(2)' and 'mat2.size(1)'")
    b, n, m = self._payload.shape
    indices = pieces.indices_of(self)
    pieces.refuse_bounds(indices, self._payload.shape)
    joined = np.stack([indices[0] * n + indices[1], indices[0] * m + indices[2]])
    wide = coo((b * n, b * m), pieces.integers(joined), self._payload.values, self._payload.coalesced)
    dense = array_of(mat2)
    made = times_dense(wide, dense.reshape(b * m, dense.shape[2]))
    return pieces.of_array(made.reshape(b, n, dense.shape[2]), mat2)


def sspaddmm(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * self + alpha * mat1 @ mat2 of a sparse self and mat1: the elements of self, and behind them all of the product's rows that have some."""
    _check_product(mat1, mat2, "sspaddmm")
    rows, product = _rows_of_product(mat1, mat2)
    width = mat2.shape[1]
    at = np.stack([np.repeat(rows, width), np.tile(np.arange(width), len(rows))])
    indices = ops.cat([self._payload.indices, pieces.integers(at)], 1)
    values = ops.cat([self._payload.values * beta, pieces.of_array(product.reshape(-1), mat2) * alpha])
    return coo((mat1.shape[0], width), indices, values, False)


def _rows_of_product(mat1: Tensor, mat2: Tensor) -> tuple[ndarray, ndarray]:
    """The rows of mat1 that have specified elements, and these rows of the product."""
    rows = np.unique(_arrays(mat1)[0])
    return rows, times_dense(mat1, array_of(mat2))[rows]


def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse matrix with a dense one, as a tensor of the rows that are not zero."""
    _check_product(mat1, mat2, "hspmm")
    rows, product = _rows_of_product(mat1, mat2)
    return coo((mat1.shape[0], mat2.shape[1]), pieces.integers(rows[None]), pieces.of_array(product, mat2), True)


def sampled_addmm(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * self + alpha * (mat1 @ mat2), where self has specified elements."""
    if not is_csr(self):
        raise RuntimeError(
            f"sampled_addmm: Expected self to have sparse csr layout, but got {pieces.layout_name(self)}"
        )
    if pieces.is_sparse(mat1) or pieces.is_sparse(mat2):
        raise RuntimeError("sampled_addmm: Expected mat1 and mat2 to have strided layout")
    rows, columns = pieces.places_of(self)
    pieces.refuse_bounds(np.stack([rows, columns]), self._payload.shape)
    a, b = array_of(mat1), array_of(mat2)
    if _narrow(mat1._dtype):
        a, b = a.astype(float32.np), b.astype(float32.np)
    sums = np.einsum("nk,nk->n", a[rows], b.T[columns])
    values = ops.add(self._payload.values * beta, pieces.of_array(sums, mat1) * alpha)
    return with_values(self, values)


__all__ = [
    "addmm",
    "bmm",
    "hspmm",
    "csr",
    "matmul",
    "mm",
    "mm_reduce",
    "mv",
    "sampled_addmm",
    "sparse_sparse",
    "sspaddmm",
    "times_dense",
]
