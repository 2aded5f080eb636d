"""`torch.autograd.functional`: Jacobians, Hessians and products with them, by reverse mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._autograd.api import grad
from .._dispatch import ops
from .._tensor import Tensor


def _as_tuple(value: Any) -> tuple[bool, tuple]:
    return (True, tuple(value)) if isinstance(value, (tuple, list)) else (False, (value,))


def _leaves(inputs: tuple, create_graph: bool) -> tuple:
    if create_graph:
        return tuple(t.view_as(t) if t.requires_grad else t.detach().requires_grad_() for t in inputs)
    return tuple(t.detach().requires_grad_() for t in inputs)


def vjp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(outputs, vector-Jacobian product) of `func` at `inputs`."""
    many, points = _as_tuple(inputs)
    points = _leaves(points, create_graph)
    outputs = func(*points)
    several, outs = _as_tuple(outputs)
    vectors = None if v is None else _as_tuple(v)[1]
    found = grad(outs, points, vectors, create_graph=create_graph, allow_unused=True, materialize_grads=not strict)
    shown = outs if create_graph else tuple(o.detach() for o in outs)
    return (shown if several else shown[0]), (found if many else found[0])


def jacobian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of `func` at `inputs`: for each output and input a tensor of shape (*output, *input)."""
    many, points = _as_tuple(inputs)
    points = _leaves(points, create_graph)
    several, outs = _as_tuple(func(*points))
    rows = []
    for out in outs:
        parts: list[list[Tensor]] = [[] for _ in points]
        flat = ops.reshape(out, (-1,))
        for index in range(out.numel()):
            found = grad(
                flat[index],
                points,
                retain_graph=True,
                create_graph=create_graph,
                allow_unused=True,
                materialize_grads=True,
            )
            for column, part in zip(parts, found):
                column.append(part)
        row = tuple(
            ops.reshape(ops.stack(column), tuple(out.shape) + tuple(point.shape))
            if column
            else ops.zeros(tuple(out.shape) + tuple(point.shape), dtype=point.dtype)
            for column, point in zip(parts, points)
        )
        rows.append(row if many else row[0])
    return tuple(rows) if several else rows[0]


def hessian(
    func: Callable, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False, **_: Any
) -> Any:
    """The Hessian of a scalar function."""
    many, _points = _as_tuple(inputs)

    def gradient(*points: Tensor) -> Any:
        out = func(*points)
        found = grad(out, points, create_graph=True, allow_unused=True, materialize_grads=True)
        return found if many else found[0]

    return jacobian(gradient, inputs, create_graph=create_graph)


def hvp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(output, Hessian-vector product) of a scalar function."""
    many, points = _as_tuple(inputs)
    points = _leaves(points, create_graph)
    output = func(*points)
    first = grad(output, points, create_graph=True, allow_unused=True, materialize_grads=True)
    vectors = _as_tuple(v)[1] if v is not None else None
    second = grad(first, points, vectors, create_graph=create_graph, allow_unused=True, materialize_grads=True)
    return (output if create_graph else output.detach()), (second if many else second[0])


vhp = hvp
