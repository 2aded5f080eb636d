"""Marks in the traces of CANN's profiler."""

from __future__ import annotations

from typing import Any

__all__ = ["mstx"]


class mstx:
    """Marks and ranges for msprof. Nothing binds its library, so they are taken and go nowhere, as torch_npu's do while no profiler runs."""

    @staticmethod
    def mark(message: str, stream: Any = None, domain: str = "default") -> None:
        """A point in time."""

    @staticmethod
    def range_start(message: str, stream: Any = None, domain: str = "default") -> int:
        """The beginning of a range: 0, the number of no range."""
        return 0

    @staticmethod
    def range_end(range_id: int, domain: str = "default") -> None:
        """The end of a range."""

    @staticmethod
    def mstx_range(message: str, stream: Any = None, domain: str = "default") -> Any:
        """A decorator that gives the function as it is."""
        return lambda function: function
