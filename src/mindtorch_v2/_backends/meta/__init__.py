"""The meta device: shapes, dtypes and strides without data. Its rules validate every operator, on every device."""

from __future__ import annotations

from ..._dispatch import backends
from .creation import empty
from .ops import run, run_into

__all__ = ["empty", "is_available", "run", "run_into"]


class _Meta:
    empty = staticmethod(empty)
    run = staticmethod(run)
    run_into = staticmethod(run_into)


backends.register("meta", _Meta())


def is_available() -> bool:
    """Always."""
    return True
