"""Differences and integrals along one dimension."""

from __future__ import annotations

from typing import Any

from mindtorch_v2 import _dtype
from mindtorch_v2._generated import functions as F
from mindtorch_v2._tensor import Tensor


def diff(
    self: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """The n-th difference of neighbours. RuntimeError for a 0-dim tensor or a negative n."""
    if not self.dim():
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n == 0:
        return F.clone(self)
    parts = [part for part in (prepend, self, append) if part is not None]
    x = F.cat(parts, dim) if len(parts) > 1 else self
    for _ in range(min(n, x.shape[dim])):
        length = max(x.shape[dim] - 1, 0)
        later, earlier = (
            F.narrow(x, dim, x.shape[dim] - length, length),
            F.narrow(x, dim, 0, length),
        )
        x = F.logical_xor(later, earlier) if x.dtype is _dtype.bool else F.sub(later, earlier)
    return x


def _ends(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """All but the first, and all but the last."""
    n = x.shape[dim] - 1
    return F.narrow(x, dim, 1, n), F.narrow(x, dim, 0, n)


def _widths(y: Tensor, x: Tensor, dim: int) -> Any:
    if x.dim() == 1 and y.dim() > 1:
        shape = [1] * y.dim()
        shape[dim] = x.shape[0]
        x = F.reshape(x, shape)
    later, earlier = _ends(x, dim if x.dim() == y.dim() else dim % y.dim() - y.dim() + x.dim())
    return F.sub(later, earlier)


def trapezoid_x(y: Tensor, x: Tensor, dim: int = -1) -> Tensor:
    """The integral over points `x` by the trapezoidal rule. RuntimeError for boolean inputs."""
    if y.shape[dim] == 0:
        return F.sum(F.mul(y, 0), [dim])
    later, earlier = _ends(y, dim)
    return F.div(F.sum(F.mul(_widths(y, x, dim), F.add(later, earlier)), [dim]), 2.0)


def trapezoid_dx(y: Tensor, dx: Any = 1, dim: int = -1) -> Tensor:
    """The integral over equal steps by the trapezoidal rule."""
    if y.shape[dim] == 0:
        return F.sum(F.mul(y, 0), [dim])
    later, earlier = _ends(y, dim)
    return F.mul(F.div(F.sum(F.add(later, earlier), [dim]), 2.0), dx)


def trapz_x(y: Tensor, x: Tensor, dim: int = -1) -> Tensor:
    """`trapezoid` under its old name."""
    return trapezoid_x(y, x, dim=dim)


def trapz_dx(y: Tensor, dx: float = 1, dim: int = -1) -> Tensor:
    """`trapezoid` under its old name."""
    return trapezoid_dx(y, dx=dx, dim=dim)


def cumulative_trapezoid_x(y: Tensor, x: Tensor, dim: int = -1) -> Tensor:
    """The running integral over points `x`."""
    later, earlier = _ends(y, dim)
    return F.div(F.cumsum(F.mul(_widths(y, x, dim), F.add(later, earlier)), dim), 2.0)


def cumulative_trapezoid_dx(y: Tensor, dx: Any = 1, dim: int = -1) -> Tensor:
    """The running integral over equal steps."""
    later, earlier = _ends(y, dim)
    return F.mul(F.cumsum(F.add(later, earlier), dim), dx / 2.0)
