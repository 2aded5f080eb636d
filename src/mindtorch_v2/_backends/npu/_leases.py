"""Memory that is lent for as long as something lives, and signals that wait meanwhile: what the extension does in C, see Note [Leases] in native/runtime/leases.c.

Note [Signals wait]
A signal's handler runs between any two instructions of the main thread, and one that raises would leave a call of CANN, or the allocator, half done: an executor that nobody runs,
a block that nobody has. With the extension a launch is one instruction, and what is held is held by leases; only where the allocator itself is at work (a new segment) do signals wait.
Without it they wait for each operator as a whole.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from ..._dispatch import native
from ..._imports import Held
from . import _blocks


class held:
    """A context in which signals of the main thread wait; inside of another one it does nothing."""

    __slots__ = ("signals",)
    _on = False

    def __enter__(self) -> None:
        self.signals = None
        if not held._on and Held.current is None and threading.current_thread() is threading.main_thread():
            self.signals = Held()
            self.signals.begin()
            held._on = True

    def __exit__(self, *error: object) -> None:
        if self.signals is not None:
            held._on = False
            self.signals.finish()


def undisturbed(function: Callable) -> Callable:
    """A function of the backend during which signals wait, where the extension is not there to launch."""
    if native.extension is not None:
        return function

    def run(*args: Any, **named: Any) -> Any:
        with held():
            return function(*args, **named)

    return run


class _Lease:
    __slots__ = ("block", "address", "__weakref__")

    def __init__(self, block: Any) -> None:
        self.block, self.address = block, block.address


class Ended(weakref.ref):
    """What is left of a lease that has ended: its callback, a function in C, puts it among what the allocator frees with its next call, and no signal comes between."""

    __slots__ = ("block", "others")

    block: Any
    others: set

    def taken(self) -> Any:
        """The block, which the allocator frees now."""
        self.others.discard(self)
        return self.block


class _Shelf:
    """Lends blocks of an allocator by its own functions."""

    def __init__(self, small: Any, large: Any, pending: dict, deferred: Any, slow: Callable, *counters: Any) -> None:
        self.busy, self.plain = False, False
        self.slow, self.deferred = slow, deferred
        self.alive: set[Ended] = set()

    def lease(self, nbytes: int, stream: int) -> _Lease:
        found: list[Any] = []
        with held():
            self.slow(nbytes, stream, found)
            made = _Lease(found[0])
            ended = Ended(made, self.deferred.append)
            ended.block, ended.others = made.block, self.alive
            self.alive.add(ended)
        return made


Shelf: Any = _Shelf
if native.extension is not None:
    native.extension.connect_npu(block=_blocks.Block, segment=_blocks.Segment, pool=_blocks.Pool)
    Shelf = native.extension.Shelf
