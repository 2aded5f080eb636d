"""Who wants to know of collectives, and by which operator of PyTorch's each is known."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from threading import get_ident
from typing import Any, TypeVar

_HERE = __file__.rpartition("distributed")[0]
_FUNCTIONAL = (f"{_HERE}_composite", f"{_HERE}distributed/tensor")

WATCHERS: list[Callable[[str, str], None]] = []
"""Called with the namespace and the name of each collective's operator: `c10d_functional` for those of functions and of tensors in pieces, `c10d` for all others."""

_AS_FUNCTIONS = {
    "allreduce_": "all_reduce",
    "broadcast_": "broadcast",
    "_allgather_base_": "all_gather_into_tensor",
    "_reduce_scatter_base_": "reduce_scatter_tensor",
    "alltoall_": "all_to_all_single",
    "alltoall_base_": "all_to_all_single",
}
_running: set[int] = set()  # threads
Method = TypeVar("Method", bound=Callable[..., Any])


def watched(name: str) -> Callable[[Method], Method]:
    """Have the method of a group known as an operator of c10d. What it calls in turn is not told."""

    def wrap(method: Method) -> Method:
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not WATCHERS or get_ident() in _running:
                return method(*args, **kwargs)
            _running.add(get_ident())
            try:
                _tell(name)
                return method(*args, **kwargs)
            finally:
                _running.remove(get_ident())

        return call  # type: ignore[return-value]

    return wrap


def _tell(name: str) -> None:
    frame: Any = sys._getframe(2)
    found = ("c10d", name)
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        if frame.f_code.co_filename.startswith(_FUNCTIONAL) and name in _AS_FUNCTIONS:
            found = ("c10d_functional", _AS_FUNCTIONS[name])
            break
        frame = frame.f_back
    for watcher in list(WATCHERS):
        watcher(*found)
