"""`__torch_function__`: subclasses and function modes that take over a call."""

from __future__ import annotations

from typing import Any

from .._state import TLS, is_plain_class
from .._tensor import Tensor
from . import ops
from .operator import Operator

_ORDINARY = {int, float, bool, str, type(None), tuple, list, complex}


def find(op: Operator, args: tuple, out: Any) -> Any:
    """What takes over a call: a function mode, or the arguments whose class overrides it; None when nothing does."""
    if TLS.function_modes:
        return TLS.function_modes[-1]
    found: list = []
    for index in op.tensors:
        value = args[index] if index < len(args) else None
        kind = value.__class__
        if kind is Tensor or kind in _ORDINARY and kind is not list and kind is not tuple:
            continue
        if kind is list or kind is tuple:
            for item in value:
                _add(item, found)
        else:
            _add(value, found)
    if out is not None:
        _add(out, found)
    if not found or not TLS.torch_function_enabled:
        return None
    return found


def find_for(values: tuple) -> Any:
    """`find` for functions that are no operators: what takes over a call with these arguments."""
    if TLS.function_modes:
        return TLS.function_modes[-1]
    if not TLS.torch_function_enabled:
        return None
    found: list = []
    for value in values:
        _add(value, found)
    return found or None


def is_taken_over(values: tuple) -> bool:
    """Whether something takes over a call; nested tensors, which are a class here alone, are asked for nothing."""
    if find_for(values) is None:
        return False
    return find_for(tuple(v for v in values if not (isinstance(v, Tensor) and v.is_nested))) is not None


def _add(value: Any, found: list) -> None:
    kind = value.__class__
    if is_plain_class(kind) or kind in _ORDINARY:
        return
    method = getattr(kind, "__torch_function__", None)
    if (
        method is None
        or method is _disabled_torch_function_impl
        or getattr(method, "__func__", None) is _disabled_torch_function_impl
    ):
        return
    if all(kind is not type(other) for other in found):
        place = len(found)
        for position, other in enumerate(found):
            if issubclass(kind, type(other)):
                place = position
                break
        found.insert(place, value)


def _disabled_torch_function_impl(func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
    """The `__torch_function__` of classes that want the plain behaviour."""
    return NotImplemented


def run(op: Operator, special: Any, args: tuple, out: Any, method: Any = None) -> Any:
    """Hand the functional form to what `find` found; as `method`, if that was called."""
    positional, keywords = as_called(op, args)
    if out is not None:
        keywords["out"] = out
    return run_function(method or op.function or getattr(ops, op.name), special, positional, keywords)


def run_inplace(op: Operator, special: Any, args: tuple) -> Any:
    """Hand the in-place form to what `find` found."""
    name = op.name if op.is_inplace else op.name + "_"
    positional, keywords = as_called(op, args)
    return run_function(getattr(Tensor, name, None) or getattr(ops, name), special, positional, keywords)


def as_called(op: Operator, args: tuple) -> tuple[tuple, dict]:
    """Positional and keyword arguments as a user would write them: trailing defaults left out."""
    positional: list = []
    keywords: dict = {}
    for param, value in zip(op.params, args):
        if not param.keyword:
            positional.append(value)
        elif value is not param.default and value != param.default:
            keywords[param.name] = value
    params = op.params
    count = len(positional)
    while count and not params[count - 1].required and positional[count - 1] is params[count - 1].default:
        count -= 1
    return tuple(positional[:count]), keywords


def run_function(function: Any, special: Any, args: tuple, kwargs: dict) -> Any:
    """Call `__torch_function__` of a mode or of the overriding arguments in order, until one answers."""
    if not isinstance(special, list):
        return run_mode(function, special, args, kwargs)
    types = tuple(type(value) for value in special)
    for value in special:
        result = value.__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    names = ", ".join(sorted(kind.__name__ for kind in types))
    raise TypeError(
        f"Multiple dispatch failed for 'torch.{getattr(function, '__name__', function)}'; all __torch_function__ handlers returned "
        f"NotImplemented:\n\n  - tensor subclasses: {names}\n"
    )


def run_mode(function: Any, mode: Any, args: tuple, kwargs: dict) -> Any:
    """Call a function mode with that mode itself switched off."""
    before = TLS.function_modes
    TLS.function_modes = before[: before.index(mode)]
    try:
        return mode.__torch_function__(function, (), args, kwargs)
    finally:
        TLS.function_modes = before


class DisableTorchFunctionSubclass:
    """Inside, tensor subclasses are treated as plain tensors; function modes see what they always do."""

    def __enter__(self) -> None:
        self.before = TLS.torch_function_enabled
        TLS.torch_function_enabled = False

    def __exit__(self, *exc: object) -> None:
        TLS.torch_function_enabled = self.before


def default_torch_function(cls: type, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
    """The `__torch_function__` that Tensor subclasses inherit: the plain result, as the subclass."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    return _convert(result, cls)


def _convert(result: Any, cls: type) -> Any:
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)) and not hasattr(result, "_fields"):
        return type(result)(_convert(item, cls) for item in result)
    return result


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Inside, tensor subclasses are treated as plain tensors, and function modes see nothing."""

    def __enter__(self) -> None:
        super().__enter__()
        self.modes = TLS.function_modes
        TLS.function_modes = ()

    def __exit__(self, *exc: object) -> None:
        TLS.function_modes = self.modes
        super().__exit__(*exc)
