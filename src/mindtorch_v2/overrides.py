"""`torch.overrides`: function modes and `__torch_function__` helpers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from . import _state
from ._dispatch.native import unbound
from ._dispatch.overrides import (
    DisableTorchFunction as DisableTorchFunction,
    DisableTorchFunctionSubclass,
    find_for,
    is_taken_over,
    run_function,
)
from ._state import TLS
from ._tensor import Tensor

__all__ = [
    "DisableTorchFunctionSubclass",
    "TorchFunctionMode",
    "get_default_nowrap_functions",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]


class TorchFunctionMode:
    """A context in which `__torch_function__(func, types, args, kwargs)` sees every call of a torch function."""

    def __init__(self) -> None:
        pass

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> TorchFunctionMode:
        TLS.function_modes = (*TLS.function_modes, self)
        _state.enter_special()
        return self

    def __exit__(self, *exc: object) -> None:
        TLS.function_modes = TLS.function_modes[:-1]
        _state.leave_special()


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return func(*args, **(kwargs or {}))


@unbound
def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments, or a mode, overrides torch functions."""
    return is_taken_over(tuple(relevant_args))


@unbound
def has_torch_function_unary(arg: Any) -> bool:
    """`has_torch_function` for one argument."""
    return is_taken_over((arg,))


@unbound
def has_torch_function_variadic(*args: Any) -> bool:
    """`has_torch_function` for several arguments."""
    return is_taken_over(args)


def handle_torch_function(public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Call the override that `has_torch_function` found. TypeError when all of them decline."""
    if not callable(public_api):
        raise TypeError(f"'{type(public_api).__name__}' object is not callable")
    return run_function(public_api, find_for(tuple(relevant_args)), args, kwargs)


def wrap_torch_function(dispatcher: Callable) -> Callable:
    """Decorates a function whose relevant arguments `dispatcher` names with the override protocol."""

    def inner(func: Callable) -> Callable:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if find_for(relevant) is not None:
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return inner


def is_tensor_like(inp: Any) -> bool:
    """Whether an object is a tensor or overrides torch functions."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def is_tensor_method_or_property(func: Callable) -> bool:
    """Whether a function is a member of Tensor."""
    return getattr(Tensor, getattr(func, "__name__", ""), None) is func or getattr(func, "__name__", "") == "__get__"


def resolve_name(f: Callable) -> str | None:
    """A readable name of a torch function."""
    return getattr(f, "__qualname__", None)


def get_default_nowrap_functions() -> set:
    """Tensor attributes that subclasses get unwrapped."""
    return {Tensor._base, Tensor.grad}
