"""Ascend NPUs. This version finds CANN's runtime library and says what is missing; it does not run operators on an NPU yet."""

from __future__ import annotations

from .acl_loader import find_runtime

__all__ = ["is_available", "unavailable_reason"]


def unavailable_reason() -> str:
    """Why there is no NPU to use."""
    library = find_runtime()
    if library is None:
        return "no NPU is available: CANN's runtime library (libascendcl.so) was not found on this machine"
    return f"CANN's runtime library was found ({library}), but this version has no NPU backend yet"


def is_available() -> bool:
    """Whether tensors can be put on an NPU."""
    return False
