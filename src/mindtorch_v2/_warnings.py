"""Warnings that are given once in the life of a process, or each time when `set_warn_always` says so."""

from __future__ import annotations

import warnings

_given: set[str] = set()
_always = False


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
