"""Kernels from outside the schema: replacing one of an operator on a device, or adding an operator.

Note [Kernels from outside]
A fast path runs the schema's kernel without asking. So registering a CPU kernel for an operator that has one switches fast paths off for
the rest of the process: every call then goes through the dispatcher, which reads the operator's table.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .. import _state
from .._above import above
from .operator import NO_DEFAULT, Operator, Param, takes_out

_custom: dict[str, Operator] = {}
_bypassed = False


def find(name: str) -> Operator | None:
    """The operator of a name, with or without its overload (`add`, `add.Tensor`, `aten::add.Tensor`)."""
    name = name.removeprefix("aten::")
    if name in _custom:
        return _custom[name]
    base, _, overload = name.partition(".")
    found = None
    for op in above("operators")():
        if op.name == base and (op.overload == overload or not overload):
            if op.overload == overload:
                return op
            found = found or op
    return found


def find_custom(name: str) -> Operator | None:
    """The operator of a full name that a program added, or None."""
    return _custom.get(name)


def register(op: str, device: str, fn: Callable, meta: Callable | None = None) -> Operator:
    """Use `fn` as the kernel of operator `op` on a device type.

    fn: gets payloads (ndarrays on the CPU) in schema order and returns fresh ones. meta: the rule of a new operator: gets Tensors and returns a
    Spec; required for a name that the schema does not know, and replaces the rule of one that it knows.
    ValueError for a new operator without a rule.
    """
    global _bypassed
    operator = find(op)
    if operator is None:
        if meta is None:
            raise ValueError(
                f"{op}: the schema has no such operator; a new one needs meta=, the rule that gives its result's shape"
            )
        operator = _custom[op] = _new(op, fn, meta)
    elif meta is not None:
        operator.meta = meta
    _state.forget_rules()
    operator.kernels[device] = fn
    if device == "cpu":
        operator.block = ()
        operator.blocked = None
    operator.takes_out[device] = takes_out(fn)
    if device == "cpu" and op not in _custom and not _bypassed:
        _bypassed = True
        _state.enter_special(everywhere=True)
    return operator


def get(op: str, device: str) -> Callable | None:
    """The kernel of an operator on a device type, or None. KeyError for an unknown operator."""
    operator = find(op)
    if operator is None:
        raise KeyError(f"unknown operator {op!r}")
    return operator.kernels.get(device)


def _new(name: str, fn: Callable, meta: Callable) -> Operator:
    params = tuple(
        Param(
            p.name,
            "Any",
            optional=True,
            default=NO_DEFAULT if p.default is p.empty else p.default,
            keyword=p.kind is p.KEYWORD_ONLY,
        )
        for p in inspect.signature(fn).parameters.values()
    )
    base, _, overload = name.partition(".")
    made = Operator(base, overload, params, meta=meta, variants=("function",))
    made.tensors = tuple(range(len(params)))
    made.function = lambda *args: _call(made, args)
    return made


def _call(op: Operator, args: tuple) -> Any:
    above("autograd")  # connects the dispatcher
    from .dispatcher import call
    from .resolver import resolve

    bound_op, bound = resolve((op,), args, {})
    return call(bound_op, bound)
