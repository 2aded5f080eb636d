"""Errors that kernels raise and users catch, and what they say of a matrix that failed."""

from __future__ import annotations

from collections.abc import Sequence


class LinAlgError(RuntimeError):
    """A matrix does not allow the operation: it is singular, or not positive-definite, or an algorithm did not converge."""


LinAlgError.__module__, LinAlgError.__name__, LinAlgError.__qualname__ = (
    "torch.linalg",
    "_LinAlgError",
    "LinAlgError",
)  # as PyTorch's says; found as what it is

# `{}` is the info of the matrix: the number of the column that failed.
CHOLESKY = (
    "The factorization could not be completed because the input is not positive-definite "
    "(the leading minor of order {} is not positive-definite)."
)
INVERSE = "The diagonal element {} is zero, the inversion could not be completed because the input matrix is singular."
SOLVE = "The solver failed because the input matrix is singular."
LU = (
    "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the factorization, "
    "consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
)


def refuse_info(info: Sequence[int], batched: bool, api: str, message: str) -> None:
    """The error for the first matrix whose info is not 0: LinAlgError, of a factorisation into L and U RuntimeError."""
    for place, column in enumerate(info):
        if column:
            where = f"(Batch element {place}): " if batched else ""
            kind = RuntimeError if message is LU else LinAlgError
            raise kind(f"{api}: {where}{message.format(column)}")
