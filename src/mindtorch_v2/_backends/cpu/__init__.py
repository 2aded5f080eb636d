"""The CPU: numpy arrays and kernels."""

from __future__ import annotations

from ..._dispatch import backends
from .creation import empty
from .run import run, run_into

__all__ = ["empty", "is_available", "run", "run_into"]


class _CPU:
    empty = staticmethod(empty)
    run = staticmethod(run)
    run_into = staticmethod(run_into)


backends.register("cpu", _CPU())


def is_available() -> bool:
    """Always."""
    return True
