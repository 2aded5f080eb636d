"""`torch.lobpcg`: the outer eigenpairs of large symmetric matrices, by locally optimal steps over blocks of vectors.

The method is that of Knyazev, "Toward the optimal preconditioned eigensolver" (2001), with a basis of each step's space that is orthonormal in B, as in
Duersch, Shao, Yang and Gu, "A robust and efficient implementation of LOBPCG" (2018).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from ._tensor import Tensor

__all__ = ["lobpcg"]

_STEPS = 1000


class LOBPCG:
    """One matrix's iteration: what a tracker is called with after each step.

    `ivars`: istep, converged_count. `tvars`: rerr, the relative residuals. `E`, `X`, `R`: eigenvalues, vectors and residuals of all vectors of the block.
    """

    def __init__(
        self,
        A: Tensor,
        B: Tensor | None,
        X: Tensor,
        iK: Tensor | None,
        iparams: dict[str, int],
        fparams: dict[str, float],
        bparams: dict[str, bool],
        method: str,
        tracker: Callable[[Any], Any] | None,
    ) -> None:
        self.A, self.B, self.iK, self.method, self.tracker = A, B, iK, method, tracker
        self.iparams, self.fparams, self.bparams = iparams, fparams, bparams
        self.ivars: dict[str, int] = {"istep": 0, "converged_count": 0}
        self.fvars: dict[str, float] = {}
        self.bvars: dict[str, bool] = {}
        self.tvars: dict[str, Tensor] = {}
        self.fvars["X_norm"] = scale = float(X.norm())
        self.fvars["A_norm"] = float((A @ X).norm()) / scale
        self.fvars["B_norm"] = 1.0 if B is None else float((B @ X).norm()) / scale
        self.P: Tensor | None = None
        self._choose(self._orthonormal(X))

    def _b(self, x: Tensor) -> Tensor:
        return x if self.B is None else self.B @ x

    def _orthonormal(self, S: Tensor, against: Tensor | None = None) -> Tensor:
        """A basis of the span of S, orthonormal in B, of what is not in the span of `against`; directions that are next to nothing are left out."""
        eps = torch.finfo(S.dtype).eps
        for _ in range(2):  # once more, since the first time subtracts what is nearly equal
            if against is not None:
                S = S - against @ (against.mT @ self._b(S))
            scale = (S * self._b(S)).sum(0).clamp_min(0).sqrt()
            kept = scale > 0
            S = S[:, kept] / scale[kept]
            if not S.shape[1]:
                return S
            values, vectors = torch.linalg.eigh(S.mT @ self._b(S))
            kept = values > eps * S.shape[0] * values[-1]
            S = (S @ vectors[:, kept]) / values[kept].sqrt()
        return S

    def _choose(self, S: Tensor) -> Tensor:
        """The wanted Ritz vectors of the span of S, which is orthonormal in B; gives their coordinates in S."""
        values, Z = torch.linalg.eigh(S.mT @ (self.A @ S))
        if self.bparams["largest"]:
            values, Z = values.flip(0), Z.flip(1)
        n = self.iparams["n"]
        self.E, Z = values[:n], Z[:, :n]
        self.X = S @ Z
        self.R = self.A @ self.X - self._b(self.X) * self.E
        norms = self.X.norm(dim=0) * (self.fvars["A_norm"] + self.E.abs() * self.fvars["B_norm"])
        self.tvars["rerr"] = self.R.norm(dim=0) / norms
        open_ = (self.tvars["rerr"] >= self.fparams["tol"]).nonzero()
        self.ivars["converged_count"] = int(open_[0]) if open_.numel() else n
        return Z

    def run(self) -> None:
        """Steps until the first k vectors have converged, or there were enough."""
        k, most = self.iparams["k"], self.iparams["niter"]
        while self.ivars["converged_count"] < k and (most < 0 or self.ivars["istep"] < most):
            self._step()
            self.ivars["istep"] += 1
            if self.tracker is not None:
                self.tracker(self)

    def _step(self) -> None:
        """The best vectors of the span of the block, its preconditioned residuals, and the last step."""
        done = self.ivars["converged_count"]
        W = self.R[:, done:] if self.iK is None else self.iK @ self.R[:, done:]
        parts = [W] if self.P is None else [W, self.P[:, done:]]
        Q = self._orthonormal(torch.cat(parts, 1), self.X)
        n = self.X.shape[1]
        S = torch.cat([self.X, Q], 1)
        Z = self._choose(S)
        self.P = S[:, n:] @ Z[n:]


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Callable[[Any], Any] | None = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """(eigenvalues [..., k], eigenvectors [..., m, k]) of the symmetric A, or of A x = e B x, the largest ones unless `largest` is False.

    Args:
        A: [..., m, m], dense or sparse; differentiable where it is dense, as a symmetric matrix.
        X: a first guess, [..., m, n]; a random one if it is None.
        iK: a preconditioner, [..., m, m].
        niter: the most steps, negative for as many as it takes.
        tol: of residuals, relative to the norms of A and B.
        method, ortho_*: accepted for PyTorch's sake; there is one way here, which is stable.

    ValueError where m is less than three times the number of vectors.
    """
    rows, columns = A.shape[-2:]
    if rows != columns:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    for name, other in (("B", B), ("iK", iK)):
        if other is not None and other.requires_grad:
            raise ValueError(f"lobpcg: {name} may not require a gradient")
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if X is None else X.shape[-1]) if n is None else n
    if rows < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={rows}) is smaller than 3 x the number of requested "
            f"eigenpairs (={n})"
        )
    if method not in (None, "ortho", "basic"):
        raise ValueError(f"lobpcg: method must be 'ortho' or 'basic', but got {method!r}")
    dtype = A.dtype if A.is_floating_point() else torch.get_default_dtype()
    tolerance = torch.finfo(dtype).eps ** 0.5 if tol is None else tol
    iparams = {"m": rows, "n": n, "k": k, "niter": _STEPS if niter is None else niter}
    bparams = {"largest": True if largest is None else largest}
    batch = tuple(A.shape[:-2])
    start = torch.randn((*batch, rows, n), dtype=dtype, device=A.device) if X is None else X
    with torch.no_grad():
        pairs = []
        for index in _places(batch):
            one = LOBPCG(
                _at(A, index).to(dtype),
                None if B is None else _at(B, index),
                _at(start, index),
                None if iK is None else _at(iK, index),
                iparams,
                {"tol": tolerance},
                bparams,
                method or "ortho",
                tracker,
            )
            one.run()
            pairs.append((one.E[:k], one.X[:, :k]))
        E = torch.stack([values for values, _ in pairs]).reshape((*batch, k))
        V = torch.stack([vectors for _, vectors in pairs]).reshape((*batch, rows, k))
    if A.requires_grad and torch.is_grad_enabled():
        return _differentiable(A, B, E, V)
    return E, V


def _places(batch: tuple[int, ...]) -> list[tuple[int, ...]]:
    places: list[tuple[int, ...]] = [()]
    for size in batch:
        places = [(*place, i) for place in places for i in range(size)]
    return places


def _at(matrices: Tensor, index: tuple[int, ...]) -> Tensor:
    """One matrix of a batch; a single one serves all."""
    for place in index[-(matrices.dim() - 2) :] if matrices.dim() > 2 else ():
        matrices = matrices[place]
    return matrices


def _differentiable(A: Tensor, B: Tensor | None, E: Tensor, V: Tensor) -> tuple[Tensor, Tensor]:
    """The same values with a history: what first order perturbation theory says of a symmetric A.

    de = v^T dA v, and dv = (e B - A)^+ dA v in the complement of v, where values are apart.
    """
    if B is not None:
        raise ValueError("lobpcg: backward with B is not supported")
    symmetric = (A + A.mT) / 2
    image = symmetric @ V
    values = (V * image).sum(-2)
    with torch.no_grad():
        identity = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
        shifted = E[..., :, None, None] * identity - symmetric.unsqueeze(-3)
        inverse = torch.linalg.pinv(
            shifted, atol=1e3 * torch.finfo(A.dtype).eps ** 0.5 * float(E.abs().max()), hermitian=True
        )
    residual = image - V * E.unsqueeze(-2)
    moved = (inverse @ residual.mT.unsqueeze(-1)).squeeze(-1).mT
    return E + (values - values.detach()), V + (moved - moved.detach())
