"""Modules of this package run undisturbed when they are imported.

Note [Imports on first use]
Most of the package is imported when something of it is first used. A signal's handler runs between any two instructions of the main thread; one that computes with
tensors while a module is being run would find that module half made, and one that raises (an interrupt, a time limit) would leave it so. So while the main
thread runs a module of the package, with all that it imports, signals that have a handler in Python are noted, and their handlers are called when the outermost
module is complete: some milliseconds late. They are sent again by a thread, which runs when the main thread has left the import system behind: that would drop
the complete module where a handler raises in its midst, and what its code did elsewhere would be done twice. Other threads run no handlers, and who wants a module that another thread is importing waits for it.

A process that is forked while another thread imports would have that module half made for good, and its lock held; `forks` waits for `others_import`.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  (builtin; `signal` makes enumerations, which cost more than all of this)
import _thread
import importlib
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader, SourcelessFileLoader
from types import FrameType, ModuleType
from typing import Any

_PACKAGE = __name__.partition(".")[0]
_module_locks: dict[str, Any] = getattr(sys.modules["_frozen_importlib"], "_module_locks", {})
"""Python's own locks of modules that are being imported, by name, as weak references."""
_running: dict[int, int] = {}
"""By thread: how many modules it is running, one inside of the other."""


def _send_again(numbers: list[int]) -> None:
    for number in numbers:
        _signal.raise_signal(number)


class _Held:
    """Signals that wait while the main thread imports: a context manager."""

    def __init__(self) -> None:
        self.handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self.came: list[int] = []

    def note(self, number: int, frame: FrameType | None) -> None:
        """The handler for the time being."""
        self.came.append(number)

    def __enter__(self) -> _Held:
        note = self.note
        for number in _signal.valid_signals():
            handler = _signal.getsignal(number)
            if callable(handler):
                self.handlers[number] = handler
                _signal.signal(number, note)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self.handlers.items():
            if _signal.getsignal(number) == self.note:  # a module may have set its own
                _signal.signal(number, handler)
        if self.came:
            _thread.start_new_thread(_send_again, (self.came,))


def undisturbed(run: Callable[[], Any]) -> Any:
    """What a function that imports gives; signals' handlers are called when the outermost call of this is done, see Note [Imports on first use]."""
    thread = threading.get_ident()
    if thread in _running or thread != threading.main_thread().ident:
        return _counted(thread, run)
    with _Held():  # what is counted is held: a handler that comes before, or after, holds signals for its own imports
        return _counted(thread, run)


def _counted(thread: int, run: Callable[[], Any]) -> Any:
    depth = _running.get(thread, 0)
    _running[thread] = depth + 1
    try:
        return run()
    finally:
        if depth:
            _running[thread] = depth
        else:
            del _running[thread]


def outside(name: str) -> Any:
    """A module of another package, which a function imports when it is called."""
    found = sys.modules.get(name)
    if found is None or getattr(found.__spec__, "_initializing", False):
        found = undisturbed(lambda: importlib.import_module(name))
    return found


def others_import() -> bool:
    """Whether another thread is importing: runs a module of the package, or has the lock of any module that is not imported yet."""
    here = threading.get_ident()
    return any(thread != here for thread in list(_running)) or any(
        (lock := ref()) is not None and getattr(lock, "owner", None) not in (None, here)
        for ref in list(_module_locks.values())
    )


def forget_others() -> None:
    """In a forked child: there are no other threads."""
    here = threading.get_ident()
    for thread in [thread for thread in _running if thread != here]:
        del _running[thread]


class _Source(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        undisturbed(lambda: super(_Source, self).exec_module(module))


class _Sourceless(SourcelessFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        undisturbed(lambda: super(_Sourceless, self).exec_module(module))


_GUARDED: dict[type, type] = {SourceFileLoader: _Source, SourcelessFileLoader: _Sourceless}


class PackageFinder:
    """Finds modules of this package where Python does, and lets them run undisturbed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module of the package, or None for all others."""
        if not fullname.startswith(_PACKAGE) or fullname.partition(".")[0] != _PACKAGE:
            return None
        return guarded(PathFinder.find_spec(fullname, path, target))


def guarded(spec: ModuleSpec | None) -> ModuleSpec | None:
    """The same spec, whose loader runs the module undisturbed."""
    kind = _GUARDED.get(type(spec.loader)) if spec is not None else None
    if kind is not None:
        assert spec is not None
        spec.loader.__class__ = kind  # type: ignore[assignment]  (a subclass without state of its own)
    return spec


def install() -> None:
    """Put the finder before Python's."""
    sys.meta_path[:] = [
        PackageFinder(),
        *(f for f in sys.meta_path if type(f).__qualname__ != PackageFinder.__qualname__),
    ]
