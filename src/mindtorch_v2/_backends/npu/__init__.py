"""Ascend NPUs: CANN's runtime, a caching allocator, streams, and operators by aclnn functions. Without an NPU it says what is missing."""

from __future__ import annotations

__all__ = ["is_available", "unavailable_reason"]


def is_available() -> bool:
    """Whether tensors can be put on an NPU: CANN (or the emulator, where `MINDTORCH_NPU_EMULATOR` asks for it) is there and reports a device."""
    from .runtime import device_count

    return device_count() > 0


def unavailable_reason() -> str:
    """Why there is no NPU to use; empty when there is one."""
    from . import runtime

    return runtime.unavailable_reason()
