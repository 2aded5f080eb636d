"""The road in Python, for when the extension is not there: a call whose like has been made goes by what the rule said then.

A plan holds the call's arguments but for its tensors, converted; so it is found by their values. See Note [What a plan may depend on] in plans.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from .. import _payload, _state
from .._device import CPU, device
from .._dtype import dtype
from .._rules.spec import Spec
from .._state import PLAIN, TLS
from .._tensor import Tensor, bump_version, wrap, wrap_view
from . import native
from .backends import backend_of
from .convert import convert
from .operator import Operator
from .plans import ONE, RESHAPED, SEVERAL, UNKNOWN_SHAPE, VIEW, VIEWS, learn, quiet_errors, specs_of

ACTIVE = native.extension is None
"""Whether calls go this way. With the extension it is the extension's."""

IN_PLACE = object()
"""Stands behind the operator in what plans of in-place forms are kept by."""
_MOST = 128
_MEMORY: dict[Any, dict[tuple, Any]] = {}
_NUMBERS = frozenset((int, float, bool, complex, str, type(None), dtype))
_errors, _quiet = quiet_errors()


def _forget() -> None:
    _MEMORY.clear()


_state.FORGETTERS.append(_forget)


class Plan:
    """How one kind of call runs."""

    __slots__ = (
        "op",
        "how",
        "tensors",
        "lists",
        "views",
        "given",
        "args",
        "kernel",
        "takes_out",
        "spec",
        "kind",
        "np",
        "strides",
        "shape",
        "lay_out",
        "record",
        "offset",
        "mutates",
        "cls",
    )

    op: Operator
    tensors: tuple[tuple[int, Any], ...]
    lay_out: Callable[[Any, Any], ndarray]
    record: Callable | None


def key_of(args: tuple) -> tuple | None:
    """All that a plan may depend on; None for arguments that are not planned."""
    parts: list[Any] = []
    for value in args:
        kind = value.__class__
        if kind in PLAIN:
            data = value._data
            if data.__class__ is not ndarray:
                return None
            parts += (value._dtype, data.shape, data.strides)
        elif kind in _NUMBERS:
            parts += (kind, value)
        elif kind is tuple or kind is list:
            parts.append(len(value))
            for item in value:
                kind = item.__class__
                if kind is int:
                    parts.append(item)
                elif kind in PLAIN and item._data.__class__ is ndarray:
                    data = item._data
                    parts += (item._dtype, data.shape, data.strides)
                else:
                    return None
        else:
            return None
    return tuple(parts)


def find(group: Any, args: tuple, resolve: Callable[[], tuple[Operator, tuple]] | None) -> Plan | None:
    """The plan of a call of an operator, or of one of several overloads; None when there is none, or not yet.

    group: what the plans are kept by. resolve: gives operator and converted arguments of a call that came before; None: `group` is the operator.
    """
    key = key_of(args)
    if key is None:
        return None
    plans = _MEMORY.get(group)
    if plans is None:
        plans = _MEMORY[group] = {}
    plan = plans.get(key)
    if plan is None:
        if len(plans) >= _MOST:
            plans.clear()
        if key not in plans:
            plans[key] = None  # it came once
            return None
        plan = plans[key] = _make(group, args, resolve) or False
    return plan or None


def _make(group: Any, args: tuple, resolve: Callable | None) -> Plan | None:
    op, converted = (group, convert(group, args)) if resolve is None else resolve()
    if op.composite is not None or op.missing is not None or op.meta is None:
        return None
    writes = group.__class__ is tuple and group[-1] is IN_PLACE
    if not (op.mutates in (None, 0) if writes else op.mutates is None and not op.is_inplace):
        return None
    if not op.is_view and "cpu" not in op.kernels:
        return None
    if any(isinstance(value, device) and value != CPU for value in converted):
        return None
    learnt = learn(op, converted)
    if learnt is None or learnt[0] == UNKNOWN_SHAPE:
        return None
    made = Plan()
    made.op = op
    made.how = learnt[0]
    made.args = [None if isinstance(value, Tensor) else value for value in converted]
    made.lists = tuple(i for i, value in enumerate(converted) if value.__class__ is list)
    if not _same_lists(op, learnt[1], args, converted, made.lists):
        return None
    made.views = learnt[8]
    made.kernel = op.kernels.get("cpu")
    made.takes_out = learnt[3]
    made.record = op.record
    made.cls = learnt[6]
    made.lay_out = backend_of(CPU).laid_out
    made.spec = specs_of(op, converted)
    places = _places(args, converted)
    if places is None:
        return None
    compute = learnt[1]
    made.given = list(made.args)
    tensors = []
    for index, place in places:
        cast = compute is not None and index in op.cast and converted[index]._data.dtype != compute
        tensors.append((index, place, compute if cast else None))
    made.tensors = tuple(tensors)
    if compute is not None:
        backend = backend_of(CPU)
        for index in op.cast:
            if not isinstance(converted[index], Tensor) and converted[index] is not None:
                made.given[index] = backend.number(converted[index], _first(made.spec).compute)
    shape, stride, made.kind, made.np, made.offset = (learnt[8] and learnt[8][0]) or (None,) * 5
    made.shape = shape
    made.strides = None if shape is None or made.np is None else tuple([s * made.np.itemsize for s in stride])
    if made.how == VIEW:
        made.strides = stride
    return made


def _same_lists(op: Operator, compute: Any, args: tuple, converted: tuple, lists: tuple[int, ...]) -> bool:
    """Whether lists of tensors stand where they stand among the call's arguments, and need no cast; and no other list holds tensors, which then
    stand for numbers."""
    for index, given in enumerate(args):
        if given.__class__ in (list, tuple) and index not in lists and any(isinstance(item, Tensor) for item in given):
            return False
    for index in lists:
        given = args[index] if index < len(args) else None
        if given.__class__ not in (list, tuple) or len(given) != len(converted[index]):
            return False
        cast = compute is not None and index in op.cast
        for one, other in zip(given, converted[index]):
            if one is not other or not isinstance(one, Tensor) or (cast and one._data.dtype != compute):
                return False
    return True


def _first(specs: Any) -> Spec:
    return specs if specs.__class__ is Spec else next(spec for spec in specs if spec is not None)


def _places(args: tuple, converted: tuple) -> list[tuple[int, int]] | None:
    """For each tensor: its number among the operator's arguments, and among those of the call, which stand in the same order."""
    found: list[tuple[int, int]] = []
    taken: set[int] = set()
    for index, value in enumerate(converted):
        if isinstance(value, Tensor):
            at = next((i for i, given in enumerate(args) if given is value and i not in taken), None)
            if at is None:
                return None
            taken.add(at)
            found.append((index, at))
    if any(isinstance(given, Tensor) and i not in taken for i, given in enumerate(args)):
        return None  # a tensor that stands for a number: its element decides
    return found


def run(plan: Plan, args: tuple) -> Any:
    """The result of a call by its plan."""
    given = plan.given.copy()
    history = False
    for index, place, cast in plan.tensors:
        tensor = args[place]
        array = tensor._data
        given[index] = array if cast is None else array.astype(cast)
        if tensor._node is not None:
            history = True
    for index in plan.lists:
        given[index] = [item._data for item in args[index]]
        if any(item._node is not None for item in args[index]):
            history = True
    how = plan.how
    if how == VIEW:
        return _run_view(plan, args, history)
    if how == VIEWS:
        return _run_views(plan, args, history)
    if how == RESHAPED:
        source = args[plan.tensors[0][1]]
        copy = np.ascontiguousarray(source._data)
        if copy is source._data or copy.base is not None:
            copy = copy.copy()
        made: Any = wrap(
            _payload.as_strided(copy, plan.shape, _payload.contiguous_strides(plan.shape), 0), source._dtype
        )
        return _recorded(plan, made, args) if history else made
    token = _errors.set(_quiet)
    try:
        result = plan.kernel(*given)
    finally:
        _errors.reset(token)
    if how == SEVERAL:
        lay_out = plan.lay_out
        made = tuple.__new__(
            plan.cls,
            [None if s is None else wrap(lay_out(r, s), s.dtype) for r, s in zip(result, plan.spec)],
        )
    else:
        if (
            result.__class__ is not ndarray
            or result.dtype != plan.np
            or result.strides != plan.strides
            or result.base is not None
        ):
            result = plan.lay_out(result, plan.spec)
        made = wrap(result, plan.kind)
    return _recorded(plan, made, args) if history else made


def _recorded(plan: Plan, made: Any, args: tuple) -> Any:
    if plan.record is None or not TLS.grad_enabled:
        return made
    return plan.record(made, *_full(plan, args))


def _full(plan: Plan, args: tuple) -> list:
    full = plan.args.copy()
    for index, place, _ in plan.tensors:
        full[index] = args[place]
    for index in plan.lists:
        full[index] = list(args[index])
    return full


def _run_views(plan: Plan, args: tuple, history: bool) -> tuple:
    source = args[plan.tensors[0][1]]
    data = source._data
    views = []
    for shape, stride, _, _, offset in plan.views:
        view = wrap_view(_payload.as_strided(data, shape, stride, offset), source)
        view._multi_view = True
        views.append(view)
    made = tuple(views)
    if history and plan.record is not None and TLS.grad_enabled:
        made = plan.record(made, *_full(plan, args))
    for view in made:
        if view._node is None:
            mark_view(view)
    return made


def _run_view(plan: Plan, args: tuple, history: bool) -> Any:
    source = args[plan.tensors[0][1]]
    made = wrap_view(_payload.as_strided(source._data, plan.shape, plan.strides, plan.offset), source)
    if history and plan.record is not None and TLS.grad_enabled:
        made = plan.record(made, *_full(plan, args))
    if made._node is None:
        mark_view(made)
    return made


def mark_view(view: Tensor) -> None:
    """Replaced by the autograd floor's function."""


def run_inplace(plan: Plan, args: tuple) -> Any:
    """The in-place form by its plan; None where something has to be looked at first."""
    target = args[0]
    data = target._data
    if (
        plan.how != ONE
        or target._dtype is not plan.kind
        or data.shape != plan.shape
        or data.strides != plan.strides
        or target._base is not None
        or target._inference
    ):
        return None
    given = plan.given.copy()
    for index, place, cast in plan.tensors:
        tensor = args[place]
        array = tensor._data
        if tensor._node is not None or (tensor is not target and np.may_share_memory(array, data)):
            return None
        given[index] = array if cast is None else array.astype(cast)
    token = _errors.set(_quiet)
    try:
        if plan.op.mutates == 0:
            if given[0] is not data:
                return None
            plan.kernel(*given)
        elif plan.takes_out and (plan.spec.compute is None or plan.spec.compute.np == data.dtype):
            plan.kernel(*given, out=data)
        else:
            result = plan.kernel(*given)
            data[...] = result if result.dtype == data.dtype else result.astype(data.dtype)
    finally:
        _errors.reset(token)
    bump_version(target)
    return target
