"""Decompositions of matrices, and what stands on them.

CANN's decompositions end in a failure of the stream where PyTorch's say which matrix was the wrong one. So what may fail is looked at first, and such
matrices go to the CPU, which words the error.
"""

from __future__ import annotations

import math
from typing import Any

from ...._dispatch import ops
from ...._dtype import DTYPES
from ...._generated.npu.functions import aclnnInverse, aclnnLinalgQr, aclnnSlogdet, aclnnSvd, aclnnTriangularSolve
from ...._tensor import wrap
from ..aclnn import launch
from ..creation import empty

_MODES = {"reduced": 0, "complete": 1, "r": 2}
_int32 = DTYPES["int32"]


def _adjoint(x: Any) -> Any:
    return ops.conj_physical(ops.transpose(x, -2, -1))


def _eye(like: Any, n: int, shape: tuple) -> Any:
    ones = ops.ones((n,), dtype=like.dtype, device=like.device)
    return ops.expand(ops.diag_embed(ones), (*shape, n, n))  # aclnnEye lacks dtypes


def _no_information(x: Any) -> Any:
    return ops.zeros(tuple(x.shape[:-2]), dtype=_int32, device=x.device)


def _is_singular(x: Any) -> bool:
    """Whether any matrix is, or has no finite determinant; the host waits for the answer."""
    sign, logarithm = ops.linalg_slogdet(x)
    return not bool(ops.all(ops.logical_and(ops.ne(ops.abs(sign), 0), ops.isfinite(logarithm))).item())


def qr(out: Any, self: Any, mode: str) -> Any:
    if not self.numel():
        return NotImplemented
    launch(aclnnLinalgQr, self._payload, _MODES[mode], out[0], out[1])
    return None


def svd(out: Any, self: Any, full_matrices: bool, compute_uv: bool, driver: str | None) -> Any:
    """aclnn gives the right singular vectors as columns; Vh has their conjugates as rows."""
    if not self.numel():
        return NotImplemented
    rows, columns = self.shape[-2:]
    count = columns if full_matrices else min(rows, columns)
    right = empty((*self.shape[:-2], columns, count), None, self.dtype, self.device) if compute_uv else out[2]
    launch(aclnnSvd, self._payload, full_matrices, compute_uv, out[1], out[0], right)
    if not compute_uv:
        return None
    return wrap(out[0], self.dtype), wrap(out[1], self.dtype.to_real()), _adjoint(wrap(right, self.dtype))


def inverse(out: Any, self: Any, check_errors: bool) -> Any:
    if not self.numel() or _is_singular(self):
        return NotImplemented
    launch(aclnnInverse, self._payload, out[0])
    return wrap(out[0], self.dtype), _no_information(self)


def slogdet(out: Any, self: Any) -> Any:
    if not self.numel():
        return NotImplemented
    launch(aclnnSlogdet, self._payload, out[0], out[1])
    return None


def det(out: Any, self: Any) -> Any:
    if not self.numel():
        return NotImplemented
    sign, logarithm = ops.linalg_slogdet(self)
    return ops.mul(sign, ops.exp(logarithm))


def _solved(matrix: Any, right: Any, upper: bool, transpose: bool, unit: bool) -> Any:
    """The solution of matrix @ x = right (of the transposed matrix, with `transpose`), both with the same batch."""
    x, copy = (empty(tuple(t.shape), None, t.dtype, t.device) for t in (right, matrix))
    if right.numel():
        launch(aclnnTriangularSolve, right._payload, matrix._payload, upper, transpose, unit, x, copy)
    return wrap(x, right.dtype)


def _together(matrix: Any, right: Any) -> tuple[Any, Any]:
    batch = ops.broadcast_tensors([ops.select(ops.select(t, -1, 0), -1, 0) for t in (matrix, right)])[0].shape
    return tuple(ops.contiguous(ops.expand(t, (*batch, *t.shape[-2:]))) for t in (matrix, right))  # type: ignore[return-value]


def solve_triangular(out: Any, self: Any, B: Any, upper: bool, left: bool, unitriangular: bool) -> Any:
    if not self.numel() or not B.numel():
        return NotImplemented
    if left:
        matrix, right = _together(self, B)
        return _solved(matrix, right, upper, False, unitriangular)
    matrix, right = _together(self, ops.transpose(B, -2, -1))
    return ops.transpose(_solved(matrix, right, upper, True, unitriangular), -2, -1)


def cholesky_solve(out: Any, self: Any, input2: Any, upper: bool) -> Any:
    if not self.numel() or not input2.numel():
        return NotImplemented
    lower = _adjoint(input2) if upper else input2
    half = ops.linalg_solve_triangular(lower, self, upper=False)
    return ops.linalg_solve_triangular(_adjoint(lower), half, upper=True)


def cholesky_inverse(out: Any, self: Any, upper: bool) -> Any:
    if not self.numel():
        return NotImplemented
    return ops.cholesky_solve(_eye(self, self.shape[-1], tuple(self.shape[:-2])), self, upper)


def solve(out: Any, self: Any, B: Any, left: bool, check_errors: bool) -> Any:
    """By QR: as accurate as a factorisation with pivots, for which aclnn has nothing."""
    if not self.numel() or not B.numel() or _is_singular(self):
        return NotImplemented
    vector = B.dim() == 1 or (self.dim() - 1 == B.dim() and tuple(B.shape) == tuple(self.shape[:-1]))
    matrix, right = self, ops.unsqueeze(B, -1) if vector else B
    if not left:
        matrix, right = ops.transpose(matrix, -2, -1), right if vector else ops.transpose(right, -2, -1)
    q, r = ops.linalg_qr(matrix)
    x = ops.linalg_solve_triangular(r, ops.matmul(_adjoint(q), right), upper=True)
    if vector:
        x = ops.squeeze(x, -1)
    elif not left:
        x = ops.transpose(x, -2, -1)
    return x, _no_information(self)


_TERMS = 18


def matrix_exp(out: Any, self: Any) -> Any:
    """By Taylor's series of the matrix over a power of two, whose result is squared as often. The host waits for the norm."""
    if not self.numel():
        return NotImplemented
    norm = float(ops.amax(ops.sum(ops.abs(self), [-1])).item())
    if not math.isfinite(norm):
        return NotImplemented
    squarings = max(0, math.ceil(math.log2(norm)) + 1) if norm > 0 else 0
    part = ops.div(self, 2.0**squarings)
    eye = _eye(self, self.shape[-1], tuple(self.shape[:-2]))
    made = ops.add(eye, ops.div(part, _TERMS))
    for term in range(_TERMS - 1, 0, -1):  # Horner's rule
        made = ops.add(eye, ops.div(ops.matmul(part, made), term))
    for _ in range(squarings):
        made = ops.matmul(made, made)
    return made
