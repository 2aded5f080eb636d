"""How functions run on batches: whole batches at once, by what the schema says of operators, else example by example; and gradients of examples.

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
from .batched import (
    BatchedTensor,
    Fallback,
    Level,
    at,
    check_target,
    innermost,
    is_inplace,
    line_up,
    mapped,
    run_rows,
    stack,
    tensors_in,
)

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
RULES: dict[str, Callable] = {}
"""By operator, what it does to a whole batch: the functions of `whole.py` that entries name."""


@functools.cache
def operators_by_name() -> dict[str, tuple[Operator, ...]]:
    """Operators by the names of their functions, overloads in the order in which they are tried."""
    from .._generated.tables import operators

    found: dict[str, tuple[Operator, ...]] = {}
    for op in operators():
        found[op.name] = (*found.get(op.name, ()), op)
    return found


def run(func: Callable, args: tuple, kwargs: dict) -> Any:
    """Run a torch function on the innermost level of its batched arguments."""
    given = tensors_in((args, kwargs))
    level = at(max(t._level for t in given if isinstance(t, BatchedTensor)))
    name = getattr(func, "__name__", "")
    if func is api.grad:
        size = next(t for t in given if level(t))._value.shape[0]
        return tuple(None if g is None else level.wrap(g) for g in gradients(args, kwargs, level, size))
    if kwargs.get("out") is not None:
        raise RuntimeError(
            f"Batching rule not implemented for aten::{name}.out; the fallback path doesn't work on out= or view ops."
        )
    inplace = is_inplace(name)
    if inplace or kwargs.get("out") is not None:
        check_target(name, args[0] if inplace else kwargs["out"], given, level)
    found = _inplace_at_once(func, name, args, kwargs, level) if inplace else _at_once(func, name, args, kwargs, level)
    if found is not None:
        return found
    if not Fallback.enabled:
        raise RuntimeError(
            f"Batching rule not implemented for aten::{name}. We could not generate a fallback. (torch._C._functorch._set_vmap_fallback_enabled "
            "has switched it off)"
        )
    rows = run_rows(func, args, kwargs, level.number)
    return args[0] if inplace and isinstance(args[0], Tensor) else stack(rows, level.number)


def _inplace_at_once(func: Callable, name: str, args: Any, kwargs: dict, level: Level) -> Any:
    """The target of a pointwise operator, or of a view, that has written to the whole batch, or None."""
    target = args[0] if args else None
    if not isinstance(target, Tensor) or not level(target):
        return None
    overloads = operators_by_name().get(name[:-1], ())
    if overloads and all(op.is_view for op in overloads):  # each example becomes its view
        seen = _at_once(getattr(ops, name[:-1]), name[:-1], args, kwargs, level)
        if isinstance(seen, BatchedTensor):
            target._value = seen._value
            target._data = innermost(seen)._data
            return target
        return None
    if name == "fill_" and len(args) == 2 and isinstance(args[1], Tensor) and not args[1].dim():
        ops.copy_(target._value, line_up(args[1], level, target.dim()))
        return target
    if not _is_pointwise(name[:-1]):
        return None
    width = target.dim()
    if any(t.dim() > width for t in tensors_in((args, kwargs))):
        return None
    lined_up = functools.partial(line_up, at_level=level, width=width)
    func(*mapped(args, lined_up), **mapped(kwargs, lined_up))
    return target


def _at_once(func: Callable, name: str, args: Any, kwargs: dict, level: Level) -> Any:
    """The result of an operator that can run on the whole batch, or None."""
    overloads = operators_by_name().get(name, ())
    if any(op.full_name in RULES for op in overloads) and "out" not in kwargs:
        try:
            op, bound = resolve(overloads, args, kwargs)
        except TypeError:
            return None  # the example's own call says what is wrong
        rule = RULES.get(op.full_name)
        if rule is not None:
            return rule(level, *bound)
    if _is_pointwise(name):
        operands = tensors_in((args, kwargs))
        width = max(t.dim() for t in operands)
        if any(t.dim() == 0 < width for t in operands) and any(t.dtype is not operands[0].dtype for t in operands):
            return None  # examples without dimensions promote as numbers do, and in a batch they have one
        lined_up = functools.partial(line_up, at_level=level, width=width)
        result = func(*mapped(args, lined_up), **mapped(kwargs, lined_up))
        return mapped(result, level.wrap)
    if name == "__getitem__":
        return _subscripted(args[0], args[1], level)
    seen = _view(func, overloads, args, kwargs, level)
    return None if seen is None else mapped(seen, level.wrap)


def _is_pointwise(name: str) -> bool:
    return any("pointwise" in op.tags for op in operators_by_name().get(name, ()))


def _view(func: Callable, overloads: tuple[Operator, ...], args: tuple, kwargs: dict, level: Level) -> Any:
    """The view of the values of a batch that stands for a view of every example; None when it is no case for this rule."""
    overloads = tuple(op for op in overloads if op.is_view and op.composite is None)
    if not overloads or not args or not level(args[0]) or any(level(t) for t in (*args[1:], *kwargs.values())):
        return None
    op, bound = resolve(overloads, args, kwargs)
    count = args[0].dim()
    given: list[Any] = [args[0]._value]
    for param, argument in zip(op.params[1:], bound[1:]):
        if param.name in _DIMS:
            argument = _moved(param, argument, count)
            if argument is None:
                return None
        elif param.name in _SIZES and param.is_list:
            argument = [given[0].shape[0], *argument]
        given.append(argument)
    positional = [a for p, a in zip(op.params, given) if not p.keyword]
    named = {p.name: a for p, a in zip(op.params, given) if p.keyword}
    return (op.function or func)(*positional, **named)


def _subscripted(source: Any, index: Any, level: Level) -> Any:
    """`source[index]`, or None."""
    items = index if isinstance(index, tuple) else (index,)
    if any(level(i) and i.dtype.category == 0 for i in items):
        raise RuntimeError(
            "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing with a boolean mask."
        )
    if not level(source):
        return _index(source, index, level)
    part = _part(source, index)
    return None if part is None else level.wrap(part)


def _index(source: Tensor, index: Any, level: Level) -> Any:
    """`source[i, j, ...]` with positions for leading dimensions, some of them batched: one index operation.

    Positions have dimensions where another level's batch lies in them.
    """
    items = index if isinstance(index, tuple) else (index,)
    if not all(isinstance(i, int) or (isinstance(i, Tensor) and i.dtype.category == 1) for i in items):
        return None
    width = max(i.dim() for i in items if isinstance(i, Tensor))

    def position(item: Any) -> Any:
        if not isinstance(item, Tensor):
            return item
        lined_up = line_up(item, level, width)
        # A tensor without dimensions would be read for its number.
        return lined_up if isinstance(lined_up, BatchedTensor) or lined_up.dim() else lined_up.reshape((1,))

    return level.wrap(source[tuple(map(position, items))])


def _part(source: Any, index: Any) -> Any:
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
