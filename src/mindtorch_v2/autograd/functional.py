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


def jvp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(outputs, Jacobian-vector product) of `func` at `inputs`, by a backward pass of a backward pass.

    Args:
        v: a tensor like each input; a number 1 if the input has one element and nothing is given.
        create_graph: both results can be differentiated.
        strict: refuse outputs that do not depend on the inputs, whose product is zero otherwise.

    Raises:
        RuntimeError: if `v` is missing or has other shapes; with `strict`, if an output does not depend on the inputs.
    """
    many, points = _as_tuple(inputs)
    points = _leaves(points, create_graph)
    if v is None:
        if len(points) != 1 or points[0].numel() != 1:
            raise RuntimeError(
                "The vector v can only be None if the input to the user-provided function is a single Tensor with a single element."
            )
        vectors = (ops.ones_like(points[0]),)
    else:
        vectors = _as_tuple(v)[1]
        _check_vectors(vectors, points, many)
    several, outs = _as_tuple(func(*points))
    if strict:
        for number, out in enumerate(outs):
            if not out.requires_grad:
                raise RuntimeError(
                    f"Output {number} of the user-provided function does not require gradients. The outputs must be "
                    "computed in a differentiable manner from the input when running in strict mode."
                )
    # The derivative of the vector-Jacobian product with respect to its vector, which enters linearly.
    weights = tuple(ops.zeros_like(out).requires_grad_() for out in outs)
    depend = [(out, w) for out, w in zip(outs, weights) if out.requires_grad]
    found: tuple = (None,) * len(outs)
    if depend:
        back = grad([out for out, _ in depend], points, [w for _, w in depend], create_graph=True, allow_unused=True)
        pairs = [(b, x) for b, x in zip(back, vectors) if b is not None and b.requires_grad]
        if pairs:
            found = grad(
                [b for b, _ in pairs], weights, [x for _, x in pairs], create_graph=create_graph, allow_unused=True
            )
    products = tuple(ops.zeros_like(out) if p is None else p for p, out in zip(found, outs))
    shown = outs if create_graph else tuple(out.detach() for out in outs)
    return (shown if several else shown[0]), (products if several else products[0])


def _check_vectors(vectors: tuple, points: tuple, many: bool) -> None:
    """RuntimeError unless there is a vector for each point, of its shape."""
    if len(vectors) != len(points):
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(points)} but got {len(vectors)}."
            if many
            else "The given v should contain a single Tensor."
        )
    for number, (vector, point) in enumerate(zip(vectors, points)):
        if vector.shape != point.shape:
            which = f"Entry {number} in v" if many else "v"
            raise RuntimeError(f"{which} has invalid size: should be {point.shape} but got {vector.shape}.")


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
