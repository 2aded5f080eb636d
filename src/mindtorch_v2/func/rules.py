"""Operators on whole batches whose rule follows from what the schema says of them, and gradients of examples.

Note [Views of batches]
A view of every example is a view of the batch: its geometry is that of the example with the batch in front. Where an operator names dimensions, the
numbers move by one, negative ones stay; where it names sizes, the batch's stands before them. So results are views, as they are without `vmap`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._autograd import api
from .._dispatch import ops
from .._dispatch.operator import Operator, Param
from .._dispatch.resolver import resolve
from .._tensor import Tensor

_DIMS = {
    "dim",
    "dims",
    "dim0",
    "dim1",
    "dim2",
    "axis0",
    "axis1",
    "start_dim",
    "end_dim",
    "source",
    "destination",
    "dimension",
}
_SIZES = {"size", "shape"}
AS = {"view_as": "view", "expand_as": "expand", "reshape_as": "reshape"}
"""Functions of two tensors, of the second of which the shape counts alone, and the operators that they are."""


@functools.cache
def _views() -> dict[str, tuple[Operator, ...]]:
    from .._generated.tables import operators

    found: dict[str, tuple[Operator, ...]] = {}
    for op in operators():
        if op.is_view and op.composite is None:
            for name in (op.name, op.function.__name__ if op.function is not None else op.name):
                found[name] = (*found.get(name, ()), op)
    return found


def view(func: Callable, name: str, args: tuple, kwargs: dict, is_mine: Callable) -> Any:
    """The view of the values of a batch that stands for a view of every example; None when it is no case for this rule."""
    if name in AS and len(args) == 2 and is_mine(args[0]):
        return view(getattr(ops, AS[name]), AS[name], (args[0], list(args[1].shape)), {}, is_mine)
    overloads = _views().get(name)
    if not overloads or not args or not is_mine(args[0]) or any(is_mine(t) for t in (*args[1:], *kwargs.values())):
        return None
    op, bound = resolve(overloads, args, kwargs)
    example, value = args[0], args[0]._value
    count = example.dim()
    if name in ("t", "numpy_T", "T"):
        order = [0, *range(count, 0, -1)]
        return value.permute(order)
    if name == "squeeze" and not count and all(d in (0, -1) for d in bound[1:]):
        return ops.alias(value)
    if name == "squeeze" and len(bound) == 1:
        return ops.squeeze(value, [d + 1 for d, n in enumerate(example.shape) if n == 1])
    if name == "as_strided":
        return None
    given = [value]
    for param, argument in zip(op.params[1:], bound[1:]):
        if param.name in _DIMS:
            argument = _moved(param, argument, count + (name == "unsqueeze"))
            if argument is None:
                return None
        elif param.name in _SIZES and name not in ("unfold", "narrow"):
            wide = list(argument)
            if name in ("expand", "broadcast_to"):
                missing = len(wide) - count
                if missing < 0:
                    return None
                if missing:
                    given[0] = value.reshape((value.shape[0], *([1] * missing), *value.shape[1:]))
            argument = [value.shape[0], *wide]
        given.append(argument)
    positional = [a for p, a in zip(op.params, given) if not p.keyword]
    named = {p.name: a for p, a in zip(op.params, given) if p.keyword}
    return (op.function or func)(*positional, **named)


def subscript(source: Any, index: Any) -> Any:
    """`source[index]` of every example of a batch by numbers, slices, None and an ellipsis; None for other subscripts."""
    items = index if isinstance(index, tuple) else (index,)
    if not all(i is None or i is Ellipsis or isinstance(i, (int, slice)) and not isinstance(i, bool) for i in items):
        return None
    if sum(i is not None and i is not Ellipsis for i in items) > source.dim():
        return None  # the example's own call says what is wrong
    return source._value[(slice(None), *items)]


def _moved(param: Param, argument: Any, count: int) -> Any:
    """Dimensions of an example as those of the batch; None for one that is out of range, which the example's own call refuses."""
    many = isinstance(argument, (list, tuple))
    moved = []
    for dim in argument if many else (argument,):
        if not -count <= dim < count:
            return None
        moved.append(dim + 1 if dim >= 0 else dim)
    if many and param.name == "dims":
        return [0, *moved]
    return moved if many else moved[0]


def gradients(args: tuple, kwargs: dict, is_mine: Callable, size: int) -> list:
    """`torch.autograd.grad` of every example: the gradients with the batch in front, None for inputs that were not used.

    Where results and inputs are batched, one pass does; else it takes one for every example.
    """
    names = ("outputs", "inputs", "grad_outputs", "retain_graph", "create_graph", "allow_unused")
    given = dict(zip(names, args)) | kwargs
    outputs, inputs, cotangents = (_tuple(given.pop(name, None)) for name in names[:3])
    cotangents = cotangents or (None,) * len(outputs)
    plain = [o._value if is_mine(o) else o for o in outputs]
    wanted = [i._value if is_mine(i) else i for i in inputs]
    seeds = [_seed(o, c, is_mine, size) for o, c in zip(outputs, cotangents)]
    whole = [is_mine(o) for o in outputs]
    if all(whole) and all(is_mine(i) for i in inputs):
        return list(api.grad(plain, wanted, seeds, **given))
    keep = given.pop("retain_graph", None)
    rows = []
    for row in range(size):
        one = [_only(s, row) if w else s[row] for s, w in zip(seeds, whole)]
        last = row == size - 1
        found = api.grad(plain, wanted, one, retain_graph=True if not last else keep, **given)
        rows.append([g if g is None else g[row] if is_mine(i) else g for g, i in zip(found, inputs)])
    return [None if any(g is None for g in column) else ops.stack(list(column)) for column in zip(*rows)]


def _tuple(value: Any) -> tuple:
    return () if value is None else (value,) if isinstance(value, Tensor) else tuple(value)


def _seed(output: Tensor, cotangent: Any, is_mine: Callable, size: int) -> Tensor:
    """The cotangents of all examples of a result."""
    if cotangent is None:
        return ops.ones((size, *output.shape), dtype=output.dtype, device=output.device)
    if is_mine(cotangent):
        if tuple(cotangent.shape) != tuple(output.shape):
            raise RuntimeError(
                f"Mismatch in shape: grad_output[0] has a shape of {cotangent.shape} and output[0] has a shape of {output.shape}."
            )
        return cotangent._value
    return cotangent.expand((size, *cotangent.shape))


def _only(seed: Tensor, row: int) -> Tensor:
    """The cotangents of one example, zeros for the others."""
    return ops.stack([part if i == row else ops.zeros_like(part) for i, part in enumerate(seed.unbind(0))])
