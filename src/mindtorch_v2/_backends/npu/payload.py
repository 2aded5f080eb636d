"""The payload of a tensor on an NPU: a geometry over a storage in device memory."""

from __future__ import annotations

from typing import Any

from ..._device import device
from ..._payload import DevicePayload, contiguous_strides


class NpuPayload(DevicePayload):
    """Shape, stride and offset in elements, dtype, and the storage, which knows its device."""

    __slots__ = ()

    @property
    def device(self) -> device:  # type: ignore[override]
        return self.storage.device

    @property
    def address(self) -> int:
        """The device address of the first element."""
        return self.storage.data_ptr() + self.offset * self.dtype.itemsize

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        return self.size == 0 or all(
            n == 1 or given == plain
            for n, given, plain in zip(self.shape, self.stride, contiguous_strides(self.shape), strict=True)
        )


def extent_bytes(payload: Any) -> int:
    """The bytes from the first element to behind the last one."""
    if 0 in payload.shape:
        return 0
    reach = 1 + sum((n - 1) * step for n, step in zip(payload.shape, payload.stride, strict=True))
    return reach * payload.dtype.itemsize
