"""The helpers of `torch._linalg_utils`, of which `lobpcg` is made in PyTorch."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch


def is_sparse(A: Any) -> bool:
    """Whether `A` is a sparse tensor of coordinates. TypeError for what is no tensor."""
    if not isinstance(A, torch.Tensor):
        raise TypeError(f"expected Tensor but got {type(A)}")
    return A.is_sparse


def get_floating_dtype(A: Any) -> Any:
    """The dtype in which linear algebra of `A` is done: its own, or float32 for integers."""
    return A.dtype if A.dtype in (torch.float16, torch.float32, torch.float64) else torch.float32


def matmul(A: Any, B: Any) -> Any:
    """A @ B, and B without A."""
    if A is None:
        return B
    return torch.sparse.mm(A, B) if is_sparse(A) else torch.matmul(A, B)


def bform(X: Any, A: Any, Y: Any) -> Any:
    """X.mT @ A @ Y."""
    return matmul(X.mT, matmul(A, Y))


def qform(A: Any, S: Any) -> Any:
    """S.mT @ A @ S."""
    return bform(S, A, S)


def basis(A: Any) -> Any:
    """An orthonormal basis of the space that the columns of `A` span."""
    return torch.linalg.qr(A).Q
