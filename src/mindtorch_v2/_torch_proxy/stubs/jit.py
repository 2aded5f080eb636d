"""Parts of `torch.jit` that work without a compiler."""

from __future__ import annotations

import builtins
import functools
import typing
from collections.abc import Callable
from typing import Any, Dict, Final, List, Optional, Tuple, Union, get_args, get_origin  # noqa: UP035  (names of torch.jit.annotations)

from mindtorch_v2.futures import Future

__all__ = [
    "BroadcastingListCls",
    "Dict",
    "Final",
    "List",
    "Optional",
    "Tuple",
    "annotate",
    "boolean_dispatch",
    "export_opnames",
    "fork",
    "isinstance",
    "wait",
]


def annotate(the_type: Any, the_value: Any) -> Any:
    """`the_value`, whose type is only of interest to a compiler."""
    return the_value


def export_opnames(m: Any) -> list[str]:
    """No names: nothing is compiled."""
    return []


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether `obj` has the type `target_type`, which may be a container type with its element types.

    Raises:
        RuntimeError: if a container type says nothing of its elements.
    """
    if builtins.isinstance(target_type, tuple):
        return any(isinstance(obj, one) for one in target_type)
    origin, arguments = get_origin(target_type), get_args(target_type)
    if origin is None:
        if target_type in (list, tuple, dict, typing.List, typing.Tuple, typing.Dict):  # noqa: UP006
            name = getattr(target_type, "__name__", str(target_type))
            raise RuntimeError(
                f"Attempted to use {name} without a contained type. Please add a contained type, e.g. {name}[int]"
            )
        return obj is None if target_type is None else builtins.isinstance(obj, target_type)
    if origin is Union or origin is getattr(__import__("types"), "UnionType", None):
        return any(obj is None if one is type(None) else isinstance(obj, one) for one in arguments)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is list:
        return all(isinstance(one, arguments[0]) for one in obj)
    if origin is dict:
        return all(isinstance(k, arguments[0]) and isinstance(v, arguments[1]) for k, v in obj.items())
    if origin is tuple:
        return len(obj) == len(arguments) and all(isinstance(one, t) for one, t in zip(obj, arguments, strict=True))
    return True


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str,
    func_name: str,
) -> Callable[..., Any]:
    """A function that calls one of two functions, by the value of a boolean argument."""

    @functools.wraps(if_true)
    def function(*args: Any, **kwargs: Any) -> Any:
        chosen = kwargs[arg_name] if arg_name in kwargs else args[arg_index] if arg_index < len(args) else default
        return (if_true if chosen else if_false)(*args, **kwargs)

    function.__name__ = func_name
    function.__module__ = module_name
    return function


def _copy_to_script_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn`."""
    return fn


def _overload(func: Callable[..., Any]) -> Callable[..., Any]:
    """`func`: overloads are of interest to a compiler only."""
    return func


def _overload_method(func: Callable[..., Any]) -> Callable[..., Any]:
    """`func`: overloads are of interest to a compiler only."""
    return func


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """A future of `func(*args, **kwargs)`, which has run when this returns."""
    future: Future[Any] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Any) -> Any:
    """The value of a future."""
    return future.wait()


_fork, _wait = fork, wait  # as programs of old call them


class BroadcastingListCls:
    """The annotation of a list for which one number may stand: `BroadcastingList2[int]`."""

    def __getitem__(self, types: Any) -> None:
        return None


(
    BroadcastingList1,
    BroadcastingList2,
    BroadcastingList3,
    BroadcastingList4,
    BroadcastingList5,
    BroadcastingList6,
) = (BroadcastingListCls() for _ in range(6))


class _TypeStore:
    """Types of modules that were compiled: none."""

    def __init__(self) -> None:
        self.type_store: dict[Any, Any] = {}


concrete_type_store = _TypeStore()
