"""Warnings of operators: those given each time, and those given once in the life of a process (each time when `set_warn_always` says so)."""

from __future__ import annotations

import functools
import os
import sys
import warnings

from ._state import TLS

_given: set[str] = set()
_always = False


@functools.cache
def homes() -> tuple[str, ...]:
    """The folders of this package's files."""
    generated = sys.modules[f"{__name__.partition('.')[0]}._generated"]
    folders = (os.path.dirname(__file__), *generated.__path__)
    return tuple(dict.fromkeys(os.path.realpath(folder) + os.sep for folder in folders))


def set_always(mode: bool) -> None:
    """Whether warnings that are given once are given each time."""
    global _always
    _always = mode


def always() -> bool:
    """What `set_always` said."""
    return _always


def warn_once(words: str, category: type[Warning] = UserWarning, stacklevel: int = 2) -> None:
    """Give a warning, unless it was given before."""
    if _always or words not in _given:
        _given.add(words)
        warnings.warn(words, category, stacklevel=stacklevel + 1)


def warn_of_call(words: str, category: type[Warning] = UserWarning) -> None:
    """Give a rule's warning, as often as the rule is asked, at the line outside of this package that called the operator.

    A call that warns is not planned, since plans stand for the rule: asked for one (`plans.learn`), the rule fails with RuntimeError.
    """
    if TLS.undifferentiable is not None:
        raise RuntimeError("a call that warns is not planned")
    frame, level = sys._getframe(1), 2
    while frame is not None and frame.f_code.co_filename.startswith(homes()):
        frame, level = frame.f_back, level + 1
    warnings.warn(words, category, stacklevel=level)
