"""How functions run on batches: whole batches at once, by what the schema says of operators, else example by example; and gradients of examples.

Note [Views of batches]
A view of every example is a view of the batch: its geometry is that of the example with the batch in front. Where an operator names dimensions, the
numbers move by one, negative ones stay; where it names sizes, the batch's stands before them. So results are views, as they are without `vmap`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._api.methods import indexing
from .._autograd import api
from .._dispatch import ops
from .._dispatch.native import NO_OPERATORS
from .._dispatch.operator import Operator
from .._dispatch.resolver import resolve
from .._dispatch.return_types import return_type
from .._tensor import Tensor
from .batched import (
    LEVELS,
    MODES,
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
from .kinds import DIMS, call, moved

_SIZES = {"size", "shape"}
RULES: dict[str, Callable] = {}
"""By operator, what it does to a whole batch: the functions of `whole/` that entries name."""
KINDS: dict[str, Callable] = {}
"""By operator, what all of its kind do to a whole batch: the functions of `kinds.py`."""


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
    if level.number > len(LEVELS):
        raise RuntimeError(
            "Either your tensor may have escaped from inside a function being vmapped and this is a user error (see "
            "https://pytorch.org/functorch/stable/ux_limitations.html), or there is an internal functorch error in "
            f"`gen_vmap_{'inplace_' if is_inplace(name) else ''}plumbing` Please file an issue if it looks like the latter"
        )
    if func is api.grad:
        size = next(t for t in given if level(t))._value.shape[0]
        return tuple(None if g is None else level.wrap(g) for g in gradients(args, kwargs, level, size))
    if kwargs.get("out") is not None:
        raise RuntimeError(
            f"Batching rule not implemented for aten::{name}.out; the fallback path doesn't work on out= or view ops."
        )
    if func in NO_OPERATORS:
        return NO_OPERATORS[func](*args, **kwargs)
    mode = MODES.get(level.number)
    if mode is not None and mode.draws(name, args):  # inside an operator that is made of others
        return mode.drawn(func, name, args, kwargs)
    if name in ("__getitem__", "__setitem__"):
        return _subscripted(name, args, level)
    inplace = is_inplace(name)
    if inplace:
        check_target(name, args[0], given, level)
    found = (_inplace_at_once if inplace else at_once)(func, name, args, kwargs, level)
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
    """The target of an operator that has written to the whole batch, or None."""
    target = args[0] if args else None
    if name in operators_by_name():
        return None if at_once(func, name, args, kwargs, level) is None else target
    if not isinstance(target, Tensor) or not level(target):
        return None
    plain = name[:-1]
    overloads = operators_by_name().get(plain, ())
    if not overloads:
        return None
    if _is_pointwise(plain):
        width = target.dim()
        if any(t.dim() > width for t in tensors_in((args, kwargs))):
            return None
        lined_up = functools.partial(line_up, at_level=level, width=width)
        func(*mapped(args, lined_up), **mapped(kwargs, lined_up))
        return target
    made = at_once(getattr(ops, plain), plain, args, kwargs, level)
    if not isinstance(made, Tensor) or not level(made):
        return None
    if all(op.is_view for op in overloads):  # each example becomes its view
        target._value = made._value
        target._payload = innermost(made)._payload
    elif made.shape == target.shape and made.dtype is target.dtype:
        ops.copy_(target._value, made._value)
    else:
        return None
    return target


def at_once(func: Callable, name: str, args: tuple, kwargs: dict, level: Level) -> Any:
    """The result of an operator that can run on the whole batch, or None."""
    overloads = operators_by_name().get(name, ())
    if not overloads:
        return None
    try:
        op, bound = resolve(overloads, args, kwargs)
    except TypeError:
        return None  # the example's own call says what is wrong
    if (rule := RULES.get(op.full_name)) is not None:
        return rule(level, *bound)
    if (kind := KINDS.get(op.full_name)) is not None:
        return kind(level, op, bound)
    if op.composite is not None:
        made = op.composite_function()(*bound)
        return return_type(op, list(made)) if made.__class__ is tuple and len(op.returns) > 1 else made
    return _view(op, bound, level) if op.is_view else None


def _is_pointwise(name: str) -> bool:
    return any("pointwise" in op.tags for op in operators_by_name().get(name, ()))


def _view(op: Operator, bound: tuple, level: Level) -> Any:
    """The view of a batch that stands for a view of every example; None when it is no case for this rule."""
    if not level(bound[0]) or any(level(a) for a in bound[1:]):
        return None
    count = bound[0].dim()
    given: list[Any] = [bound[0]._value]
    for param, argument in zip(op.params[1:], bound[1:]):
        if param.name in DIMS:
            argument = moved(param, argument, count)
            if argument is None:
                return None
            if param.name == "dims":  # an order of all of them
                argument = [0, *argument]
        elif param.name in _SIZES and param.is_list:
            argument = [given[0].shape[0], *argument]
        given.append(argument)
    return mapped(call(op, given), level.wrap)


def _is_batch(value: Any) -> bool:
    """Whether a position stands for one of every example, at whichever level: it is no number to read."""
    return isinstance(value, BatchedTensor)


def _subscripted(name: str, args: tuple, level: Level) -> Any:
    """`source[index]`, or `source[index] = value`."""
    items = args[1] if isinstance(args[1], tuple) else (args[1],)
    if any(level(i) and i.dtype.category == 0 for i in items):
        raise RuntimeError(
            "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing with a boolean mask."
        )
    if name == "__getitem__":
        return indexing.read(*args, keep=_is_batch)
    check_target(name, args[0], tensors_in(args), level)
    return indexing.write(*args, keep=_is_batch)


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
