"""`torch.linalg` and its older names, made of the factorisations that have kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mindtorch_v2 import _dtype
from mindtorch_v2._backends.common.errors import CHOLESKY, INVERSE, LU, SOLVE, refuse_info
from mindtorch_v2._generated import functions as F
from mindtorch_v2._rules._common import not_implemented, wrap_dim
from mindtorch_v2._rules.linalg import check_inexact, check_kernel, check_matrix, check_square, refuse_complex
from mindtorch_v2._state import DISPATCHING
from mindtorch_v2._tensor import Tensor, alias_as

Pair = tuple[Tensor, Tensor]
Triple = tuple[Tensor, Tensor, Tensor]


def _h(x: Tensor) -> Tensor:
    """The conjugate transpose of each matrix."""
    turned = F.transpose(x, -2, -1)
    return F.conj(turned) if x.dtype.is_complex else turned


def _refuse(info: Tensor, api: str, message: str) -> None:
    if info.device.type != "meta":
        if info.__class__ in DISPATCHING:
            found = [one.item() for one in F.unbind(F.flatten(info))]
        else:
            info = alias_as(Tensor, info)  # of all examples of a batch
            found = F.flatten(info).tolist()
        refuse_info(found, info.dim() > 0, api, message)


# Factorisations


def linalg_cholesky(self: Tensor, upper: bool = False) -> Tensor:
    """The Cholesky factor. LinAlgError for a matrix that is not positive-definite."""
    factor, info = F.linalg_cholesky_ex(self, upper=upper)
    _refuse(info, "linalg.cholesky", CHOLESKY)
    return factor


def cholesky(self: Tensor, upper: bool = False) -> Tensor:
    """`linalg_cholesky` under its older name."""
    check_square(self, "cholesky")
    factor, info = F.linalg_cholesky_ex(self, upper=upper)
    _refuse(info, "cholesky", CHOLESKY)
    return factor


def linalg_lu_factor(A: Tensor, pivot: bool = True) -> Pair:
    """(L and U in one matrix, pivots). RuntimeError where U has a zero on its diagonal."""
    factors, pivots, info = F.linalg_lu_factor_ex(A, pivot=pivot)
    _refuse(info, "torch.linalg.lu_factor", LU)
    return factors, pivots


def lu_with_info(self: Tensor, pivot: bool = True, check_errors: bool = True) -> Triple:
    """(L and U in one matrix, pivots, info)."""
    return tuple(F.linalg_lu_factor_ex(self, pivot=pivot, check_errors=check_errors))


def linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, left: bool = True, adjoint: bool = False) -> Tensor:
    """X with A @ X = B (X @ A = B; with the adjoint of A), where LU and pivots are what lu_factor gave for A."""
    op = "linalg.lu_solve"
    check_inexact(LU, f"torch.{op}")
    if pivots.dtype is not _dtype.int32:
        raise RuntimeError(f"{op}: pivots should be a Tensor of scalar type torch.int32")
    check_square(LU, f"torch.{op}")
    check_matrix(B, op, "B")
    if LU.dtype is not B.dtype:
        raise RuntimeError(
            f"{op}: Expected LU and B to have the same dtype, but found LU of type {LU.dtype.cpp} and B of type {B.dtype.cpp} instead"
        )
    if LU.shape[-1] != B.shape[-2 if left else -1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{op}: Incompatible shapes of A and B for the equation {equation} ({LU.shape[-2]}x{LU.shape[-1]} and "
            f"{B.shape[-2]}x{B.shape[-1]})"
        )
    if not pivots.dim() or pivots.shape[-1] != LU.shape[-1]:
        raise RuntimeError(f"{op}: Number of pivots per batch should be same as the dimension of the matrix")
    if LU.dtype.itemsize == 2:
        raise not_implemented("linalg.lu_solve_cpu", LU.dtype)
    if not left:  # X A = B is A^H X^H = B^H
        return _by_columns(_h(linalg_lu_solve(LU, pivots, _h(B), True, not adjoint)))
    if LU.device.type != "meta" and pivots.numel():
        for wrong, bound in (
            (int(pivots.min()) < 1, "greater or equal to 1"),
            (int(pivots.max()) > LU.shape[-2], "smaller or equal to LU.size(-2)"),
        ):
            if wrong:
                raise RuntimeError(
                    f"Pivots given to lu_solve must all be {bound}. Did you properly pass the result of lu_factor?"
                )
    P, L, U = F.lu_unpack(LU, pivots)
    if adjoint:
        inner = F.linalg_solve_triangular(_h(U), B, upper=False)
        return _by_columns(F.matmul(P, F.linalg_solve_triangular(_h(L), inner, upper=True, unitriangular=True)))
    inner = F.linalg_solve_triangular(L, F.matmul(_h(P), B), upper=False, unitriangular=True)
    return F.linalg_solve_triangular(U, inner, upper=True)


def lu_solve(self: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """`linalg_lu_solve` under its older name."""
    return F.linalg_lu_solve(LU_data, LU_pivots, self)


def qr(self: Tensor, some: bool = True) -> Pair:
    """`linalg_qr` under its older name."""
    return tuple(F.linalg_qr(self, "reduced" if some else "complete"))


def _check_devices(op: str, first: Tensor, first_name: str, second: Tensor, name: str) -> None:
    if first.device != second.device:
        raise RuntimeError(
            f"{op}: Expected {name} and {first_name} tensors to be on the same device, but got {name} on {second.device} "
            f"and {first_name} on {first.device}"
        )


def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """The first columns of the product of the reflections I - tau v v^H, whose v stand below the diagonal of input."""
    op = "torch.linalg.householder_product"
    _check_devices(op, input, "input", tau, "tau")
    if input.dim() < 2:
        raise RuntimeError(f"{op}: input must have at least 2 dimensions.")
    rows, columns = input.shape[-2:]
    if rows < columns:
        raise RuntimeError(f"{op}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if columns < tau.shape[-1]:
        raise RuntimeError(f"{op}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if input.dim() - tau.dim() != 1:
        raise RuntimeError(
            f"{op}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.dim()} and input.ndim is equal "
            f"to {input.dim()}"
        )
    if tuple(tau.shape[:-1]) != tuple(input.shape[:-2]):
        raise RuntimeError(
            f"{op}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau.shape[:-1])}"
        )
    if tau.dtype is not input.dtype:
        raise RuntimeError(f"{op}: tau dtype {tau.dtype.cpp} does not match input dtype {input.dtype.cpp}")
    check_kernel(input, "orgqr_cpu")
    result = F.eye(rows, columns, dtype=input.dtype, device=input.device)
    if not tau.shape[-1]:  # no reflection, but still a function of input
        return _by_columns(F.where(F.ones_like(input, dtype=_dtype.bool), F.expand(result, input.shape), input))
    product = _reflected(F.expand(result, input.shape), input, tau, range(tau.shape[-1] - 1, -1, -1))
    return _by_columns(product)


def _by_columns(x: Tensor) -> Tensor:
    """x laid out column by column, as what LAPACK computes."""
    return F.transpose(F.contiguous(F.transpose(x, -2, -1)), -2, -1)


def _reflected(x: Tensor, input: Tensor, tau: Tensor, order: Sequence[int], adjoint: bool = False) -> Tensor:
    """Reflections applied to x from the left, one after the other."""
    rows = input.shape[-2]
    unit = F.eye(rows, input.shape[-1], dtype=input.dtype, device=input.device)
    vectors = F.tril(input, -1) + unit
    for i in order:
        v = F.narrow(vectors, -1, i, 1)
        t = F.unsqueeze(F.narrow(tau, -1, i, 1), -1)
        t = F.conj(t) if adjoint and t.dtype.is_complex else t
        x = x - F.matmul(v * t, F.matmul(_h(v), x))
    return x


def orgqr(self: Tensor, input2: Tensor) -> Tensor:
    """`linalg_householder_product` under its older name."""
    return F.linalg_householder_product(self, input2)


def ormqr(self: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """The product of input3 with the orthogonal matrix whose reflectors are (self, input2), which is not formed."""
    _check_devices("torch.ormqr", self, "input", input2, "tau")
    _check_devices("torch.ormqr", self, "input", input3, "other")
    if self.dim() < 2 or input3.dim() < 2:
        raise RuntimeError("torch.ormqr: input must have at least 2 dimensions.")
    side = -2 if left else -1
    if self.shape[-2] != input3.shape[side]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]")
    if input2.shape[-1] != min(input3.shape[side], self.shape[-1]):
        raise RuntimeError(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    if input2.dtype is not self.dtype:
        raise RuntimeError(
            f"torch.ormqr: Expected input and tau to have the same dtype, but input has dtype{self.dtype.cpp} and tau has dtype "
            f"{input2.dtype.cpp}"
        )
    check_kernel(self, "ormqr_cpu")
    order = range(input2.shape[-1])
    if left:
        return _by_columns(_reflected(input3, self, input2, order if transpose else order[::-1], transpose))
    # C Q = (Q^H C^H)^H
    return _by_columns(_h(_reflected(_h(input3), self, input2, order[::-1] if transpose else order, not transpose)))


# Singular values and eigenvalues


def linalg_svd(A: Tensor, full_matrices: bool = True, driver: str | None = None) -> Triple:
    """(U, S, V^H)."""
    return F._linalg_svd(A, full_matrices, True, driver=driver)


def linalg_svdvals(A: Tensor, driver: str | None = None) -> Tensor:
    """Singular values. Singular vectors are only computed where the derivative needs them."""
    return F._linalg_svd(A, False, _wants_gradient(A), driver=driver)[1]


def _wants_gradient(x: Tensor) -> bool:
    from mindtorch_v2._state import TLS

    return bool(TLS.grad_enabled and x.requires_grad)


def svd(self: Tensor, some: bool = True, compute_uv: bool = True) -> Triple:
    """(U, S, V) under the older name; without compute_uv U and V are zero."""
    if self.dim() < 2:
        raise RuntimeError(
            f"linalg.svd: input should have at least 2 dimensions, but has {self.dim()} dimensions instead"
        )
    if compute_uv:
        u, s, vh = F._linalg_svd(self, not some, True)
        return u, s, _h(vh)
    s = linalg_svdvals(self)
    rows, columns = self.shape[-2:]
    lead = list(self.shape[:-2])
    u = F.zeros([*lead, rows, rows], dtype=self.dtype, device=self.device)
    v = F.zeros([*lead, columns, columns], dtype=self.dtype, device=self.device)
    return u, s, F.transpose(v, -2, -1)


def linalg_eigh(self: Tensor, UPLO: str = "L") -> Pair:
    """(eigenvalues, eigenvectors) of Hermitian matrices."""
    return F._linalg_eigh(self, UPLO, True)


def linalg_eigvalsh(self: Tensor, UPLO: str = "L") -> Tensor:
    """Eigenvalues of Hermitian matrices."""
    return F._linalg_eigh(self, UPLO, _wants_gradient(self))[0]


def linalg_eigvals(self: Tensor) -> Tensor:
    """Eigenvalues, complex."""
    check_square(self, "linalg.eigvals")
    return F.linalg_eig(self)[0]


# Inverses and solvers


def linalg_inv(A: Tensor) -> Tensor:
    """The inverse. LinAlgError for a singular matrix."""
    result, info = F.linalg_inv_ex(A)
    _refuse(info, "linalg.inv", INVERSE)
    return result


def linalg_solve(A: Tensor, B: Tensor, left: bool = True) -> Tensor:
    """X with A @ X = B (left) or X @ A = B. LinAlgError for a singular matrix."""
    result, info = F.linalg_solve_ex(A, B, left=left)
    _refuse(info, "torch.linalg.solve", SOLVE)
    return result


def triangular_solve(
    self: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Pair:
    """(X with A @ X = self, a copy of A) under the older name."""
    for tensor, name in ((self, "b"), (A, "A")):
        if tensor.dim() < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has {tensor.dim()} dimensions instead"
            )
    check_square(A, "")
    if A.shape[-1] != self.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for triangular_solve: each A matrix is {A.shape[-2]} by {A.shape[-1]} but each b matrix is "
            f"{self.shape[-2]} by {self.shape[-1]}"
        )
    matrix = F.transpose(A, -2, -1) if transpose else A
    solution = F.linalg_solve_triangular(matrix, self, upper=upper != transpose, unitriangular=unitriangular)
    shape = [*solution.shape[:-2], *A.shape[-2:]]
    copied = F.transpose(F.clone(F.contiguous(F.transpose(F.expand(A, shape), -2, -1))), -2, -1)
    return solution, copied


def pinv_rcond(self: Tensor, rcond: Any, hermitian: bool = False) -> Tensor:
    """The pseudo-inverse with a relative bound."""
    if isinstance(rcond, Tensor):
        refuse_complex("torch.linalg.pinv", rcond=rcond)
        zero = F.zeros([], dtype=_dtype.float64, device=self.device)
        return F.linalg_pinv(self, atol=zero, rtol=rcond, hermitian=hermitian)
    return F.linalg_pinv(self, atol=0.0, rtol=rcond, hermitian=hermitian)


def pinverse(self: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudo-inverse under its older name."""
    return F.linalg_pinv(self, atol=0.0, rtol=rcond)


def linalg_tensorinv(self: Tensor, ind: int = 2) -> Tensor:
    """The inverse of self as a map of its last dimensions from `ind` on to those before."""
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    first, last = list(self.shape[:ind]), list(self.shape[ind:])
    rows, columns = math.prod(first), math.prod(last)
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{columns} != {rows}"
        )
    inverse, info = F.linalg_inv_ex(F.reshape(self, [columns, rows]))
    _refuse(info, "inv", INVERSE)
    return F.reshape(inverse, [*last, *first])


def linalg_tensorsolve(self: Tensor, other: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """x with tensordot(self, x, x.ndim) = other; `dims` are moved to the end of self first."""
    if dims is not None:
        wrapped = [wrap_dim(d, self.dim()) for d in dims]
        self = F.movedim(self, wrapped, list(range(self.dim() - len(wrapped), self.dim())))
    shape = list(self.shape[other.dim() :])
    columns = math.prod(shape)
    if columns != math.prod(self.shape[: other.dim()]):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got "
            f"{columns} != {other.numel()}"
        )
    solved = F.linalg_solve(F.reshape(self, [columns, columns]), F.reshape(other, [-1]))
    return F.reshape(solved, shape)


# Determinants


def det(self: Tensor) -> Tensor:
    """The determinant."""
    return F.linalg_det(self)


def slogdet(self: Tensor) -> Pair:
    """(sign, logarithm of the magnitude) of the determinant."""
    return tuple(F.linalg_slogdet(self))


def logdet(self: Tensor) -> Tensor:
    """The logarithm of the determinant; nan for real matrices where that is negative."""
    check_square(self, "logdet")
    check_inexact(self, "logdet", low=False)
    sign, magnitude = F.linalg_slogdet(self)
    if self.dtype.is_complex:
        return F.add(F.log(sign), magnitude)
    return F.where(F.eq(sign, -1.0), math.nan, magnitude)


# Ranks, norms and condition numbers


def _bound(values: Tensor, largest: Tensor, rows: int, columns: int, atol: Any, rtol: Any) -> Tensor:
    """Below this a singular value counts as zero."""
    if rtol is None:
        if isinstance(atol, Tensor):
            default = _dtype.finfo(values.dtype).eps * max(rows, columns)
            rtol = F.where(F.gt(atol, 0), 0.0, default)
        else:
            rtol = 0.0 if atol is not None and atol > 0 else _dtype.finfo(values.dtype).eps * max(rows, columns)
    relative = F.mul(largest, rtol)
    if atol is None:
        return relative
    if not isinstance(atol, Tensor):
        return F.clamp(relative, min=atol) if atol else relative
    return F.maximum(relative, atol)


def matrix_rank(self: Tensor, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """How many singular values exceed max(atol, rtol * the largest)."""
    op = "torch.linalg.matrix_rank"
    check_matrix(self, op, "input")
    refuse_complex(op, atol=atol, rtol=rtol)
    if rtol is None and (self.dtype.category < _dtype.CATEGORY_FLOATING or self.dtype.itemsize == 2):
        raise RuntimeError("This function doesn't handle types other than float and double")
    for name, value in (("atol", atol), ("rtol", rtol)):
        if isinstance(value, Tensor) and value.device != self.device:
            raise RuntimeError(
                f"{op}: Expected {name} and input tensors to be on the same device, but got {name} on {value.device} and "
                f"input on {self.device}"
            )
    lead = list(self.shape[:-2])
    if not self.numel():
        return F.zeros(lead, dtype=_dtype.int64, device=self.device)
    source = self.detach()
    values = F.abs(F.linalg_eigvalsh(source)) if hermitian else F.linalg_svdvals(source)
    bound = _bound(values, F.amax(values, -1), *self.shape[-2:], atol, rtol)
    return F.sum(F.gt(values, F.unsqueeze(bound, -1)), -1)


def matrix_rank_tol(self: Tensor, tol: Any, hermitian: bool = False) -> Tensor:
    """The rank with an absolute bound."""
    return matrix_rank(self, tol, 0.0, hermitian)


def _norm_dims(op: str, self: Tensor, dim: Sequence[int]) -> list[int]:
    if len(dim) != 2:
        raise RuntimeError(f"{op}: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    dims = [wrap_dim(d, self.dim()) for d in dim]
    if dims[0] == dims[1]:
        raise RuntimeError(f"{op}: dims must be different. Got ({dim[0]}, {dim[1]})")
    return dims


def _check_norm_dtype(op: str, self: Tensor, dtype: Any) -> None:
    if dtype is None:
        return
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{op}: dtype should be floating point or complex, but got {dtype.cpp}")
    if self.dtype.is_complex != dtype.is_complex:
        kind = "complex for complex" if self.dtype.is_complex else "real for real"
        raise RuntimeError(f"{op}: dtype should be {kind} inputs, but got {dtype.cpp}")
    if self.dtype.itemsize > dtype.itemsize:
        raise RuntimeError(
            f"{op}: the dtype of the input ({self.dtype.cpp}) should be convertible without narrowing to the specified dtype "
            f"({dtype.cpp})"
        )


def matrix_norm(
    self: Tensor, ord: Any = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """The norm of matrices: 'fro', 'nuc', or the operator norm of order 1, 2, inf, and their negatives."""
    op = "linalg.matrix_norm"
    check_matrix(self, op)
    check_inexact(self, op)
    dims = _norm_dims(op, self, list(dim))
    if isinstance(ord, complex):
        raise RuntimeError(f"{op}: Expected a non-complex scalar as the order of norm.")
    if (
        isinstance(ord, str)
        and ord not in ("fro", "nuc")
        or not isinstance(ord, str)
        and abs(ord) not in (1, 2, math.inf)
    ):
        text = ord if isinstance(ord, str) else f"{ord:g}"
        raise RuntimeError(f"{op}: Order {text} not supported.")
    _check_norm_dtype(op, self, dtype)
    if ord == "fro":
        return F.linalg_vector_norm(self, 2, dims, keepdim, dtype=dtype)
    source = self if dtype is None else self.to(dtype)
    if ord == "nuc" or abs(ord) == 2:
        check_inexact(source, op, low=False)
        moved = F.movedim(source, dims, [-2, -1])
        values = F.linalg_svdvals(moved)
        if ord == "nuc":
            result = F.sum(values, -1)
        else:
            result = _extreme(values, -1, False, ord > 0, 0 in self.shape)
        if keepdim:
            for d in sorted(dims):
                result = F.unsqueeze(result, d)
        return result
    row, column = dims if abs(ord) == 1 else dims[::-1]
    sums = F.linalg_vector_norm(source, 1, [row], keepdim)
    if not keepdim and row < column:
        column -= 1
    return _extreme(sums, column, keepdim, ord > 0, 0 in self.shape)


def _extreme(values: Tensor, dim: int, keepdim: bool, largest: bool, empty: bool) -> Tensor:
    """The largest or smallest along `dim`; the largest of nothing is 0."""
    if largest and empty and not values.shape[dim]:
        return F.sum(values, dim, keepdim)
    if not largest and not values.shape[dim]:
        raise IndexError(f"amin(): Expected reduction dim {dim} to have non-zero size.")
    return (F.amax if largest else F.amin)(values, dim, keepdim)


def nuclear_norm(self: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The sum of the singular values."""
    return matrix_norm(self, "nuc", (-2, -1) if dim is None else dim, keepdim)


def nuclear_norm_all(self: Tensor, keepdim: bool = False) -> Tensor:
    """The sum of the singular values of the last two dimensions."""
    return matrix_norm(self, "nuc", (-2, -1), keepdim)


def linalg_norm(
    self: Tensor, ord: Any = None, dim: Sequence[int] | None = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """A vector norm over one or all dimensions, or a matrix norm over two."""
    if dim is not None and len(dim) not in (1, 2) and not isinstance(ord, str):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    if isinstance(ord, str):
        dims = dim if dim is not None else (-2, -1)
        return matrix_norm(self, ord, dims, keepdim, dtype)
    if ord is not None and dim is None and self.dim() not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {self.dim()}D."
        )
    if ord is not None and (dim is not None and len(dim) == 2 or dim is None and self.dim() == 2):
        return matrix_norm(self, ord, (-2, -1) if dim is None else dim, keepdim, dtype)
    return F.linalg_vector_norm(self, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


def linalg_cond(self: Tensor, p: Any = None) -> Tensor:
    """The condition number: the norm times that of the inverse; inf for singular matrices."""
    if self.dim() < 2:
        if isinstance(p, str):
            check_matrix(self, f"linalg.cond(ord={p})")
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p is None or (not isinstance(p, str) and abs(p) == 2):
        values = F.linalg_svdvals(self)
        if not self.numel():
            return F.zeros(list(self.shape[:-2]), dtype=values.dtype, device=self.device)
        first, last = F.select(values, -1, 0), F.select(values, -1, -1)
        return F.div(last, first) if p == -2 else F.div(first, last)
    known = p in ("fro", "nuc") if isinstance(p, str) else abs(p) in (1, math.inf)
    if not known:
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p if isinstance(p, str) else f'{p:g}'}")
    text = p if isinstance(p, str) else f"{p:g}"
    check_square(self, f"linalg.cond(ord={text})")
    if not self.numel():
        return F.zeros(list(self.shape[:-2]), dtype=self.dtype.to_real(), device=self.device)
    norm = F.sum(F.linalg_svdvals(self), -1) if p == "nuc" else matrix_norm(self, p)
    inverse, info = F.linalg_inv_ex(self)
    if p == "nuc":  # which has no value for what the factorisation leaves of a singular matrix
        inverse = F.masked_fill(inverse, F.unsqueeze(F.unsqueeze(F.ne(info, 0), -1), -1), 0)
    result = F.mul(norm, matrix_norm(inverse, p))
    return F.where(F.ne(info, 0), math.inf, result)


# Powers and others


def matrix_power(self: Tensor, n: int) -> Tensor:
    """self multiplied n times with itself; for a negative n its inverse."""
    op = "linalg.matrix_power"
    check_square(self, op)
    if n == 0:
        one = F.eye(self.shape[-1], dtype=self.dtype, device=self.device)
        return F.where(F.ones(self.shape, dtype=_dtype.bool, device=self.device), one, self)
    base = F.linalg_inv(self) if n < 0 else self
    n = abs(n)
    if n == 1:
        return base if base is not self else F.clone(self)
    result = None
    while True:
        if n & 1:
            result = base if result is None else F.matmul(result, base)
        n >>= 1
        if not n:
            return result
        base = F.matmul(base, base)


def matrix_exp(self: Tensor) -> Tensor:
    """The exponential of each matrix."""
    return F.linalg_matrix_exp(self)


def linalg_vander(x: Tensor, N: int | None = None) -> Tensor:
    """Powers of x from 0 on, along a new last dimension."""
    if x.dtype is _dtype.bool or x.dtype.is_floating_point and x.dtype.itemsize == 2:
        raise RuntimeError(
            f"linalg.vander supports floating point, complex, and integer tensors, but got {x.dtype.cpp}"
        )
    count = x.shape[-1] if N is None and x.dim() else N
    if count is None or count <= 1:
        raise RuntimeError("N must be greater than 1.")
    if not x.dim():
        x = F.unsqueeze(x, 0)
    powers = F.expand(F.unsqueeze(x, -1), [*x.shape, count - 1])
    grown = F.cumprod(powers, -1)
    ones = F.ones([*x.shape, 1], dtype=grown.dtype, device=x.device)
    return F.cat([ones, grown], -1)


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Powers of a vector as columns, falling unless `increasing`."""
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x.shape[0] if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    kind = x.dtype if x.dtype.category >= _dtype.CATEGORY_FLOATING else _dtype.int64
    result = F.empty([x.shape[0], count], dtype=kind, device=x.device)
    if count:
        parts = [F.ones([x.shape[0], 1], dtype=kind, device=x.device)]
        if count > 1:
            parts.append(F.cumprod(F.expand(F.unsqueeze(x, 1), [x.shape[0], count - 1]), 1, dtype=kind))
        result = F.cat(parts, 1)
    return result if increasing else F.flip(result, [1])
