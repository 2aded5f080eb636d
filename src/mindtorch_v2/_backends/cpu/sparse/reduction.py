"""Sums, norms and softmax of sparse tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...._dispatch import ops
from ...._dtype import int64
from ...._tensor import Tensor
from . import pieces
from .pieces import array_of, as_coo, coalesced, coo, is_compressed, is_csr


def sum(self: Tensor, dtype: Any = None) -> Tensor:
    """The sum of all specified elements, dense."""
    return ops.sum(self._payload.values, dtype=dtype)


def sum_dim(self: Tensor, dim: Any, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """Sums over dimensions; sparse while a sparse dimension is left."""
    if is_csr(self):
        return _sum_rows(self, dim, keepdim, dtype)
    dims = _dims(self, dim)
    if dtype is None and self._dtype.category < 2:
        dtype = int64
    made = sparse_sum(self, dims, dtype) if dims else self
    if keepdim:
        for d in sorted(dims):
            made = ops.unsqueeze(made, d)
    return made


def _dims(self: Tensor, dim: Any) -> tuple[int, ...]:
    ndim = max(self.dim(), 1)
    given = range(self.dim()) if dim is None or dim == () else (dim,) if isinstance(dim, int) else dim
    found = []
    for d in given:
        if not -ndim <= d < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {d})")
        if d % ndim in found:
            raise RuntimeError(f"dim {d % ndim} appears multiple times in the list of dims")
        found.append(d % ndim)
    return tuple(found)


def sparse_sum(self: Tensor, dim: Sequence[int], dtype: Any = None) -> Tensor:
    """`torch.sparse.sum`: dense when all sparse dimensions are summed over."""
    self = coalesced(self)
    data = self._payload
    dims = _dims(self, dim)
    if not dims:
        raise RuntimeError("_sparse_sum: dims must not be empty")
    over = {d for d in dims if d < data.sparse_dim}
    inner = [d - data.sparse_dim + 1 for d in dims if d >= data.sparse_dim]
    values = ops.sum(data.values, inner, dtype=dtype) if inner else data.values
    if dtype is not None:
        values = values.to(dtype)
    if len(over) == data.sparse_dim:
        return ops.sum(values, [0])
    shape = [n for d, n in enumerate(data.shape) if d not in dims]
    if not over:
        return coo(shape, data.indices, values, data.coalesced)
    kept = [d for d in range(data.sparse_dim) if d not in over]
    indices = pieces.integers(pieces.indices_of(self)[kept])
    made = coo(shape, indices, values, False)
    return coalesced(made)


def _sum_rows(self: Tensor, dim: Any, keepdim: bool, dtype: Any) -> Tensor:
    dims = _dims(self, dim)
    if not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    if self._payload.batch or self._payload.values.dim() > 1:
        raise NotImplementedError("sum: sums of batches of sparse csr matrices are not there")
    made = sum_dim(as_coo(self), dims, False, dtype)
    if pieces.is_sparse(made):
        for d in sorted(dims):
            made = ops.unsqueeze(made, d)
        return pieces.as_csr(coalesced(made))
    return ops._to_sparse_csr(ops.reshape(made, [1, 1]))


def any(self: Tensor) -> Tensor:
    """Whether a specified element is not zero."""
    return ops.any(self._payload.values)


_FULL = "norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain all dimensions of the input"


def vector_norm(self: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The norm of all elements."""
    if dim is not None and dim != () and len(_dims(self, dim)) != self.dim():
        raise RuntimeError(_FULL)
    if keepdim:
        raise RuntimeError("norm_sparse currently does not support keepdim=True")
    self = coalesced(self) if not is_compressed(self) else self
    if dtype is not None:
        if ord == 2:
            raise ValueError("dtype argument is not supported in frobenius norm")
        raise RuntimeError("norm_sparse currently does not support 'dtype' argument")
    if self._dtype.category < 2:
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {self._dtype.cpp} instead."
        )
    values = ops.reshape(self._payload.values, [-1])
    return ops.linalg_vector_norm(values, ord)


def norm(self: Tensor, p: Any = 2) -> Tensor:
    """The norm of all elements."""
    return vector_norm(self, 2 if p is None else p)


def norm_dtype(self: Tensor, p: Any, dtype: Any) -> Tensor:
    """`vector_norm`."""
    return vector_norm(self, 2 if p is None else p, dtype=dtype)


def norm_dim(self: Tensor, p: Any, dim: Any, keepdim: bool = False) -> Tensor:
    """The norm of all elements. RuntimeError for some dimensions only."""
    return vector_norm(self, 2 if p is None else p, dim, keepdim)


def norm_dim_dtype(self: Tensor, p: Any, dim: Any, keepdim: bool, dtype: Any) -> Tensor:
    """The norm of all elements. RuntimeError for some dimensions only."""
    norm_dim(self, p, dim, keepdim)
    return norm_dtype(self, p, dtype)


# Softmax, of the specified elements


def _pooled(self: Tensor, dim: int) -> np.ndarray:
    """For each specified element of a coalesced tensor, the number of the line along a sparse dimension that it is in."""
    indices = pieces.indices_of(self)
    others = [d for d in range(len(indices)) if d != dim]
    if not others:
        return np.zeros(indices.shape[1], np.int64)
    shape = [self._payload.shape[d] for d in others]
    return np.unique(pieces.flat_of(indices[others], shape), return_inverse=True)[1]


def _softmax(self: Tensor, dim: int, half_to_float: bool, log: bool) -> Tensor:
    if half_to_float:
        raise RuntimeError(f"{'log_' if log else ''}softmax with half to float conversion is not supported on CPU")
    self = coalesced(as_coo(self))
    data = self._payload
    dim = _dims(self, dim)[0]
    if dim >= data.sparse_dim:
        function = ops.log_softmax if log else ops.softmax
        return coo(data.shape, data.indices, function(data.values, dim - data.sparse_dim + 1), True)
    values = pieces.values_of(self)
    if values.dtype.itemsize < 4:
        values = values.astype(np.float32)
    pools = _pooled(self, dim)
    count = int(pools.max()) + 1 if len(pools) else 0
    most = np.full((count, *values.shape[1:]), -np.inf, values.dtype)
    np.maximum.at(most, pools, values)
    finite = np.where(np.isfinite(most), most, 0)
    shifted = values - finite[pools]
    sums = np.zeros_like(most)
    powers = np.exp(shifted)
    np.add.at(sums, pools, powers)
    made = shifted - np.log(sums)[pools] if log else powers / sums[pools]
    return coo(data.shape, data.indices, pieces.of_array(made, data.values), True)


def softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """Softmax over the specified elements of a dimension."""
    return _softmax(self, dim, half_to_float, False)


def log_softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """The logarithm of softmax over the specified elements of a dimension."""
    return _softmax(self, dim, half_to_float, True)


def _softmax_backward(grad_output: Tensor, output: Tensor, dim: int, log: bool) -> Tensor:
    output = coalesced(output)
    data = output._payload
    dim = _dims(output, dim)[0]
    grad = _matched(coalesced(as_coo(grad_output)), output)
    weights = ops.exp(data.values) if log else data.values
    if dim >= data.sparse_dim:
        inner = ops.sum(grad if log else grad * weights, [dim - data.sparse_dim + 1], True)
    else:
        pools = pieces.integers(_pooled(output, dim))
        count = int(array_of(pools).max()) + 1 if data.nnz else 0
        sums = ops.zeros([count, *data.values.shape[1:]], dtype=data.values._dtype)
        sums = ops.index_add(sums, 0, pools, grad if log else grad * weights)
        inner = ops.index_select(sums, 0, pools)
    made = grad - weights * inner if log else weights * (grad - inner)
    return coo(data.shape, data.indices, made, True)


def _matched(grad: Tensor, output: Tensor) -> Tensor:
    """The values of a gradient where `output` has specified elements; zeros where the gradient has none."""
    if grad._payload.nnz == output._payload.nnz and np.array_equal(pieces.indices_of(grad), pieces.indices_of(output)):
        return grad._payload.values
    return pieces.of_array(pieces.values_at(grad, output), grad._payload.values)


def softmax_backward(grad_output: Tensor, output: Tensor, dim: int, self: Tensor) -> Tensor:
    """The gradient of softmax."""
    return _softmax_backward(grad_output, output, dim, False)


def log_softmax_backward(grad_output: Tensor, output: Tensor, dim: int, self: Tensor) -> Tensor:
    """The gradient of log_softmax."""
    return _softmax_backward(grad_output, output, dim, True)


def sum_backward(grad: Tensor, self: Tensor, dim: Sequence[int]) -> Tensor:
    """The gradient of `sparse_sum`: that of the sum, at each specified element."""
    self = coalesced(self)
    data = self._payload
    dims = _dims(self, dim)
    indices = pieces.indices_of(self)
    over = [d for d in dims if d < data.sparse_dim]
    kept = [d for d in range(data.sparse_dim) if d not in over]
    if pieces.is_sparse(grad):
        found = coalesced(grad)
        want = pieces.flat_of(indices[kept], [data.shape[d] for d in kept])
        have = pieces.flat(found)
        at = np.searchsorted(have, want)
        at[at == len(have)] = 0
        present = have[at] == want if len(have) else np.zeros(len(want), bool)
        source = pieces.values_of(found)
        given = np.zeros((len(want), *source.shape[1:]), source.dtype)
        given[present] = source[at[present]]
        values = pieces.of_array(given, grad)
    elif kept:
        array = array_of(grad)
        values = pieces.of_array(array[tuple(indices[kept])], grad)
    else:
        values = ops.expand(grad, [data.nnz, *grad.shape])
    for d in sorted(d for d in dims if d >= data.sparse_dim):
        values = ops.unsqueeze(values, d - data.sparse_dim + 1)
    values = ops.contiguous(ops.expand(values, data.values.shape))
    return coo(data.shape, data.indices, values.to(self._dtype), data.coalesced)
