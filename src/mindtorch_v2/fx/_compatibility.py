"""Marks of what stays compatible between releases; they change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def compatibility(is_backward_compatible: bool) -> Callable[[T], T]:
    """A decorator that returns its function or class."""
    return lambda inner: inner
