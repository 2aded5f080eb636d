"""The road in Python, for when the extension is not there: a call whose like has been made goes by what the rule said then.

`before` stands before a generated function. It keeps plans by all that a rule may look at in the call's arguments, as they were given: see Note [What a plan
may depend on] in plans.py, and kinds.py for what plans do. Errors are never remembered, and a call is planned when it comes the second time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy import ndarray

from .. import _state
from .._device import CPU, META, device
from .._dtype import dtype
from .._layout import layout, memory_format
from .._state import PLAIN
from .._tensor import Size, Tensor
from . import native
from .kinds import DECLINED, Call, detached
from .operator import Operator
from .plans import ONE, RESHAPED, SEVERAL, UNKNOWN_SHAPE, VIEW, VIEWS, learn
from .resolver import resolve

ACTIVE = native.extension is None
"""Whether calls go this way. With the extension it is the extension's."""

MOST = 128
"""How many plans a function keeps."""
MEMORY: list[dict] = []
"""The plans of all functions."""
_SIMPLE = frozenset((int, bool, str, type(None), dtype, layout, memory_format, device))
_LISTS = frozenset((tuple, list, Size))


def _forget() -> None:
    for plans in MEMORY:
        plans.clear()


_state.FORGETTERS.append(_forget)


def before(function: Callable, paths: tuple, method: bool, reflected: str, inplace: bool) -> Callable:
    """`function` with the road before it; the arguments are as `native.accelerate` takes them."""
    ops = tuple(path[0] for path in paths)
    ufuncs = {} if reflected else {path[0]: native.ufunc_of(path) for path in paths}
    backwards = reflected == "arguments"
    plans: dict[tuple, Any] = {}  # False: calls that are not planned
    seen: set[tuple] = set()  # calls that came once
    MEMORY.append(plans)
    known = plans.get

    def road(*args: Any, **kwargs: Any) -> Any:
        try:
            if kwargs:
                key = tuple(kwargs)
                values = (*args, *kwargs.values())
            else:
                key = ()
                values = args
            for value in values:
                kind = value.__class__
                if kind in PLAIN:
                    data = value._payload
                    if data.__class__ is not ndarray:
                        return function(*args, **kwargs)
                    key += (value._dtype, data.shape, data.strides)
                elif kind in _SIMPLE:
                    key += (kind, value)
                elif kind is float:
                    key += (kind, value or repr(value))  # which tells -0.0 from 0.0, its equal
                elif kind in _LISTS:
                    key += (kind, len(value))
                    for item in value:
                        kind = item.__class__
                        if kind is int:
                            key += (item,)
                        elif kind in PLAIN and item._payload.__class__ is ndarray:
                            data = item._payload
                            key += (item._dtype, data.shape, data.strides)
                        else:
                            return function(*args, **kwargs)
                else:
                    return function(*args, **kwargs)
            plan = known(key)
            if plan:
                if PLAIN:
                    result = plan(values)
                    if result is not DECLINED:
                        return result
            elif plan is None and PLAIN:
                if key in seen:
                    seen.discard(key)
                    if len(plans) >= MOST:
                        plans.clear()
                    plans[key] = make(ops, args, kwargs, values, method, backwards, inplace, ufuncs) or False
                else:
                    result = function(*args, **kwargs)
                    if len(seen) >= MOST:
                        seen.clear()
                    seen.add(key)
                    return result
            return function(*args, **kwargs)
        except TypeError as error:
            refused = _refusal(error, function.__name__, ops, args, kwargs, method, inplace)
            if refused is error:
                raise
            raise refused from None

    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(road, name, getattr(function, name))
    road.__wrapped__ = function  # type: ignore[attr-defined]
    return road if method else native.Unbound(road)


native.in_python = before


def _refusal(error: TypeError, *call: Any) -> TypeError:
    from .refusals import refusal

    return refusal(error, *call)


def make(
    ops: tuple, args: tuple, kwargs: dict, values: tuple, method: bool, backwards: bool, inplace: bool, ufuncs: dict
) -> Callable | None:
    """The plan of a call that came before; None for calls that are not planned."""
    try:
        op, converted = resolve(ops, args[::-1] if backwards else args, kwargs, method and not backwards)
    except TypeError:
        return None  # `out=` and its kin, or what the function answers by NotImplemented
    places = _places(values, converted)
    if op.missing is not None or places is None:
        return None
    call = Call(op, values, converted, places)
    elsewhere = [value for value in converted if isinstance(value, device) and value != CPU]
    if elsewhere:
        return call.on_meta() if elsewhere == [META] and not places else None
    if inplace or op.is_inplace:
        return call.in_place() if op.composite is None and op.mutates in (None, 0) else None
    if op.composite is not None:
        return call.composed()
    if op.meta is None or (not op.is_view and "cpu" not in op.kernels):
        return None
    if "detach" in op.tags:
        return detached
    learnt = learn(op, converted)
    if learnt is None:
        return None
    run = _by_plan(op, call, learnt, ufuncs)
    return run if run is None or not learnt[9] else call.guarded(run, learnt[9])


def _by_plan(op: Operator, call: Call, learnt: tuple, ufuncs: dict) -> Callable | None:
    how = learnt[0]
    if how == VIEW:
        return call.view(learnt[8][0]) if learnt[8][0][2] is call.converted[0]._dtype else None
    if how == VIEWS:
        return call.views(learnt[8])
    if how == RESHAPED:
        return call.reshaped(learnt[8][0])
    if op.mutates is not None:
        return call.changed(learnt)
    if how == SEVERAL:
        unknown = any(result is not None and result[0] is None for result in learnt[8])
        return None if unknown else call.several(learnt)
    ufunc = ufuncs.get(op)
    if ufunc is not None and how == ONE:
        made = call.pointwise(ufunc, learnt)
        if made is not None:
            return made
    return call.one(learnt, how == UNKNOWN_SHAPE)


def _places(values: tuple, converted: tuple) -> list[tuple[int, int, bool]] | None:
    """For each argument that is a tensor or a list of tensors: its number among the operator's arguments and among the call's, and whether it is a list.

    None when a tensor stands elsewhere: for a number, which its element decides.
    """
    found: list[tuple[int, int, bool]] = []
    free = [
        at
        for at, given in enumerate(values)
        if isinstance(given, Tensor) or (given.__class__ in _LISTS and _some(given))
    ]
    for index, value in enumerate(converted):
        if isinstance(value, Tensor):
            at = next((at for at in free if values[at] is value), None)
        elif value.__class__ is list and value:
            at = next((at for at in free if values[at].__class__ in _LISTS and _same(values[at], value)), None)
        else:
            continue
        if at is None:
            return None
        free.remove(at)
        found.append((index, at, value.__class__ is list))
    return None if free else found


def _some(given: Any) -> bool:
    return any(isinstance(item, Tensor) for item in given)


def _same(given: Any, converted: list) -> bool:
    return len(given) == len(converted) and all(a is b and isinstance(a, Tensor) for a, b in zip(given, converted))
