"""Tensor subclasses and modes that see operators below the tape: see Note [Below the tape] in `_dispatch/below.py`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from .. import _state
from .._state import TLS
from .._tensor import Tensor

__all__ = [
    "TorchDispatchMode",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing",
]


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether `t` is a tensor subclass that can be flattened into plain tensors.

    Such a class defines `__tensor_flatten__` and `__tensor_unflatten__`.
    """
    return isinstance(t, Tensor) and type(t) is not Tensor and is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether a class defines the two methods of a wrapper."""
    return hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


class TorchDispatchMode:
    """A context in which `__torch_dispatch__(func, types, args, kwargs)` sees every operator, below the tape.

    `func` is an overload, `torch.ops.aten.add.Tensor`; what is composed of other operators is seen as those.
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        pass

    def __torch_dispatch__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        TLS.dispatch_modes = (*TLS.dispatch_modes, self)
        _state.enter_special()
        return self

    def __exit__(self, *exc: object) -> None:
        TLS.dispatch_modes = TLS.dispatch_modes[:-1]
        _state.leave_special()


def _get_current_dispatch_mode() -> Any:
    return TLS.dispatch_modes[-1] if TLS.dispatch_modes else None


def _get_current_dispatch_mode_stack() -> list:
    return list(TLS.dispatch_modes)


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list]:
    before = TLS.dispatch_modes
    TLS.dispatch_modes = ()
    try:
        yield list(before)
    finally:
        TLS.dispatch_modes = before


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """What a wrapper's `__torch_dispatch__` gives back: of an operator that writes, the tensor that it wrote to; else `out`."""
    if getattr(func, "_inplace", False):
        return args[0]
    if kwargs and kwargs.get("out") is not None:
        return kwargs["out"]
    return out
