"""`torch.svd_lowrank` and `torch.pca_lowrank`: decompositions of matrices of low rank by products with random vectors.

The method is that of Halko, Martinsson and Tropp, "Finding structure with randomness" (2009), algorithms 4.4 and 5.1.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from ._tensor import Tensor

__all__ = ["pca_lowrank", "svd_lowrank"]


def get_approximate_basis(A: Tensor, q: int, niter: int | None = 2, M: Tensor | None = None) -> Tensor:
    """An orthonormal basis, [..., m, q], of what the matrix `A - M`, [..., m, n], maps vectors to, approximately.

    Args:
        q: how many vectors.
        niter: steps of subspace iteration, which make it better.
    """
    steps = 2 if niter is None else niter
    target = A if M is None else A - M
    basis = torch.linalg.qr(target @ torch.randn(A.shape[-1], q, dtype=_dtype_of(A), device=A.device)).Q
    for _ in range(steps):
        basis = torch.linalg.qr(target.mH @ basis).Q
        basis = torch.linalg.qr(target @ basis).Q
    return basis


def _dtype_of(A: Tensor) -> Any:
    """The dtype of the matrix, of the default one if it is of integers."""
    return A.dtype if A.is_floating_point() or A.is_complex() else torch.get_default_dtype()


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V) with `A - M` about `U @ diag(S) @ V.mH`, of the `q` largest singular values.

    Args:
        A: [..., m, n].
        q: a guess of the rank, a little too large.
        niter: steps of subspace iteration.
        M: the mean, of a shape that is broadcast to that of A.
    """
    q = 6 if q is None else q
    target = A if M is None else A - M.broadcast_to(A.shape)
    m, n = A.shape[-2:]
    wide = m < n
    if wide:
        target = target.mH
    basis = get_approximate_basis(target, q, niter)
    U, S, Vh = torch.linalg.svd(basis.mH @ target, full_matrices=False)
    U, V = basis @ U, Vh.mH
    return (V, S, U) if wide else (U, S, V)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V) of `svd_lowrank`, of the rows of `A` less their mean; the columns of V are the principal directions.

    Args:
        A: [..., m, n].
        q: how many, min(6, m, n) unless said.
        center: take the mean off.

    Raises:
        ValueError: if `q` or `niter` is negative, or `q` greater than m or n.
    """
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not (0 <= q <= min(m, n)):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if not (niter >= 0):
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(dim=-2, keepdim=True) if center else A, q, niter=niter)
