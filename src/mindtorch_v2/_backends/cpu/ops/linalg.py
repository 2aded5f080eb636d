"""Factorisations and solvers over numpy's LAPACK; what numpy does not have is written here over whole batches.

Note [Failing matrices]. numpy refuses a whole batch when one matrix fails, PyTorch says in `info` which did, and the operators for
users make a LinAlgError of it. So the batch is tried as a whole, and matrix by matrix only where that fails.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.linalg import LinAlgError as Failed

from ...._dispatch.native import kernel
from ...common.errors import CHOLESKY, INVERSE, LU, SOLVE, LinAlgError, refuse_info


def _adjoint(a: ndarray) -> ndarray:
    return a.conj().swapaxes(-1, -2)


def _batch(a: ndarray) -> ndarray:
    """The matrices in one row."""
    return a.reshape(math.prod(a.shape[:-2]), *a.shape[-2:])


def _refuse(info: ndarray, api: str, message: str) -> None:
    refuse_info(info.reshape(-1).tolist(), info.ndim > 0, api, message)


# --- cholesky -----------------------------------------------------------------------------------------------------------------


def _partial_cholesky(a: ndarray) -> tuple[ndarray, ndarray]:
    """Of each matrix the factor up to the first leading minor that is not positive, and its order; behind its last
    pivot all is left as it was."""
    result = np.tril(a)
    order = np.zeros(len(a), np.int32)
    for j in range(a.shape[-1]):
        row = result[:, j, :j].conj()
        pivot = (result[:, j, j] - (result[:, j, :j] * row).sum(-1)).real
        bad = (order == 0) & ~(pivot > 0)
        order[bad], result[bad, j, j] = j + 1, pivot[bad]
        good = order == 0
        if not good.any():
            break
        root = np.sqrt(pivot[good])
        below = result[good, j + 1 :, j] - (result[good, j + 1 :, :j] @ row[good][..., None])[..., 0]
        result[good, j, j] = root
        result[good, j + 1 :, j] = below / root[:, None]
    return result, order


@kernel
def cholesky_ex(self: ndarray, upper: bool = False, check_errors: bool = False) -> tuple[ndarray, ndarray]:
    """(lower or upper factor, info). Only that triangle of the matrices is read."""
    lower = _adjoint(self) if upper else self
    info = np.zeros(self.shape[:-2], np.int32)
    try:
        factor = np.linalg.cholesky(lower)
        if np.isnan(np.diagonal(factor, 0, -2, -1)).any():  # which LAPACK lets pass
            raise Failed
    except Failed:
        factor, orders = _partial_cholesky(_batch(lower))
        factor, info = factor.reshape(self.shape), orders.reshape(info.shape)
    if check_errors:
        _refuse(info, "linalg.cholesky_ex", CHOLESKY)
    return _adjoint(factor) if upper else factor, info


# --- LU -----------------------------------------------------------------------------------------------------------------------


_BLOCK = 64  # columns that are factored, or rows that are solved, at once; the rest is products


def _lu_panel(lu: ndarray, start: int, stop: int, pivots: ndarray, info: ndarray) -> None:
    """Factor the columns from `start` to `stop` of matrices (count, rows, columns) in place. Rows are swapped as a whole; of the columns from `stop`
    on nothing is taken yet. Writes `pivots` and, where it is still 0, `info`."""
    each = np.arange(len(lu))
    for j in range(start, min(stop, lu.shape[1])):
        column = lu[:, j:, j]
        size = np.abs(column.real) + np.abs(column.imag) if lu.dtype.kind == "c" else np.abs(column)
        chosen = size.argmax(1) + j
        pivots[:, j] = chosen + 1
        lu[each, chosen], lu[:, j] = lu[:, j].copy(), lu[each, chosen]
        head = lu[:, j, j]
        zero = head == 0
        info[zero & (info == 0)] = j + 1
        lu[:, j + 1 :, j] /= np.where(zero, 1, head)[:, None]
        lu[:, j + 1 :, j + 1 : stop] -= lu[:, j + 1 :, j, None] * lu[:, j, None, j + 1 : stop]


@kernel
def lu_in_place(lu: ndarray, pivots: ndarray, info: ndarray) -> ndarray:
    """Factor matrices (count, rows, columns) with partial pivoting. Writes `pivots` (count, steps) and, where it is still 0, `info` (count,)."""
    rows, columns = lu.shape[1:]
    steps = min(rows, columns)
    step = _BLOCK if steps > _BLOCK else columns
    for start in range(0, steps, step or 1):
        stop = min(start + step, columns)
        _lu_panel(lu, start, stop, pivots, info)
        if stop < columns:
            done, right = slice(start, min(stop, rows)), slice(stop, columns)
            lu[:, done, right] = substituted(lu[:, done, done], np.array(lu[:, done, right], order="C"), False, True)
            if stop < rows:
                lu[:, stop:, right] -= np.matmul(lu[:, stop:, done], lu[:, done, right])
    return lu


def lu_factor_ex(A: ndarray, pivot: bool = True, check_errors: bool = False) -> tuple[ndarray, ndarray, ndarray]:
    """(L below the diagonal and U on and above it, the row that each row was swapped with (from 1), info), with partial pivoting."""
    lu = np.array(_batch(A), order="C")
    count, rows, columns = lu.shape
    steps = min(rows, columns)
    pivots = np.zeros((count, steps), np.int32)
    info = np.zeros(count, np.int32)
    lu_in_place(lu, pivots, info)
    info = info.reshape(A.shape[:-2])
    if check_errors:
        _refuse(info, "torch.linalg.lu_factor_ex", LU)
    return lu.reshape(A.shape), pivots.reshape(*A.shape[:-2], steps), info


def _permutation(pivots: ndarray, rows: int) -> ndarray:
    """The order of rows that the swaps give; there are at most as many as rows."""
    flat = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1])
    order = np.tile(np.arange(rows), (len(flat), 1))
    each = np.arange(len(flat))
    for j in range(min(pivots.shape[-1], rows)):
        chosen = flat[:, j] - 1
        order[each, chosen], order[:, j] = order[:, j].copy(), order[each, chosen]
    return order


def lu_unpack(
    LU: ndarray, pivots: ndarray, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[ndarray, ndarray, ndarray]:
    """(P, L, U) with P @ L @ U the matrix that was factored."""
    rows, columns = LU.shape[-2:]
    inner = min(rows, columns)
    permutation = lower = upper = np.empty(0, LU.dtype)
    if unpack_pivots:
        if rows and pivots.size and (pivots.min() < 1 or pivots.max() > rows):
            raise RuntimeError(
                "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
                "Did you properly pass the result of lu_factor?"
            )
        order = _permutation(pivots, rows)
        permutation = np.zeros((len(order), rows, rows), LU.dtype)
        permutation[np.arange(len(order))[:, None], order, np.arange(rows)] = 1
        permutation = permutation.reshape(*LU.shape[:-2], rows, rows)
    if unpack_data:
        lower = np.tril(LU[..., :inner], -1)
        at = np.arange(inner)
        lower[..., at, at] = 1
        upper = np.triu(LU[..., :inner, :])
    return permutation, lower, upper


def lu(A: ndarray, pivot: bool = True) -> tuple[ndarray, ndarray, ndarray]:
    """(P, L, U)."""
    factors, pivots, _ = lu_factor_ex(A, pivot)
    return lu_unpack(factors, pivots)


# --- solving ------------------------------------------------------------------------------------------------------------------


def _substitute_rows(a: ndarray, x: ndarray, upper: bool, unit: bool) -> None:
    n = a.shape[-1]
    for i in range(n - 1, -1, -1) if upper else range(n):
        done = slice(i + 1, n) if upper else slice(0, i)
        if done.start < done.stop:
            x[:, i] -= np.matmul(a[:, i, None, done], x[:, done])[:, 0]
        if not unit:
            x[:, i] /= a[:, i, i, None]


@kernel
def substituted(a: ndarray, x: ndarray, upper: bool, unit: bool) -> ndarray:
    """x (count, n, m) becomes the solution of a @ result = x, block by block; of a (count, n, n) only the triangle is read."""
    n = a.shape[-1]
    starts = range(0, n, _BLOCK)
    for start in reversed(starts) if upper else starts:
        rows = slice(start, min(start + _BLOCK, n))
        done = slice(rows.stop, n) if upper else slice(0, start)
        x[:, rows] -= np.matmul(a[:, rows, done], x[:, done])
        _substitute_rows(a[:, rows, rows], x[:, rows], upper, unit)
    return x


def _substitute(a: ndarray, b: ndarray, upper: bool, unit: bool) -> ndarray:
    """Solve by substitution over the batch; a zero on the diagonal gives inf and nan."""
    n = a.shape[-1]
    lead = a.shape[:-2] if a.shape[:-2] == b.shape[:-2] else np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*lead, *b.shape[-2:])
    x = _batch(np.array(b if b.shape == shape else np.broadcast_to(b, shape), order="C"))
    a = _batch(a if a.shape[:-2] == lead else np.broadcast_to(a, (*lead, n, n)))
    return substituted(a, x, upper, unit).reshape(shape)


def solve_triangular(self: ndarray, B: ndarray, upper: bool, left: bool = True, unitriangular: bool = False) -> ndarray:
    """X with self @ X = B (X @ self = B) in self's dtype; only the triangle is read."""
    B = B.astype(self.dtype, copy=False)
    if left:
        return _substitute(self, B, upper, unitriangular)
    flipped = _substitute(self.swapaxes(-1, -2), B.swapaxes(-1, -2), not upper, unitriangular)
    return flipped.swapaxes(-1, -2)


def _solve_by_lu(a: ndarray, b: ndarray) -> tuple[ndarray, ndarray]:
    """(a^-1 b with inf and nan for singular matrices, info)."""
    factors, pivots, info = lu_factor_ex(a)
    order = _permutation(pivots, a.shape[-1]).reshape(*a.shape[:-2], -1, 1)
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])
    permuted = np.take_along_axis(np.broadcast_to(b, shape), np.broadcast_to(order, (*shape[:-1], 1)), -2)
    return _substitute(factors, _substitute(factors, permuted, False, True), True, False), info


@kernel
def solved(a: ndarray, b: ndarray) -> ndarray:
    """a^-1 b. LinAlgError for a matrix that is singular."""
    return np.linalg.solve(a, b)


def _solved_together(a: ndarray, b: ndarray) -> ndarray:
    """`solved` of batches that broadcast: of one matrix all right sides at once, else of as many matrices as there are right sides."""
    if a.shape[:-2] == b.shape[:-2]:
        return solved(a, b)
    if a.ndim == 2:
        sides = np.ascontiguousarray(np.moveaxis(b, -2, 0))
        return np.moveaxis(solved(a, sides.reshape(len(sides), -1)).reshape(sides.shape), 0, -2)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    wide = [np.ascontiguousarray(np.broadcast_to(x, (*batch, *x.shape[-2:]))) for x in (a, b)]
    return solved(*wide)


def solve_ex(A: ndarray, B: ndarray, left: bool = True, check_errors: bool = False) -> tuple[ndarray, ndarray]:
    """(X with A @ X = B, or X @ A = B, info)."""
    vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])
    b = B[..., None] if vector else B
    a = A
    if not left:
        a, b = A.swapaxes(-1, -2), b.swapaxes(-1, -2)
    info = np.zeros(A.shape[:-2], np.int32)
    try:
        result = _solved_together(a, b)
    except Failed:
        result, info = _solve_by_lu(a, b)
        if check_errors:
            _refuse(info, "torch.linalg.solve_ex", SOLVE)
    if not left:
        result = result.swapaxes(-1, -2)
    return result[..., 0] if vector else result, info


@kernel
def inv_ex(A: ndarray, check_errors: bool = False) -> tuple[ndarray, ndarray]:
    """(inverse, info)."""
    try:
        return np.linalg.inv(A), np.zeros(A.shape[:-2], np.int32)
    except Failed:
        result, info = _solve_by_lu(A, np.eye(A.shape[-1], dtype=A.dtype))
        if check_errors:
            _refuse(info, "linalg.inv_ex", INVERSE)
        return result, info


@kernel
def det(A: ndarray) -> ndarray:
    return np.linalg.det(A)


@kernel
def slogdet(A: ndarray) -> tuple[ndarray, ndarray]:
    """(sign, logarithm of the magnitude)."""
    return np.linalg.slogdet(A)


def cholesky_solve(self: ndarray, input2: ndarray, upper: bool = False) -> ndarray:
    """X with A @ X = self, where input2 is A's Cholesky factor."""
    first, second = (_adjoint(input2), input2) if upper else (input2, _adjoint(input2))
    return _substitute(second, _substitute(first, self, False, False), True, False)


def cholesky_inverse(self: ndarray, upper: bool = False) -> ndarray:
    """The inverse of the matrix whose Cholesky factor self is. LinAlgError for a zero on the diagonal."""
    zero = np.argwhere(np.diagonal(self, axis1=-2, axis2=-1) == 0)
    if zero.size:
        *batch, at = zero[0].tolist()
        where = f"(Batch element {np.ravel_multi_index(batch, self.shape[:-2])}): " if batch else ""
        raise LinAlgError(
            f"cholesky_inverse: {where}The diagonal element {at + 1} is zero, the inversion could not be completed because the input "
            "matrix is singular."
        )
    return cholesky_solve(np.broadcast_to(np.eye(self.shape[-1], dtype=self.dtype), self.shape), self, upper)


# --- orthogonal factorisations --------------------------------------------------------------------------------------------------


def qr(A: ndarray, mode: str = "reduced") -> tuple[ndarray, ndarray]:
    """(Q, R)."""
    if mode == "r":
        return np.empty(0, A.dtype), np.linalg.qr(A, "r")
    if not A.size:
        return _empty_qr(A, mode)
    return np.linalg.qr(A, mode)


def _empty_qr(A: ndarray, mode: str) -> tuple[ndarray, ndarray]:
    *batch, rows, columns = A.shape
    inner = rows if mode == "complete" else min(rows, columns)
    q = np.broadcast_to(np.eye(rows, inner, dtype=A.dtype), (*batch, rows, inner))
    return q, np.zeros((*batch, inner, columns), A.dtype)


def geqrf(self: ndarray) -> tuple[ndarray, ndarray]:
    """R on and above the diagonal, the Householder reflectors below, and their factors."""
    reflectors, factors = np.linalg.qr(self, "raw")
    return reflectors.swapaxes(-1, -2), factors


@kernel
def svd(
    A: ndarray, full_matrices: bool = False, compute_uv: bool = True, driver: str | None = None
) -> tuple[ndarray, ndarray, ndarray]:
    """(U, S, V^H), singular values in falling order."""
    if not np.isfinite(A).all():
        raise LinAlgError(
            "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values."
        )
    try:
        if not compute_uv:
            none = np.empty(0, A.dtype)
            return none, np.linalg.svd(A, compute_uv=False), none
        return tuple(np.linalg.svd(A, full_matrices))
    except Failed:
        raise LinAlgError(
            "linalg.svd: The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
            f"singular values (error code: {min(A.shape[-2:]) - 1})."
        ) from None


@kernel
def eigh(A: ndarray, UPLO: str = "L", compute_v: bool = True) -> tuple[ndarray, ndarray]:
    """(eigenvalues in rising order, eigenvectors) of Hermitian matrices; only one triangle is read."""
    try:
        if compute_v:
            return tuple(np.linalg.eigh(A, UPLO.upper()))
        return np.linalg.eigvalsh(A, UPLO.upper()), np.empty(0, A.dtype)
    except Failed:
        raise LinAlgError(
            "linalg.eigh: The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
            f"eigenvalues (error code: {A.shape[-1] - 1})."
        ) from None


def eig(self: ndarray) -> tuple[ndarray, ndarray]:
    """(eigenvalues, eigenvectors of length 1), complex."""
    if not np.isfinite(self).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    try:
        values, vectors = np.linalg.eig(self)
    except Failed:
        raise LinAlgError(
            "linalg.eig: The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
            "eigenvalues."
        ) from None
    kind = np.result_type(self.dtype, np.complex64)
    return values.astype(kind), vectors.astype(kind)


# --- least squares --------------------------------------------------------------------------------------------------------------


def lstsq(
    self: ndarray, b: ndarray, rcond: float | None = None, driver: str | None = None
) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    """(solution of least norm, squared residuals, rank, singular values)."""
    vector = b.ndim == 1 or (self.ndim == b.ndim + 1 and b.shape == self.shape[:-1])
    right = b[..., None] if vector else b
    batch = np.broadcast_shapes(self.shape[:-2], right.shape[:-2])
    rows, columns = self.shape[-2:]
    kind = self.real.dtype
    if rcond is None:
        rcond = float(np.finfo(kind).eps) * max(rows, columns)
    a = np.broadcast_to(self, (*batch, rows, columns))
    right = np.broadcast_to(right, (*batch, rows, right.shape[-1]))
    one = _lstsq_one if driver in ("gelsd", "gelss") else _lstsq_of_full_rank
    parts = [one(x, y, rcond) for x, y in zip(_batch(a), _batch(right), strict=True)]
    sides = right.shape[-1]
    inner = min(rows, columns)
    solution = _stacked([p[0] for p in parts], (*batch, columns, sides), self.dtype)
    rank = _stacked([p[1] for p in parts], batch, np.dtype(np.int64))
    values = _stacked([p[2] for p in parts], (*batch, inner), kind)
    residuals = np.empty(0, kind)
    driver = driver or "gelsy"
    if rows > columns and driver != "gelsy" and (driver == "gels" or (rank == columns).all()):
        left = np.matmul(a, solution) - right
        residuals = (left.real**2 + left.imag**2 if left.dtype.kind == "c" else left * left).sum(-2)
    if driver == "gels":
        rank = np.empty(0, np.int64)
    if driver not in ("gelsd", "gelss"):
        values = np.empty(0, kind)
    return solution[..., 0] if vector else solution, residuals, rank, values


def _stacked(parts: list, shape: tuple[int, ...], kind: np.dtype) -> ndarray:
    return np.array(parts, kind).reshape(shape) if parts else np.zeros(shape, kind)


def _lstsq_of_full_rank(a: ndarray, b: ndarray, rcond: float) -> tuple[ndarray, int, ndarray]:
    """By an orthogonal factor where the triangle's diagonal is far from zero, else by singular values; those are not made."""
    rows, columns = a.shape
    steps = min(rows, columns)
    if not a.size or not b.size:
        return _lstsq_one(a, b, rcond)
    wide = rows < columns
    q, r = np.linalg.qr(_adjoint(a) if wide else a)
    size = np.abs(r.diagonal())
    if not size.min() > size.max() * float(np.finfo(r.dtype).eps) ** 0.5:  # also where one is NaN
        return _lstsq_one(a, b, rcond)
    if wide:
        solution = q @ solve_triangular(_adjoint(r), b, False)
    else:
        solution = solve_triangular(r, _adjoint(q) @ b, True)
    return solution, steps, np.zeros(steps, a.real.dtype)


def _lstsq_one(a: ndarray, b: ndarray, rcond: float) -> tuple[ndarray, int, ndarray]:
    if not a.size:
        return np.zeros((a.shape[1], b.shape[1]), a.dtype), 0, np.zeros(0, a.real.dtype)
    solution, _, rank, values = np.linalg.lstsq(a, b, rcond)
    return solution, int(rank), values


def pinv(self: ndarray, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> ndarray:
    """The pseudo-inverse; singular values below max(atol, rtol * the largest) count as zero."""
    rows, columns = self.shape[-2:]
    if not self.size:
        return np.zeros((*self.shape[:-2], columns, rows), self.dtype)
    kind = self.real.dtype
    if rtol is None:
        given = atol is not None and np.any(np.asarray(atol) > 0)
        rtol = 0.0 if given else float(np.finfo(kind).eps) * max(rows, columns)
    if hermitian:
        values, vectors = eigh(self)
        size = np.abs(values)
        left, right = vectors, _adjoint(vectors)
    else:
        left, values, right = svd(self)
        size = values
    bound = np.maximum(0.0 if atol is None else atol, np.asarray(rtol) * size.max(-1, initial=0))
    kept = size > np.asarray(bound)[..., None]
    inverse = np.where(kept, 1 / np.where(kept, values, 1), 0).astype(kind)
    return np.matmul(_adjoint(right) * inverse[..., None, :], _adjoint(left))


# --- the exponential ------------------------------------------------------------------------------------------------------------

_PADE = {
    np.float32: (3.925724783138660, (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0)),
    np.float64: (
        5.371920351148152,
        (
            64764752532480000.0,
            32382376266240000.0,
            7771770303897600.0,
            1187353796428800.0,
            129060195264000.0,
            10559470521600.0,
            670442572800.0,
            33522128640.0,
            1323241920.0,
            40840800.0,
            960960.0,
            16380.0,
            182.0,
            1.0,
        ),
    ),
}
"""The 1-norm up to which the Padé approximant is exact to the precision, and its coefficients: of order 7 for single, 13 for double."""


def matrix_exp(self: ndarray) -> ndarray:
    """The exponential of each matrix: the Padé approximant of a scaled matrix, squared again."""
    n = self.shape[-1]
    if not self.size:
        return self.copy()
    reach, b = _PADE[self.real.dtype.type]
    a = _batch(self)
    finite = np.isfinite(a).all((-1, -2))
    norm = np.where(finite, np.abs(a).sum(-2, np.float64).max(-1), 0)
    squarings = np.ceil(np.log2(np.maximum(norm / reach, 1))).astype(int)
    a = a * np.exp2(-squarings)[:, None, None].astype(self.real.dtype)
    one = np.eye(n, dtype=a.dtype)
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    odd = b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * one
    even = b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * one
    if len(b) > 8:
        odd += a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2)
        even += a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2)
    odd = a @ odd
    result = np.full_like(a, np.nan)
    result[finite] = np.linalg.solve(even[finite] - odd[finite], even[finite] + odd[finite])
    for step in range(int(squarings.max(initial=0))):
        again = squarings > step
        result[again] = result[again] @ result[again]
    return result.reshape(self.shape)
