"""Products of matrices."""

from __future__ import annotations

from typing import Any

from ..._dispatch import ops
from ..._tensor import Tensor
from ..batched import Level, line_up
from ..kinds import count_of, front

__all__ = ["added", "added_batches", "added_outer", "inner", "linear", "outer", "product", "solved"]


def product(
    level: Level, a: Tensor, b: Tensor, rows: int | None = None, columns: int | None = None, name: str = ""
) -> Any:
    """`a @ b`; `rows`, `columns`: how many dimensions the operands must have, where not any: RuntimeError for others."""
    if rows is not None and (a.dim(), b.dim()) != (rows, columns):
        raise RuntimeError(
            f"Shape mismatch: Got incorrect dims for {name}(a, b). a has dim {a.dim()}and b has dim {b.dim()}but expected them to have dim "
            f"{rows} and dim {columns}"
        )
    return level.wrap(_product(a, b, level)) if a.dim() and b.dim() else None


def linear(level: Level, input: Tensor, weight: Tensor, bias: Tensor | None) -> Any:
    """`input @ weight.T + bias`."""
    if not input.dim() or weight.dim() != 2:
        return None
    flipped = level.wrap(weight._value.transpose(-2, -1)) if level(weight) else weight.transpose(-2, -1)
    made: Any = level.wrap(_product(input, flipped, level)) if level(input) or level(flipped) else input @ flipped
    return made if bias is None else made + bias


def _product(a: Tensor, b: Tensor, level: Level) -> Tensor:
    """`a @ b` of every example."""
    row, column = a.dim() == 1, b.dim() == 1
    width = max(a.dim() + row, b.dim() + column)
    left = _as_matrix(a, -2, level) if row else a
    right = _as_matrix(b, -1, level) if column else b
    result = line_up(left, level, width) @ line_up(right, level, width)
    if row:
        result = result.squeeze(-2 + column) if column else result.squeeze(-2)
    return result.squeeze(-1) if column else result


def _as_matrix(t: Tensor, place: int, level: Level) -> Any:
    return level.wrap(t._value.unsqueeze(place)) if level(t) else t.unsqueeze(place)


def added(
    level: Level, self: Tensor, a: Tensor, b: Tensor, beta: Any, alpha: Any, rows: int, columns: int, name: str
) -> Any:
    """`beta * self + alpha * (a @ b)`; `rows`, `columns`: how many dimensions the factors have."""
    if (a.dim(), b.dim()) != (rows, columns) or self.dim() > (rows if rows == columns else 1):
        return None
    made = product(level, a, b, name=name) if level(a) or level(b) else a @ b
    return _sum(self, made, beta, alpha)


def added_batches(level: Level, self: Tensor, a: Tensor, b: Tensor, beta: Any, alpha: Any) -> Any:
    """`beta * self + alpha * (a @ b).sum(0)`."""
    if (a.dim(), b.dim()) != (3, 3) or self.dim() > 2 or a.shape[0] != b.shape[0]:
        return None
    return _sum(self, ops.sum(a @ b, [0]), beta, alpha)


def added_outer(level: Level, self: Tensor, a: Tensor, b: Tensor, beta: Any, alpha: Any) -> Any:
    """`beta * self + alpha * outer(a, b)`."""
    return None if (a.dim(), b.dim()) != (1, 1) or self.dim() > 2 else _sum(self, outer(level, a, b), beta, alpha)


def outer(level: Level, a: Tensor, b: Tensor) -> Any:
    """The products of all elements of two vectors."""
    return None if (a.dim(), b.dim()) != (1, 1) else a.unsqueeze(1) * b.unsqueeze(0)


def inner(level: Level, a: Tensor, b: Tensor) -> Any:
    """The sum of the products of two vectors, the first conjugated."""
    if (a.dim(), b.dim()) != (1, 1) or a.shape != b.shape or a.dtype is not b.dtype:
        return None
    return ops.dot(a.conj(), b)


def _sum(self: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor | None:
    """`beta * self + alpha * product`, where NaN in `self` is nothing to a `beta` of 0."""
    if not self.dtype.category > 1 and any(isinstance(f, float) for f in (beta, alpha)):
        return None  # the example's own call says how they are rounded, or refused
    if self.dtype is not product.dtype:
        return None
    shape = product.shape
    if any(n not in (1, wanted) for n, wanted in zip(reversed(self.shape), reversed(shape))):
        return None
    scaled = product if alpha == 1 else product * alpha
    return scaled if beta == 0 else (self if beta == 1 else self * beta) + scaled


def solved(level: Level, A: Tensor, B: Tensor, left: bool, check_errors: bool) -> Any:
    """(solutions of linear equations, their factors, pivots, info)."""
    vectors = B.dim() == 1 or (B.dim() == A.dim() - 1 and B.shape == A.shape[:-1])
    if A.dim() < 2 or not B.dim():
        return None
    count = count_of(level, [A, B])
    core = 1 if vectors else 2
    width = max(A.dim() - 2, B.dim() - core)
    a, b = (level.wrap(front(level, t, count)) for t in (A, B))
    given = line_up(a, level, width + 2), line_up(b, level, width + core)
    return tuple(map(level.wrap, ops.linalg_solve_ex(*given, left=left, check_errors=check_errors)))
