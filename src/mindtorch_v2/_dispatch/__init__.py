"""Operators as records, the general path from a call to a result, and pipeline mode."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name in ("pipeline_context", "current_pipeline"):
        from . import pipeline

        return getattr(pipeline, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
