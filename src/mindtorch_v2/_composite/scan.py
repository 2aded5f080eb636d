"""Differences and integrals along one dimension."""

from __future__ import annotations

from typing import Any

from mindtorch_v2 import _dtype
from mindtorch_v2._generated import functions as F
from mindtorch_v2._rules._common import wrap_dim, wrap_existing_dim
from mindtorch_v2._tensor import Tensor


def diff(
    self: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The n-th difference of neighbours. RuntimeError for a 0-dim tensor or a negative n."""
    if not self.dim():
        raise RuntimeError("diff expects input to be at least one-dimensional")
    wrap_dim(dim, self.dim())
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    for part in (prepend, append):
        if part is not None and part.dim() != self.dim():
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
        for at in range(self.dim()):
            if part is not None and part.shape[at] != self.shape[at] and at != dim % self.dim():
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input except along the differencing dimension; "
                    f"input.size({at}) = {self.shape[at]}, but got tensor.size({at}) = {part.shape[at]}"
                )
    if n == 0:
        if out is not None and out.dtype is not self.dtype:
            raise RuntimeError(f"expected scalar_type {self.dtype.cpp} but found {out.dtype.cpp}")
        return F.clone(self) if out is None else F.narrow_copy(self, 0, 0, self.shape[0], out=out)
    parts = [part for part in (prepend, self, append) if part is not None]
    x = F.cat(parts, dim) if len(parts) > 1 else self
    steps = min(n, x.shape[dim])
    for step in range(steps):
        length = max(x.shape[dim] - 1, 0)
        later, earlier = (
            F.narrow(x, dim, x.shape[dim] - length, length),
            F.narrow(x, dim, 0, length),
        )
        function = F.logical_xor if x.dtype is _dtype.bool else F.sub
        x = function(later, earlier, out=out) if out is not None and step == steps - 1 else function(later, earlier)
    return x if out is None or steps else F.sub(x, x, out=out)


def _check(name: str, y: Tensor, x: Tensor | None = None) -> None:
    """RuntimeError for boolean points or values."""
    if x is not None and (y.dtype is _dtype.bool or x.dtype is _dtype.bool):
        raise RuntimeError(f"{name}: received a bool input for `x` or `y`, but bool is not supported")
    if y.dtype is _dtype.bool:
        raise RuntimeError(f"{name}: received a bool input for `y`, but bool is not supported")


def _nothing(y: Tensor, dim: int) -> Tensor:
    """The integral over no points at all: zeros of y's dtype."""
    shape = list(y.shape)
    del shape[dim]
    return F.new_zeros(y, shape)


def _ends(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """All but the first, and all but the last."""
    n = x.shape[dim] - 1
    if n < 0:
        return x, x
    return F.narrow(x, dim, 1, n), F.narrow(x, dim, 0, n)


def _points(y: Tensor, x: Tensor, dim: int, name: str) -> Tensor:
    """The points of each value, in as many dimensions as the values have. RuntimeError unless there is one for each."""
    if x.dim() == 1:
        if x.shape[0] != y.shape[dim]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        shape = [1] * y.dim()
        shape[dim] = x.shape[0]
        return F.reshape(x, shape)
    if x.dim() < y.dim():
        return F.reshape(x, [*[1] * (y.dim() - x.dim()), *x.shape])
    return x


def trapezoid_x(y: Tensor, x: Tensor, dim: int = -1) -> Tensor:
    """The integral over points `x` by the trapezoidal rule. RuntimeError for boolean inputs."""
    at = _existing_dim(y, dim)
    if not y.shape[at]:
        return _nothing(y, at)
    _check("trapezoid", y, x)
    (later, earlier), (right, left) = _ends(y, at), _ends(_points(y, x, at, "trapezoid"), at - y.dim())
    return F.div(F.sum(F.mul(F.add(later, earlier), F.sub(right, left)), [at]), 2.0)


def trapezoid_dx(y: Tensor, dx: Any = 1, dim: int = -1) -> Tensor:
    """The integral over equal steps by the trapezoidal rule. RuntimeError for booleans."""
    at = _existing_dim(y, dim)
    if not y.shape[at]:
        return _nothing(y, at)
    if isinstance(dx, bool):
        raise RuntimeError("trapezoid: Currently, we only support dx as a real number.")
    _check("trapezoid", y)
    later, earlier = _ends(y, at)
    return F.mul(F.div(F.sum(F.add(later, earlier), [at]), 2.0), dx)


def trapz_x(y: Tensor, x: Tensor, dim: int = -1) -> Tensor:
    """`trapezoid` under its old name."""
    return trapezoid_x(y, x, dim=dim)


def trapz_dx(y: Tensor, dx: float = 1, dim: int = -1) -> Tensor:
    """`trapezoid` under its old name."""
    return trapezoid_dx(y, dx=dx, dim=dim)


def cumulative_trapezoid_x(y: Tensor, x: Tensor, dim: int = -1) -> Tensor:
    """The running integral over points `x`. RuntimeError for boolean inputs."""
    _check("cumulative_trapezoid", y, x)
    at = _sliced_dim(y, dim)
    (later, earlier), (right, left) = _ends(y, at), _ends(_points(y, x, at, "cumulative_trapezoid"), at - y.dim())
    return F.div(F.cumsum(F.mul(F.add(later, earlier), F.sub(right, left)), at), 2.0)


def cumulative_trapezoid_dx(y: Tensor, dx: Any = 1, dim: int = -1) -> Tensor:
    """The running integral over equal steps. RuntimeError for booleans."""
    if isinstance(dx, bool):
        raise RuntimeError("cumulative_trapezoid: Currently, we only support dx as a real number.")
    _check("cumulative_trapezoid", y)
    at = _sliced_dim(y, dim)
    later, earlier = _ends(y, at)
    return F.mul(F.cumsum(F.add(later, earlier), at), dx / 2.0)


def _existing_dim(y: Tensor, dim: int) -> int:
    if not y.dim():
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_existing_dim(dim, y.dim())


def _sliced_dim(y: Tensor, dim: int) -> int:
    if not y.dim():
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    return wrap_existing_dim(dim, y.dim())
