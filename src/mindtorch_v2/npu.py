"""`torch.npu`: Ascend devices. Without an NPU the queries answer and everything else says what is missing."""

from __future__ import annotations

from ._backends.npu import is_available, unavailable_reason

__all__ = ["device_count", "is_available", "synchronize"]


def device_count() -> int:
    """The number of NPUs."""
    return 0


def synchronize(device: object = None) -> None:
    """Wait for a device. RuntimeError without one."""
    raise RuntimeError(f"npu: {unavailable_reason()}")
