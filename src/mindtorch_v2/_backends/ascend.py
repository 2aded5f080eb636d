"""The former name of `npu`."""

from __future__ import annotations

from .npu import is_available, unavailable_reason

__all__ = ["is_available", "unavailable_reason"]
