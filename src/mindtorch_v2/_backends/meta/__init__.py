"""The meta device: shapes, dtypes and strides without data. Its rules validate every operator, on every device."""

from __future__ import annotations

from typing import Any

from ..._device import META, device
from ..._dispatch import backends
from .creation import empty
from .ops import run, run_into

__all__ = ["empty", "is_available", "run", "run_into"]


class _Meta:
    empty = staticmethod(empty)
    run = staticmethod(run)
    run_into = staticmethod(run_into)

    @staticmethod
    def place(where: device) -> device:
        return META

    @staticmethod
    def supports(op: Any, specs: Any) -> bool:
        return True

    @staticmethod
    def copy(target: Any, source: Any) -> None:
        """Nothing: there are no elements."""

    @staticmethod
    def to_host(payload: Any) -> Any:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")


backends.register("meta", _Meta())


def is_available() -> bool:
    """Always."""
    return True
