"""Locks that a fork leaves usable.

Note [Forks]
A forked child has the thread that forked and no other. What another thread held is held for good there, and what it was changing is half changed. So every lock
of the library is made by `lock()`, or told to `guard`, and a fork waits until no other thread holds any of them: then nothing that they protect is half done.
Imports are waited for as well (Note [Imports on first use] in `_imports.py`). Whoever keeps a lock longer than `PATIENCE` does not stop the fork; the child then
gets the lock free, and is told by `on_cut`. What a thread had that is gone (pools, counts of what is active in threads) is put right by `in_child`.

Which of the common locks are taken within which others is not said anywhere: where one is busy, those are given back before it is waited for.
Locks may be taken again by their holder, since a signal's handler, or a finalizer, may fork while its thread holds some.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from . import _imports

PATIENCE = 5.0
"""Seconds that a fork waits for other threads, all in all."""

OUTER, COMMON = range(2)
"""Ranks of locks, in which a fork takes them: those that a thread keeps while it takes others, and never two of; all others."""
_guarded: dict[int, tuple[weakref.ref, int, Any]] = {}
"""By the id of a lock: the lock, its rank, and what to call where it was freed."""
_in_child: list[Callable[[], Any]] = []
_forking = threading.RLock()
_taken: dict[int, list[list]] = {}
"""By thread, of each fork that it has under way (a signal's handler may fork within one): the locks that it holds."""


def lock(rank: int = COMMON, on_cut: Callable[[], Any] | None = None) -> Any:
    """A new lock, which its holder may take again, and which no fork leaves held by a thread that is gone. See `guard`."""
    return guard(threading.RLock(), rank, on_cut)


def guard(made: Any, rank: int = COMMON, on_cut: Callable[[], Any] | None = None) -> Any:
    """The same lock, guarded from now on while it lives.

    made: has `acquire(timeout=...)`, `release()` and `_at_fork_reinit()`, and can be taken again by its holder. on_cut: a method, not kept alive,
    that is called in a child in which the lock was taken from another thread.
    """
    key = id(made)
    told = None if on_cut is None else weakref.WeakMethod(on_cut)  # type: ignore[type-var]
    _guarded[key] = weakref.ref(made, lambda _, key=key: _guarded.pop(key, None)), rank, told
    return made


def in_child(function: Callable[[], Any]) -> Callable[[], Any]:
    """Call a function in each forked child, when locks are free. Returns it."""
    _in_child.append(function)
    return function


def _alive() -> list[tuple[Any, int, Any]]:
    return [(made, rank, told) for ref, rank, told in list(_guarded.values()) if (made := ref()) is not None]


def _wait_for_others() -> None:
    deadline = time.monotonic() + PATIENCE
    held: list = []
    _taken.setdefault(threading.get_ident(), []).append(held)
    if _forking.acquire(timeout=PATIENCE):
        held.append(_forking)
    for rank in (OUTER, COMMON):
        _take(rank, held, deadline)


def _take(rank: int, held: list, deadline: float) -> None:
    """Take all locks of a rank, and add them to those that are held: as far as that goes until the deadline."""
    own = len(held)
    busy: Any = None  # what another thread had
    while True:
        left = max(0.0, deadline - time.monotonic())
        while rank == COMMON and _imports.others_import() and time.monotonic() < deadline:
            time.sleep(0.0005)
        if busy is not None and busy.acquire(timeout=left):
            held.append(busy)
        of_rank = [entry[0] for entry in _alive() if entry[1] == rank and entry[0] is not busy]
        if rank == OUTER:  # each is kept for long, and no thread wants a second one
            held.extend(each for each in of_rank if each.acquire(timeout=max(0.0, deadline - time.monotonic())))
            return
        missed = [each for each in of_rank if not _took(each, held)]
        if not left or not (missed or (rank == COMMON and _imports.others_import())):
            return
        busy = missed[0] if missed else None
        while len(held) > own:
            held.pop().release()


def _took(each: Any, held: list) -> bool:
    if not each.acquire(timeout=0):
        return False
    held.append(each)
    return True


def _go_on() -> None:
    own = _taken[threading.get_ident()]
    held = own.pop()
    if not own:
        del _taken[threading.get_ident()]
    while held:
        held.pop().release()


def _begin_child() -> None:
    global _forking
    here = threading.get_ident()
    for thread in [thread for thread in _taken if thread != here]:
        del _taken[thread]
    held = _taken[here][-1]
    cut = [(each, told) for each, _, told in _alive() if not any(each is one for one in held)]
    for each, _ in cut:
        each._at_fork_reinit()
    if not any(one is _forking for one in held):
        _forking = threading.RLock()
    _go_on()
    _imports.forget_others()
    for function in _in_child:
        function()
    for _, told in cut:
        method = None if told is None else told()
        if method is not None:
            method()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_wait_for_others, after_in_parent=_go_on, after_in_child=_begin_child)
