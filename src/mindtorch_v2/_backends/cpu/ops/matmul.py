"""Matrix products. numpy's BLAS does the work; what is here chooses shapes and layouts for which it needs no copies.

Kernels ask the fast path of their name first: both are to give the same bits, and a BLAS does so only for the same call.

Note [Integer products]: numpy multiplies integer matrices without BLAS. Where the sums are below 2**53 a product in float64 is exact.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import ndarray

from ...._dispatch import native

F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)
_EXACT = 2**53


def product(a: ndarray, b: ndarray) -> ndarray:
    """`a @ b` for any numeric dtype, see Note [Integer products]."""
    if a.dtype.kind in "iu" and a.size * b.size > 4096:
        inner = a.shape[-1]
        if inner and inner * _largest(a) * _largest(b) < _EXACT:
            exact = np.matmul(a.astype(F64), b.astype(F64)).astype(np.int64)
            return exact.astype(a.dtype, copy=False)  # which wraps around, as floats that are too large do not
    return np.matmul(a, b)


def _largest(array: ndarray) -> int:
    return max(abs(int(array.max())), abs(int(array.min())))


@native.kernel
def matmul(self: ndarray, other: ndarray) -> ndarray:
    """All of `matmul`'s cases; a matrix on the right of a batch makes one product of it."""
    made = fast_matmul(self, other)
    if made is not None:
        return made
    if self.ndim > 2 and other.ndim == 2:
        rows = self.reshape(math.prod(self.shape[:-1]), self.shape[-1])
        return product(rows, other).reshape(*self.shape[:-1], other.shape[-1])
    return np.asarray(product(self, other))


@native.kernel
def fast_matmul(self: ndarray, other: ndarray) -> ndarray | None:
    """`matmul` of float arrays of at least two dimensions without broadcasting of batches."""
    dtype = self.dtype
    if dtype is not other.dtype or (dtype is not F32 and dtype is not F64):
        return None
    left, right = self.ndim, other.ndim
    try:
        if right == 2:
            if left == 2:
                return self.dot(other)
            if left > 2 and self.flags.c_contiguous and self.size:
                shape = self.shape
                return self.reshape(-1, shape[-1]).dot(other).reshape(*shape[:-1], other.shape[1])
        elif left == right and left > 2 and self.shape[:-2] == other.shape[:-2]:
            if not any(other.strides[:-2]) and self.flags.c_contiguous and self.size:  # one matrix for all
                shape, matrix = self.shape, other[(0,) * (right - 2)]
                return self.reshape(-1, shape[-1]).dot(matrix).reshape(*shape[:-1], matrix.shape[1])
            return np.multiply(self, other) if self.shape[-1] == other.shape[-2] == 1 else np.matmul(self, other)
    except ValueError:
        pass
    return None


@native.kernel
def mm(self: ndarray, mat2: ndarray) -> ndarray:
    made = fast_mm(self, mat2)
    return product(self, mat2) if made is None else made


@native.kernel
def fast_mm(self: ndarray, mat2: ndarray) -> ndarray | None:
    """`mm` of two float matrices."""
    dtype = self.dtype
    if dtype is not mat2.dtype or (dtype is not F32 and dtype is not F64) or self.ndim != 2 or mat2.ndim != 2:
        return None
    try:
        return self.dot(mat2)
    except ValueError:
        return None


@native.kernel
def bmm(self: ndarray, mat2: ndarray) -> ndarray:
    made = fast_bmm(self, mat2)
    return product(self, mat2) if made is None else made


@native.kernel
def fast_bmm(self: ndarray, mat2: ndarray) -> ndarray | None:
    """`bmm` of two float batches of one length."""
    dtype = self.dtype
    if dtype is not mat2.dtype or (dtype is not F32 and dtype is not F64) or self.ndim != 3 or mat2.ndim != 3:
        return None
    if self.shape[0] != mat2.shape[0] or self.shape[2] != mat2.shape[1]:
        return None
    return np.matmul(self, mat2)


@native.kernel
def linear(input: ndarray, weight: ndarray, bias: ndarray | None = None) -> ndarray:
    made = fast_linear(input, weight, bias)
    if made is not None:
        return made
    result = matmul(input, weight.T)
    if bias is not None:
        result = _add_in_place(result, bias)
    return result


def _add_in_place(result: ndarray, other: ndarray) -> ndarray:
    if not result.ndim or result.dtype != other.dtype:
        return np.asarray(result + other)
    result += other
    return result


@native.kernel
def weight_int8pack_mm(self: ndarray, mat2: ndarray, scales: ndarray) -> ndarray:
    """The bytes become float32 some rows at a time, so that they never take more memory than a part of the weight."""
    rows = np.ascontiguousarray(self, dtype=F32)
    made = np.empty((rows.shape[0], mat2.shape[0]), F32)
    step = max(1, _BYTES_AT_ONCE // max(1, mat2.shape[1]))
    for first in range(0, mat2.shape[0], step):
        np.matmul(rows, mat2[first : first + step].astype(F32).T, out=made[:, first : first + step])
    made *= scales.astype(F32)
    return made.astype(self.dtype, copy=False)


_BYTES_AT_ONCE = 1 << 18


@native.kernel
def fast_linear(input: ndarray, weight: ndarray, bias: ndarray | None = None) -> ndarray | None:
    """`linear` of contiguous float arrays with at least two dimensions."""
    dtype = input.dtype
    if dtype is not weight.dtype or (dtype is not F32 and dtype is not F64) or weight.ndim != 2:
        return None
    if bias is not None and (bias.dtype is not dtype or bias.shape != weight.shape[:1]):
        return None
    try:
        if input.ndim == 2:
            result = input.dot(weight.T)
            if bias is not None:
                result += bias
            return result
        if input.ndim < 2 or not input.flags.c_contiguous or not input.size:
            return None
        shape = input.shape
        result = input.reshape(-1, shape[-1]).dot(weight.T)
    except ValueError:
        return None
    if bias is not None:
        result += bias
    return result.reshape(*shape[:-1], weight.shape[0])


# ----------------------------------------------------------------------------------------------- products with an added matrix


def _blend(self: ndarray, found: ndarray, beta: Any, alpha: Any) -> ndarray:
    """beta * self + alpha * found; beta 0 ignores self, even where it is not finite. Integers wrap around."""
    if alpha != 1:
        found = found * np.asarray(alpha).astype(found.dtype)
    if beta == 0:
        return np.asarray(found)
    if beta != 1:
        self = self * np.asarray(beta).astype(found.dtype)
    return _add_in_place(np.asarray(found), self) if found.base is None else np.asarray(found + self)


@native.kernel
def addmm(self: ndarray, mat1: ndarray, mat2: ndarray, beta: Any = 1, alpha: Any = 1) -> ndarray:
    made = fast_addmm(self, mat1, mat2, beta, alpha)
    return _blend(self, product(mat1, mat2), beta, alpha) if made is None else made


@native.kernel
def fast_addmm(self: ndarray, mat1: ndarray, mat2: ndarray, beta: Any = 1, alpha: Any = 1) -> ndarray | None:
    """`addmm` of a float bias vector and two float matrices."""
    dtype = mat1.dtype
    if beta.__class__ is not int or beta != 1 or alpha.__class__ is not int or alpha != 1 or self.ndim != 1:
        return None
    if dtype is not mat2.dtype or dtype is not self.dtype or (dtype is not F32 and dtype is not F64):
        return None
    if mat1.ndim != 2 or mat2.ndim != 2 or self.shape != mat2.shape[1:]:
        return None
    try:
        result = mat1.dot(mat2)
    except ValueError:
        return None
    result += self
    return result


@native.kernel
def baddbmm(self: ndarray, batch1: ndarray, batch2: ndarray, beta: Any = 1, alpha: Any = 1) -> ndarray:
    return _blend(self, product(batch1, batch2), beta, alpha)


def addbmm(self: ndarray, batch1: ndarray, batch2: ndarray, beta: Any = 1, alpha: Any = 1) -> ndarray:
    batch, rows, inner = batch1.shape
    left = batch1.swapaxes(0, 1).reshape(rows, batch * inner)
    return _blend(self, product(left, batch2.reshape(batch * inner, batch2.shape[2])), beta, alpha)


@native.kernel
def addmv(self: ndarray, mat: ndarray, vec: ndarray, beta: Any = 1, alpha: Any = 1) -> ndarray:
    return _blend(self, product(mat, vec), beta, alpha)


def addr(self: ndarray, vec1: ndarray, vec2: ndarray, beta: Any = 1, alpha: Any = 1) -> ndarray:
    return _blend(self, np.multiply.outer(vec1, vec2), beta, alpha)


@native.kernel
def mv(self: ndarray, vec: ndarray) -> ndarray:
    return product(self, vec)


@native.kernel
def dot(self: ndarray, tensor: ndarray) -> ndarray:
    return np.asarray(np.dot(self, tensor))


def vdot(self: ndarray, other: ndarray) -> ndarray:
    return np.asarray(np.vdot(self, other))


@native.kernel
def outer(self: ndarray, vec2: ndarray, out: ndarray | None = None) -> ndarray:
    return np.multiply(self[:, None], vec2, out)


def linalg_cross(self: ndarray, other: ndarray, dim: int = -1) -> ndarray:
    shape = self.shape if self.shape == other.shape else np.broadcast_shapes(self.shape, other.shape)
    a, b = (x if x.shape == shape else np.broadcast_to(x, shape) for x in (self, other))
    result = np.empty(shape, np.result_type(a, b))
    front = (slice(None),) * (dim % len(shape))
    x, y, z = ((*front, i, ...) for i in range(3))
    for here, after, before in ((x, y, z), (y, z, x), (z, x, y)):
        part = np.multiply(a[after], b[before], out=result[here])
        part -= a[before] * b[after]
    return result


# ------------------------------------------------------------------------------------------------------------------- distances


_FEW_ROWS = 25  # whose distances PyTorch computes from differences


@native.kernel
def cdist_forward(x1: ndarray, x2: ndarray, p: float, compute_mode: int | None = None) -> ndarray:
    """Distances of all pairs of rows. Euclidean ones of many rows go through a product unless `compute_mode` is 2."""
    if p == 2 and compute_mode != 2 and (compute_mode == 1 or max(x1.shape[-2], x2.shape[-2]) > _FEW_ROWS):
        squares = np.square(x1).sum(-1)[..., :, None] + np.square(x2).sum(-1)[..., None, :]
        squares -= 2 * np.matmul(x1, x2.swapaxes(-1, -2))
        return np.sqrt(np.maximum(squares, 0))
    difference = np.abs(x1[..., :, None, :] - x2[..., None, :, :])
    if p == 0:
        return (difference != 0).sum(-1).astype(x1.dtype)
    if p == 1:
        return difference.sum(-1)
    if p == 2:
        return np.sqrt(np.square(difference).sum(-1))
    if np.isinf(p):
        return difference.max(-1, initial=0)
    return (difference**p).sum(-1) ** (1 / p)


@native.kernel
def cdist_backward(grad: ndarray, x1: ndarray, x2: ndarray, p: float, cdist: ndarray) -> ndarray:
    """The gradient of x1. That of Euclidean distances of many rows goes through a product, as they do."""
    if p == 2 and max(x1.shape[-2], x2.shape[-2]) > _FEW_ROWS:
        ratio = np.divide(grad, cdist, out=np.zeros_like(grad), where=cdist != 0)
        return x1 * ratio.sum(-1, keepdims=True) - np.matmul(ratio, x2)
    difference = x1[..., :, None, :] - x2[..., None, :, :]
    distance = cdist[..., None]
    outer_grad = grad[..., None]
    if p == 0:
        return np.zeros_like(x1)
    if p == 1:
        return (outer_grad * np.sign(difference)).sum(-2)
    if np.isinf(p):
        return (outer_grad * np.sign(difference) * (np.abs(difference) == distance)).sum(-2)
    safe = np.where(distance == 0, 1, distance)
    slope = difference if p == 2 else np.sign(difference) * np.abs(np.where(difference == 0, 1, difference)) ** (p - 1)
    scaled = slope / (safe if p == 2 else safe ** (p - 1))
    return (outer_grad * np.where(distance == 0, 0, scaled)).sum(-2)


@native.kernel
def pdist_forward(self: ndarray, p: float) -> ndarray:
    """The distances of all pairs of rows, row by row; from differences, so that those of equal rows are zero."""
    rows = [cdist_forward(self[i : i + 1], self[i + 1 :], p, 2)[0] for i in range(len(self) - 1)]
    return np.concatenate(rows) if rows else np.empty(0, self.dtype)


@native.kernel
def pdist_backward(grad: ndarray, self: ndarray, p: float, pdist: ndarray) -> ndarray:
    """Both rows of a pair get their share."""
    result = np.zeros_like(self)
    if not self.shape[1]:
        return result
    start = 0
    for i in range(len(self) - 1):
        here = slice(start, start + len(self) - 1 - i)
        start = here.stop
        first, rest, share, length = self[i : i + 1], self[i + 1 :], grad[here], pdist[here]
        result[i] += cdist_backward(share[None], first, rest, p, length[None])[0]
        result[i + 1 :] += cdist_backward(share[:, None], rest, first, p, length[:, None])
    return result
