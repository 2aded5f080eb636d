"""`__torch_dispatch__`: tensor classes and modes that take over operators below the tape.

Note [Below the tape]
A class that defines `__torch_dispatch__` (`_state.DISPATCHING` has them), or a mode that is entered, stands where a backend would: composites are already
taken apart, and what it gives back is recorded by the operator's own derivative. While it runs nothing is recorded, and a mode does not see itself.
The dispatcher asks before it calls the rule, since only the class knows what its tensors hold.
"""

from __future__ import annotations

from typing import Any

from .._above import above
from .._state import DISPATCHING, TLS
from .._tensor import Tensor, bump_version, version
from . import ops, overrides
from .operator import Operator

# Set by the autograd floor, which stands above this one.
autograd: Any = None


def needs_grad(value: Any) -> bool:
    """Whether a tensor, or one of a list, requires grad."""
    if isinstance(value, Tensor):
        return value._node is not None and value.requires_grad
    return value.__class__ is list and any(needs_grad(item) for item in value)


def find(op: Operator, args: tuple) -> Any:
    """What takes over: a mode, or the arguments whose classes do, subclasses first; None when nothing does."""
    return TLS.dispatch_modes[-1] if TLS.dispatch_modes else _overriding(op, args) or None


def _overriding(op: Operator, args: tuple) -> list[Tensor]:
    """One argument of each class that takes over, subclasses first."""
    found: list[Tensor] = []
    for index in op.tensors:
        value = args[index]
        for item in value if value.__class__ is list else (value,):
            kind = item.__class__
            if kind in DISPATCHING and all(kind is not other.__class__ for other in found):
                place = next((i for i, other in enumerate(found) if issubclass(kind, other.__class__)), len(found))
                found.insert(place, item)
    return found


def _handled(op: Operator, special: Any, args: tuple, form: str, out: Any = None) -> Any:
    """What the mode or the classes answer. TypeError when all of them decline."""
    function = above("overload")(op, form, args)
    given, keywords = overrides.as_called(op, args)
    # PyTorch's dispatcher hands every sequence on as a list.
    positional = tuple(list(value) if isinstance(value, tuple) else value for value in given)
    keywords = {name: list(value) if isinstance(value, tuple) else value for name, value in keywords.items()}
    if out is not None:
        keywords["out"] = out
    before = TLS.grad_enabled, TLS.dispatch_modes
    TLS.grad_enabled = False
    try:
        if not isinstance(special, list):
            TLS.dispatch_modes = before[1][: before[1].index(special)]
            types = tuple(type(t) for t in _overriding(op, args))
            return special.__torch_dispatch__(function, types, positional, keywords)
        types = tuple(type(value) for value in special)
        for value in special:
            result = value.__torch_dispatch__(function, types, positional, keywords)
            if result is not NotImplemented:
                return result
    finally:
        TLS.grad_enabled, TLS.dispatch_modes = before
    names = ", ".join(kind.__name__ for kind in types)
    raise TypeError(
        f"Multiple dispatch failed for '{function}'; all __torch_dispatch__ handlers returned NotImplemented:\n\n  - tensor subclasses: {names}\n"
    )


def read(tensor: Tensor) -> Any:
    """The one element of a tensor whose class takes over; NotImplemented when it does not, or holds its own elements."""
    if tensor.__class__ not in DISPATCHING:
        return NotImplemented
    before = TLS.grad_enabled
    TLS.grad_enabled = False
    try:
        return type(tensor).__torch_dispatch__(above("reader"), (type(tensor),), (tensor,), {})  # type: ignore[attr-defined]
    finally:
        TLS.grad_enabled = before


def run(op: Operator, special: Any, args: tuple, out: Any) -> Any:
    """The functional or `out=` form of an operator, recorded."""
    result = _handled(op, special, args, "functional" if out is None else "out", out)
    if out is not None:
        return out
    if op.record is None or not TLS.grad_enabled or "detach" in op.tags:
        return result
    given = {id(a) for a in args if isinstance(a, Tensor)}
    if isinstance(result, Tensor):
        return op.record(_fresh(result, given), *args)
    return op.record(type(result)(_fresh(item, given) for item in result), *args)


def _fresh(result: Any, given: set) -> Any:
    """A result that may get a node: not one of the arguments, and without history."""
    if isinstance(result, Tensor) and (id(result) in given or result._node is not None):
        return alias(result)
    return result


def alias(tensor: Tensor) -> Tensor:
    """Another tensor of the same class, payload and attributes, without history."""
    made = object.__new__(type(tensor))
    made._payload = tensor._payload
    made._dtype = tensor._dtype
    made._node = made._base = made._rare = None
    made.__dict__.update(tensor.__dict__)
    for kind in type(tensor).__mro__:
        if kind is Tensor:
            break
        for name in vars(kind).get("__slots__", ()):
            if hasattr(tensor, name):
                setattr(made, name, getattr(tensor, name))
    return made


def run_inplace(op: Operator, special: Any, args: tuple) -> Tensor:
    """The in-place form of an operator, recorded."""
    target = args[0]
    recorded = TLS.grad_enabled and autograd.may_write(op, args)
    before = args
    if recorded and op.saves_self:
        with autograd.no_grad():
            kept = ops.clone(target)
        kept._node = target._node
        if target._nr:
            kept._nr = target._nr
        before = (kept, *args[1:])
    counted = version(target)
    _handled(op, special, args, "inplace")
    if version(target) == counted:
        bump_version(target)
    if recorded:
        autograd.record_write(op, args, before)
    return target
