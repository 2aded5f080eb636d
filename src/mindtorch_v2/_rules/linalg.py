"""Rules of factorisations and solvers. Matrices are the last two dimensions; those before are batches.

Results that LAPACK computes lie column by column (`_columns`), as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _dtype as _d
from ._common import broadcast, is_tensor, not_implemented, shape_text, wrap_dim
from .geometry import Shape, contiguous_strides
from .spec import Spec, rule

_HALF = (_d.float16, _d.bfloat16)


def _columns(shape: Sequence[int]) -> Shape:
    """The strides of matrices that lie column by column."""
    flipped = contiguous_strides((*shape[:-2], shape[-1], shape[-2]))
    return (*flipped[:-2], flipped[-1], flipped[-2])


def _matrices(shape: Sequence[int], like: Any) -> Spec:
    return Spec(tuple(shape), like.dtype, _columns(shape))


def _info(A: Any) -> Spec:
    """How each matrix went: 0, or the number of the column that failed."""
    return Spec(tuple(A.shape[:-2]), _d.int32)


def check_matrix(A: Any, op: str, name: str = "A") -> None:
    """RuntimeError for fewer than two dimensions."""
    if A.dim() < 2:
        prefix = f"{op}: " if op else ""
        raise RuntimeError(f"{prefix}The input tensor {name} must have at least 2 dimensions.")


def check_square(A: Any, op: str, name: str = "A") -> None:
    """RuntimeError unless the last two dimensions are equal."""
    check_matrix(A, op, name)
    rows, columns = A.shape[-2:]
    if rows != columns:
        prefix = f"{op}: " if op else ""
        raise RuntimeError(
            f"{prefix}{name} must be batches of square matrices, but they are {rows} by {columns} matrices"
        )


def check_inexact(A: Any, op: str, low: bool = True) -> None:
    """RuntimeError for bool and integers, and without `low` for float16 and bfloat16."""
    if not (A.dtype.is_floating_point or A.dtype.is_complex):
        raise RuntimeError(f"{op}: Expected a floating point or complex tensor as input. Got {A.dtype.cpp}")
    if not low and A.dtype in _HALF:
        raise RuntimeError(f"{op}: Low precision dtypes not supported. Got {A.dtype.cpp}")


def check_kernel(A: Any, kernel: str) -> None:
    """NotImplementedError for dtypes that LAPACK does not know."""
    if A.dtype in _HALF or A.dtype.category < _d.CATEGORY_FLOATING or A.dtype in _d.FLOAT8:
        raise not_implemented(kernel, A.dtype)


@rule(flops="numel(self) * columns(self) // 3", batch="leading")
def linalg_cholesky_ex(self: Any) -> tuple[Spec, Spec]:
    """(the factor, info)."""
    check_square(self, "linalg.cholesky")
    check_inexact(self, "linalg.cholesky")
    check_kernel(self, "cholesky_cpu")
    return _matrices(self.shape, self), _info(self)


@rule(flops="2 * numel(self) * columns(input2)", batch="leading")
def linalg_cholesky_solve(self: Any, input2: Any) -> Spec:
    """The solution of A X = self, input2 being A's factor."""
    for tensor, name in ((self, "b"), (input2, "u")):
        if tensor.dim() < 2:
            raise RuntimeError(f"{name} should have at least 2 dimensions, but has {tensor.dim()} dimensions instead")
    check_square(input2, "")
    if self.shape[-2] != input2.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for cholesky_solve: each A matrix is {input2.shape[-1]} by {input2.shape[-1]} "
            f"but each b matrix is {self.shape[-2]} by {self.shape[-1]}"
        )
    if self.dtype is not input2.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {self.dtype.cpp} and A of type "
            f"{input2.dtype.cpp} instead."
        )
    check_kernel(self, "cholesky_solve_cpu")
    return _matrices((*broadcast(self.shape[:-2], input2.shape[:-2]), *self.shape[-2:]), self)


@rule(flops="2 * numel(self) * columns(self) // 3", batch="leading")
def linalg_cholesky_inverse(self: Any) -> Spec:
    """The shape of the factor."""
    check_square(self, "cholesky_inverse")
    check_kernel(self, "cholesky_inverse_out_cpu")
    return _matrices(self.shape, self)


@rule(flops="2 * numel(A) * columns(A)", batch="leading")
def linalg_inv_ex(A: Any) -> tuple[Spec, Spec]:
    """(the inverse, info)."""
    check_square(A, "linalg.inv")
    check_inexact(A, "linalg.inv", low=False)
    return _matrices(A.shape, A), _info(A)


def is_vector(A: Any, B: Any) -> bool:
    """Whether B holds vectors, not matrices, in `solve(A, B)`."""
    return B.dim() == 1 or (A.dim() - 1 == B.dim() and tuple(B.shape) == tuple(A.shape[:-1]))


def _check_solve(A: Any, sizes: Shape, left: bool, op: str) -> Shape:
    """The shape of the solution; `sizes` is B's."""
    if A.shape[-1] != sizes[-2 if left else -1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{op}: Incompatible shapes of A and B for the equation {equation} "
            f"({A.shape[-2]}x{A.shape[-1]} and {sizes[-2]}x{sizes[-1]})"
        )
    return (*broadcast(A.shape[:-2], sizes[:-2]), *sizes[-2:])


def _check_pair(A: Any, B: Any, op: str) -> None:
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"{op}: Expected A and B to have the same dtype, but found A of type {A.dtype.cpp} and B of type "
            f"{B.dtype.cpp} instead"
        )


@rule(flops="2 * numel(A) * columns(A) // 3 + 2 * numel(out) * columns(A)")
def linalg_solve_ex(A: Any, B: Any, left: bool = True) -> tuple[Spec, Spec]:
    """(the solution, info)."""
    op = "linalg.solve"
    check_inexact(A, op)
    _check_pair(A, B, op)
    check_square(A, op)
    vector = is_vector(A, B)
    if not vector:
        check_matrix(B, op, "B")
    sizes = (*B.shape, 1) if vector else tuple(B.shape)
    if not left and vector:
        raise RuntimeError(
            f"{op}: Vector broadcasting of the left hand side is not supported for left=False. In this case "
            "linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    shape = _check_solve(A, sizes, left, op)
    check_kernel(A, "lu_cpu")
    if vector:
        shape = shape[:-1]
    strides = _columns(shape) if left and len(shape) > 1 else None
    return Spec(shape, A.dtype, strides), _info(A)


@rule(flops="numel(out) * columns(self)", batch="leading")
def linalg_solve_triangular(self: Any, B: Any, left: bool = True) -> Spec:
    """The solution, of B's broadcast shape and self's dtype."""
    op = "linalg.solve_triangular"
    check_square(self, op)
    check_matrix(B, op, "B")
    shape = _check_solve(self, tuple(B.shape), left, op)
    check_kernel(self, "triangular_solve_cpu")
    return _matrices(shape, self)


@rule(flops="2 * numel(A) * short_side(A) // 3", batch="leading")
def linalg_det(A: Any) -> Spec:
    """A number for each matrix."""
    check_square(A, "linalg.det")
    check_inexact(A, "linalg.det")
    check_kernel(A, "lu_cpu")
    return Spec(tuple(A.shape[:-2]), A.dtype)


@rule(flops="2 * numel(A) * short_side(A) // 3", batch="leading")
def linalg_slogdet(A: Any) -> tuple[Spec, Spec]:
    """(the sign, the logarithm of the magnitude, which is real)."""
    check_square(A, "linalg.slogdet")
    check_inexact(A, "linalg.slogdet", low=False)
    shape = tuple(A.shape[:-2])
    return Spec(shape, A.dtype), Spec(shape, A.dtype.to_real())


@rule(flops="2 * numel(A) * short_side(A)", batch="leading")
def linalg_qr(A: Any, mode: str = "reduced") -> tuple[Spec, Spec]:
    """(Q, R); Q is empty with mode='r'."""
    op = "linalg.qr"
    check_matrix(A, op)
    check_inexact(A, op)
    if mode not in ("reduced", "r", "complete"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    check_kernel(A, "geqrf_cpu")
    *batch, rows, columns = A.shape
    inner = rows if mode == "complete" else min(rows, columns)
    triangle = _matrices((*batch, inner, columns), A)
    return Spec((0,), A.dtype) if mode == "r" else _matrices((*batch, rows, inner), A), triangle


@rule(flops="2 * numel(self) * short_side(self)", batch="leading")
def linalg_geqrf(self: Any) -> tuple[Spec, Spec]:
    """(the reflectors below R, their factors)."""
    check_matrix(self, "torch.geqrf", "input")
    check_kernel(self, "geqrf_cpu")
    *batch, rows, columns = self.shape
    return _matrices(self.shape, self), Spec((*batch, min(rows, columns)), self.dtype)


@rule(flops="batches(A) * (6 * long_side(A) * short_side(A) ** 2 + 20 * short_side(A) ** 3)", batch="leading")
def linalg_svd(
    A: Any, full_matrices: bool = False, compute_uv: bool = True, driver: str | None = None
) -> tuple[Spec, ...]:
    """(U, singular values, which are real, V^H); without compute_uv U and V^H are empty."""
    check_matrix(A, "linalg.svd")
    check_inexact(A, "linalg.svd")
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )
    check_kernel(A, "linalg_svd_cpu")
    *batch, rows, columns = A.shape
    inner = min(rows, columns)
    values = Spec((*batch, inner), A.dtype.to_real())
    if not compute_uv:
        return Spec((0,), A.dtype), values, Spec((0,), A.dtype)
    left = (*batch, rows, rows if full_matrices else inner)
    right = (*batch, columns if full_matrices else inner, columns)
    return _matrices(left, A), values, _matrices(right, A)


@rule(flops="9 * numel(A) * columns(A)", batch="leading")
def linalg_eigh(A: Any, UPLO: str = "L", compute_v: bool = True) -> tuple[Spec, Spec]:
    """(eigenvalues, which are real, eigenvectors); without compute_v the latter are empty."""
    check_square(A, "linalg.eigh")
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    check_kernel(A, "linalg_eigh_cpu")
    values = Spec(tuple(A.shape[:-1]), A.dtype.to_real())
    return values, _matrices(A.shape, A) if compute_v else Spec((0,), A.dtype)


@rule(flops="25 * numel(self) * columns(self)", batch="leading")
def linalg_eig(self: Any) -> tuple[Spec, Spec]:
    """(eigenvalues, eigenvectors), complex."""
    check_square(self, "linalg.eig")
    target = self.dtype.to_complex()
    check_kernel(self, "linalg_eig_out_cpu")
    shape = tuple(self.shape)
    return Spec(shape[:-1], target), Spec(shape, target, _columns(shape))


@rule(flops="2 * numel(A) * short_side(A) // 3", batch="leading")
def linalg_lu_factor_ex(A: Any, pivot: bool = True) -> tuple[Spec, Spec, Spec]:
    """(L and U in one matrix, pivots, info)."""
    if A.dim() < 2:
        raise RuntimeError(
            f"torch.lu_factor: Expected tensor with 2 or more dimensions. Got size: {shape_text(A.shape)} instead"
        )
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    check_kernel(A, "lu_cpu")
    *batch, rows, columns = A.shape
    return _matrices(A.shape, A), Spec((*batch, min(rows, columns)), _d.int32), _info(A)


@rule(flops="2 * numel(A) * short_side(A) // 3", batch="leading")
def linalg_lu(A: Any, pivot: bool = True) -> tuple[Spec, Spec, Spec]:
    """(P, L, U)."""
    if A.dim() < 2:
        raise RuntimeError(
            f"linalg.lu: Expected tensor with 2 or more dimensions. Got size: {shape_text(A.shape)} instead"
        )
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    check_kernel(A, "lu_cpu")
    *batch, rows, columns = A.shape
    inner = min(rows, columns)
    shapes = ((*batch, rows, rows), (*batch, rows, inner), (*batch, inner, columns))
    p, lower, upper = (Spec(shape, A.dtype) for shape in shapes)
    return p, lower, upper


@rule(flops="0", batch="leading")
def linalg_lu_unpack(
    LU: Any, pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Spec, Spec, Spec]:
    """(P, L, U) of what lu_factor gave; empty where it is not asked for."""
    if unpack_pivots and pivots.dtype is not _d.int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
            "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    check_matrix(LU, "torch.lu_unpack", "LU")
    *batch, rows, columns = LU.shape
    inner = min(rows, columns)
    if unpack_pivots and (not pivots.dim() or tuple(pivots.shape[:-1]) != tuple(batch)):
        raise RuntimeError(
            f"torch.lu_unpack: LU_pivots of shape {list(pivots.shape)} do not belong to LU of shape {list(LU.shape)}"
        )
    permutation = Spec((*batch, rows, rows) if unpack_pivots else (0,), LU.dtype)
    if not unpack_data:
        return permutation, Spec((0,), LU.dtype), Spec((0,), LU.dtype)
    return permutation, Spec((*batch, rows, inner), LU.dtype), Spec((*batch, inner, columns), LU.dtype)


@rule(flops="2 * numel(self) * short_side(self)")
def linalg_lstsq(self: Any, b: Any, driver: str | None = None) -> tuple[Spec, Spec, Spec, Spec]:
    """(solution, residuals, rank, singular values), the latter three empty where the driver does not give them.

    Whether there are residuals depends on the rank, hence on the data (shape None).
    """
    op = "torch.linalg.lstsq"
    if self.dim() < 2:
        raise RuntimeError(f"{op}: input must have at least 2 dimensions.")
    if b.dim() < 1:
        raise RuntimeError(f"{op}: other must have at least 1 dimension.")
    if self.dtype not in (_d.float32, _d.float64, _d.complex64, _d.complex128):
        raise RuntimeError("This function doesn't handle types other than float and double")
    if self.dtype is not b.dtype:
        raise RuntimeError(
            f"{op}: Expected input and other to have the same dtype, but got input's dtype {self.dtype.cpp} and "
            f"other's dtype {b.dtype.cpp}"
        )
    ahead = self.dim() - b.dim()
    if not 0 <= ahead <= 1:
        raise RuntimeError(
            f"{op}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        )
    vector = is_vector(self, b)
    if ahead == 1 and not vector and self.shape[-2] == b.shape[-2]:
        broadcast(self.shape[:-1], b.shape)
    if self.shape[-2] != b.shape[-1 if vector else -2]:
        raise RuntimeError(f"{op}: input.size(-2) should match other.size({-1 if vector else -2})")
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(f"{op}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    if self.dtype.category < _d.CATEGORY_FLOATING or self.dtype in _HALF:
        raise RuntimeError("This function doesn't handle types other than float and double")
    driver = driver or "gelsy"
    rows, columns = self.shape[-2:]
    batch = broadcast(self.shape[:-2], b.shape[:-1] if vector else b.shape[:-2])
    sides = 1 if vector else b.shape[-1]
    # The solution stands in the memory of max(rows, columns) rows.
    flipped = contiguous_strides((*batch, sides, max(rows, columns)))
    shape, strides = (*batch, columns, sides), (*flipped[:-2], flipped[-1], flipped[-2])
    if vector:
        shape, strides = shape[:-1], strides[:-1]
    real = self.dtype.to_real()
    residuals = Spec(None if rows > columns and driver != "gelsy" else (0,), real)
    rank = Spec((0,) if driver == "gels" else batch, _d.int64)
    values = Spec((*batch, min(rows, columns)) if driver in ("gelsd", "gelss") else (0,), real)
    return Spec(shape, self.dtype, strides), residuals, rank, values


def refuse_complex(op: str, **tolerances: Any) -> None:
    """RuntimeError for a tolerance that is a tensor of complex numbers."""
    for name, value in tolerances.items():
        if is_tensor(value) and value.dtype.is_complex:
            raise RuntimeError(f"{op}: {name} tensor of complex type is not supported. Got {value.dtype.cpp}")


@rule(flops="batches(self) * (8 * long_side(self) * short_side(self) ** 2 + 20 * short_side(self) ** 3)")
def linalg_pinv(self: Any, hermitian: bool = False, tolerances: Sequence[Any] = ()) -> Spec:
    """The transposed shape. Tolerances that are tensors broadcast with the batch."""
    if self.dim() < 2 or self.dtype.category < _d.CATEGORY_FLOATING or self.dtype in _HALF:
        raise RuntimeError(
            f"linalg.pinv({self.dtype.cpp}{{{shape_text(self.shape)}}}): expected a tensor with 2 or more dimensions of "
            "float, double, cfloat or cdouble types"
        )
    if hermitian:
        check_square(self, "linalg.eigh")
    check_kernel(self, "linalg_eigh_cpu" if hermitian else "linalg_svd_cpu")
    *batch, rows, columns = self.shape
    refuse_complex("torch.linalg.pinv", **dict(zip(("atol", "rtol"), tolerances)))
    for tolerance in tolerances:
        if tolerance is not None:
            batch = broadcast(tolerance.shape, batch)
    return Spec((*batch, columns, rows), self.dtype)


@rule(flops="20 * numel(self) * columns(self)", batch="leading")  # about ten products
def linalg_matrix_exp(self: Any) -> Spec:
    """The shape of self, contiguous."""
    check_square(self, "linalg.matrix_exp")
    check_inexact(self, "linalg.matrix_exp")
    return Spec(tuple(self.shape), self.dtype, None, self.dtype.opmath)


@rule(flops="numel(self) * columns(self) // 3", batch="leading")
def linalg_ldl_factor_ex(self: Any) -> tuple[Spec, Spec, Spec]:
    """(L and D in one matrix, pivots, info)."""
    check_square(self, "torch.linalg.ldl_factor_ex")
    check_inexact(self, "torch.linalg.ldl_factor_ex")
    check_kernel(self, "ldl_factor_kernel_cpu")
    return _matrices(self.shape, self), Spec(tuple(self.shape[:-1]), _d.int32), _info(self)


@rule(flops="2 * numel(out) * columns(LD)", batch="leading")
def linalg_ldl_solve(LD: Any, B: Any, pivots: Any) -> Spec:
    """X with A @ X = B, from the factors of A."""
    op = "torch.linalg.ldl_solve"
    check_square(LD, op, "LD")
    check_inexact(LD, op)
    if B.dim() < 2:
        wrap_dim(-2, B.dim())
    if B.dtype is not LD.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {B.dtype.cpp} and A of type {LD.dtype.cpp} instead."
        )
    if LD.shape[-1] != B.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for {op}: each A matrix is {LD.shape[-2]} by {LD.shape[-1]} but each b matrix is "
            f"{B.shape[-2]} by {B.shape[-1]}"
        )
    if tuple(pivots.shape) != tuple(LD.shape[:-1]):
        raise RuntimeError(
            f"{op}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{shape_text(pivots.shape)} instead"
        )
    if pivots.dtype.category != _d.CATEGORY_INTEGER:
        raise RuntimeError(f"{op}: Expected pivots to be integers. Got {pivots.dtype.cpp}")
    check_kernel(LD, "ldl_solve_kernel_cpu")
    return _matrices((*broadcast(LD.shape[:-2], B.shape[:-2]), *B.shape[-2:]), LD)
