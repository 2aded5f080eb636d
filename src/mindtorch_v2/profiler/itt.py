"""`torch.profiler.itt`: marks for Intel's tools, which are not there."""

from __future__ import annotations

from typing import Any

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def is_available() -> bool:
    """False."""
    return False


def range_push(msg: str) -> Any:
    """Raises RuntimeError: there is no tool."""
    raise RuntimeError("ITT functions not installed. Are you sure you have a ITT build?")


def range_pop() -> Any:
    """Raises RuntimeError: there is no tool."""
    return range_push("")


def mark(msg: str) -> Any:
    """Raises RuntimeError: there is no tool."""
    return range_push(msg)


def range(msg: str, *args: Any, **kwargs: Any) -> Any:
    """Raises RuntimeError: there is no tool."""
    return range_push(msg)
