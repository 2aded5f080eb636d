"""What tests do with devices that programs do not."""

from __future__ import annotations

from mindtorch_v2._backends.npu.runtime import get_runtime


def reset(device: int = 0) -> None:
    """Take back the failures of a device's kernels, which it keeps, by resetting it. On the emulator its memory stays as it is."""
    runtime = get_runtime()
    runtime.call("aclrtResetDevice", device)
    runtime.call("aclrtSetDevice", device)
