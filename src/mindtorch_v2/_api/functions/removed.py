"""Functions that torch once had. Programs look at their names; a call says what serves in their place, in PyTorch's words."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["eig", "lstsq", "matrix_rank", "solve", "symeig"]

_GONE = "This function was deprecated since version 1.9 and is now removed."

_EIG = """\
 `torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather than real tensors mimicking complex tensors.

L, _ = torch.eig(A) should be replaced with:
L_complex = torch.linalg.eigvals(A)

and

L, V = torch.eig(A, eigenvectors=True) should be replaced with:
L_complex, V_complex = torch.linalg.eig(A)"""

_LSTSQ = """\
 `torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`.
`torch.linalg.lstsq` has reversed arguments and does not return the QR decomposition in the returned tuple (although it returns other information about the problem).

To get the QR decomposition consider using `torch.linalg.qr`.

The returned solution in `torch.lstsq` stored the residuals of the solution in the last m - n columns of the returned value whenever m > n. In torch.linalg.lstsq, the residuals are in the field 'residuals' of the returned named tuple.

The unpacking of the solution, as in
X, _ = torch.lstsq(B, A).solution[:A.size(1)]
should be replaced with:
X = torch.linalg.lstsq(A, B).solution"""

_MATRIX_RANK = """
Please use the `torch.linalg.matrix_rank` function instead. The parameter 'symmetric' was renamed in `torch.linalg.matrix_rank()` to 'hermitian'."""

_SOLVE = """\
 `torch.solve` is deprecated in favor of `torch.linalg.solve`. `torch.linalg.solve` has its arguments reversed and does not return the LU factorization.

To get the LU factorization see `torch.lu`, which can be used with `torch.lu_solve` or `torch.lu_unpack`.
X = torch.solve(B, A).solution should be replaced with:
X = torch.linalg.solve(A, B)"""

_SYMEIG = """\
 The default behavior has changed from using the upper triangular portion of the matrix by default to using the lower triangular portion.

L, _ = torch.symeig(A, upper=upper) should be replaced with:
L = torch.linalg.eigvalsh(A, UPLO='U' if upper else 'L')

and

L, V = torch.symeig(A, eigenvectors=True) should be replaced with:
L, V = torch.linalg.eigh(A, UPLO='U' if upper else 'L')"""


def eig(self: Any, eigenvectors: bool = False, *, e: Any = None, v: Any = None) -> NoReturn:
    """Raises RuntimeError: `torch.linalg.eig` serves."""
    raise RuntimeError(_GONE + _EIG)


def lstsq(input: Any, A: Any, *, out: Any = None) -> NoReturn:
    """Raises RuntimeError: `torch.linalg.lstsq` serves."""
    raise RuntimeError(_GONE + _LSTSQ)


def matrix_rank(input: Any, tol: Any = None, symmetric: bool = False, *, out: Any = None) -> NoReturn:
    """Raises RuntimeError: `torch.linalg.matrix_rank` serves."""
    raise RuntimeError(_GONE + _MATRIX_RANK)


def solve(input: Any, A: Any, *, out: Any = None) -> NoReturn:
    """Raises RuntimeError: `torch.linalg.solve` serves."""
    raise RuntimeError(_GONE + _SOLVE)


def symeig(input: Any, eigenvectors: bool = False, upper: bool = True, *, out: Any = None) -> NoReturn:
    """Raises RuntimeError: `torch.linalg.eigh` serves."""
    raise RuntimeError(_GONE + _SYMEIG)
