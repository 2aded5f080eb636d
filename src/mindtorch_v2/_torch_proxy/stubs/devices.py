"""Context managers that select a device of a kind that is not there."""

from __future__ import annotations

from typing import Any


class device:
    """Selects a device; None and negative numbers select nothing, which works without any device."""

    def __init__(self, device: Any) -> None:
        self.idx = getattr(device, "index", device)

    def __enter__(self) -> None:
        if self.idx is not None and (not isinstance(self.idx, int) or self.idx >= 0):
            raise RuntimeError("there is no such device: mindtorch_v2 has no CUDA or XPU support")

    def __exit__(self, *exc: object) -> bool:
        return False


class device_of(device):
    """Selects the device of a tensor; a tensor on another kind of device selects nothing."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device.index if obj.device.type in ("cuda", "xpu") else None)
