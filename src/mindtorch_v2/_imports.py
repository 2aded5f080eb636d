"""Modules of this package run undisturbed when they are imported.

Note [Imports on first use]
Most of the package is imported when something of it is first used. A signal's handler runs between any two instructions of the main thread; one that computes with
tensors while a module is being run would find that module half made, and one that raises (an interrupt, a time limit) would leave it so. So while the main
thread imports a module of the package, with all that it imports, signals that have a handler in Python are noted, and their handlers are called when the outermost
module is complete: some milliseconds late. Other threads run no handlers, and who wants a module that another thread is importing waits for it.

That has to begin before a module is in `sys.modules`, and to end when Python's import system is done with it: were a handler to run, or to raise, in between, a module
that is complete would be dropped, or run twice. No function of ours is called there. But the spec that a finder returns lives in the frames of the import system
alone, so one of our own (`_Entered`) dies with them; a signal that this sends calls `note`, between two instructions of whoever imports, and that calls the handlers.

A handler that comes earlier, before the finder is asked, may import the very module: then that is what the loader gives (`present`), and it is not run again.

A process that is forked while another thread imports would have that module half made for good, and its lock held; `forks` waits for `others_import`.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  (builtin; `signal` makes enumerations, which cost more than all of this)
import _thread
import functools
import importlib
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader, SourcelessFileLoader
from types import FrameType, ModuleType
from typing import Any

_PACKAGE = __name__.partition(".")[0]
_BOOTSTRAP = sys.modules["_frozen_importlib"]
_module_locks: dict[str, Any] = getattr(_BOOTSTRAP, "_module_locks", {})
"""Python's own locks of modules that are being imported, by name, as weak references."""
_running: dict[int, int] = {}
"""By thread: how many modules it is running, one inside of the other."""
_interrupt: Callable[[int], None] = _thread.interrupt_main  # type: ignore[assignment]
_IGNORED = ("SIGURG", "SIGWINCH", "SIGCHLD", "SIGCONT")
"""Signals of which processes hear nothing unless they ask; one that has no handler says when an import is done."""


class Held:
    """Signals that wait while the main thread imports, or is inside of what must not be left half done."""

    current: Held | None = None

    def __init__(self) -> None:
        self.handlers: dict[int, Any] = {}
        self.came: list[int] = []
        self.end = 0
        """The number of the signal that says when this ends."""
        self.token: Callable[[], _Token | None] | None = None

    def note(self, number: int, frame: FrameType | None) -> None:
        """The handler for the time being."""
        if number != self.end:
            self.came.append(number)
        if self.token is not None and self.token() is None:
            self.finish()

    def begin(self) -> None:
        """Hold them from now on."""
        note = self.note
        try:
            for number in _signal.valid_signals():
                handler = _signal.getsignal(number)
                if callable(handler):
                    self.handlers[number] = handler
                    _signal.signal(number, note)
            Held.current = self
        except BaseException:  # of a handler that came in the midst
            self.finish()
            raise

    def finish(self) -> None:
        """Give the handlers back, and let them be called for what came."""
        note = self.note
        try:
            while self.handlers:
                number, handler = next(iter(self.handlers.items()))
                if _signal.getsignal(number) == note:  # a module may have set its own
                    _signal.signal(number, handler)
                self.handlers.pop(number, None)
            if Held.current is self:
                Held.current = None
            came, self.came = self.came, []
            any(map(_interrupt, came))  # no instruction of Python between them: each is called, also where one raises
        finally:
            if self.handlers or self.came:  # one that was given back raised
                self.finish()

    def until_forgotten(self) -> _Token | None:
        """What ends this when it dies, or None where no signal is free to say so."""
        for name in _IGNORED:
            number = getattr(_signal, name, None)
            if number is not None and _signal.getsignal(number) == _signal.SIG_DFL:
                self.end = int(number)
                self.handlers[self.end] = _signal.SIG_DFL
                _signal.signal(self.end, self.note)
                token = _token_class(self.end)()
                self.token = weakref.ref(token)
                return token
        return None


class _Token:
    """Ends the holding of signals when it dies."""


@functools.cache
def _token_class(number: int) -> type[_Token]:
    # Not a function of Python: what a handler raises while a finalizer runs is lost.
    return type("_Token", (_Token,), {"__del__": staticmethod(functools.partial(_interrupt, number))})


def undisturbed(run: Callable[[], Any]) -> Any:
    """What a function that imports gives; signals' handlers are called when the outermost import is done, see Note [Imports on first use]."""
    thread = threading.get_ident()
    if thread in _running or Held.current is not None or thread != threading.main_thread().ident:
        return _counted(thread, run)
    held = Held()
    held.begin()  # what is counted is held: a handler that comes before, or after, holds signals for its own imports
    try:
        return _counted(thread, run)
    finally:
        held.finish()


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
    """In a forked child: there are no other threads. What one of them was importing after all, since it began when no fork could wait any more, is imported anew."""
    here = threading.get_ident()
    for thread in [thread for thread in _running if thread != here]:
        del _running[thread]
    for name, ref in list(_module_locks.items()):
        held = ref()
        if held is not None and getattr(held, "owner", None) not in (None, here):
            _module_locks.pop(name, None)
            if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
                del sys.modules[name]


class _Entered(ModuleSpec):
    """A spec that the import system alone has, see Note [Imports on first use]."""

    real: ModuleSpec
    token: _Token | None


def _imported() -> bool:
    """Whether the function that is called is asked by the import system for a module that it will run."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals is not vars(_BOOTSTRAP):
        frame = frame.f_back
    below = None if frame is None else frame.f_back
    return below is not None and below.f_code.co_name in ("_find_and_load_unlocked", "_load_unlocked")


def entered(spec: ModuleSpec) -> ModuleSpec:
    """What a finder returns for a spec whose loader calls `present` and `once`: from then on signals are held."""
    thread = threading.get_ident()
    if thread in _running or thread != threading.main_thread().ident or not _imported():
        return spec
    if Held.current is not None:
        if Held.current.token is None or Held.current.token() is not None:
            return spec
        Held.current.finish()
    held = Held()
    held.begin()
    token = held.until_forgotten() if held.handlers else None
    if token is None:
        held.finish()
        return spec
    made = _Entered.__new__(_Entered)
    vars(made).update(vars(spec), real=spec, token=token)
    return made


def present(spec: ModuleSpec) -> ModuleType | None:
    """The module of this name that is there, though the import system found none: a handler has imported it since."""
    module = sys.modules.get(spec.name)
    if module is None or not _imported():
        return None
    spec.loader_state = module
    return module


def once(module: ModuleType, run: Callable[[ModuleType], Any]) -> None:
    """Let a loader run a module, undisturbed, unless it is one that was `present`."""
    spec = module.__spec__
    assert spec is not None
    real = spec.real if isinstance(spec, _Entered) else spec
    real._initializing = True  # type: ignore[attr-defined]
    module.__spec__ = real
    try:
        if spec.loader_state is not module:
            undisturbed(lambda: run(module))
    except BaseException:  # a handler's, too: frames, and so the spec, live as long as the error, which is raised again
        if isinstance(spec, _Entered):
            spec.token = None
        raise
    finally:
        spec.loader_state = None
        if real is not spec:
            real._initializing = False  # type: ignore[attr-defined]


class _Source(SourceFileLoader):
    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return present(spec)

    def exec_module(self, module: ModuleType) -> None:
        once(module, super().exec_module)


class _Sourceless(SourcelessFileLoader):
    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return present(spec)

    def exec_module(self, module: ModuleType) -> None:
        once(module, super().exec_module)


_GUARDED: dict[type, type] = {SourceFileLoader: _Source, SourcelessFileLoader: _Sourceless}


class PackageFinder:
    """Finds modules of this package where Python does, and lets them run undisturbed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module of the package, or None for all others."""
        if not fullname.startswith(_PACKAGE) or fullname.partition(".")[0] != _PACKAGE:
            return None
        spec = guarded(PathFinder.find_spec(fullname, path, target))
        return entered(spec) if spec is not None and isinstance(spec.loader, _Source | _Sourceless) else spec


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
