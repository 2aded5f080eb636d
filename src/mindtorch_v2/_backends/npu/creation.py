"""Payloads on an NPU."""

from __future__ import annotations

from typing import Any

from ..._device import device
from ..._payload import contiguous_strides, extent
from .payload import NpuPayload
from .storage import NpuStorage
from .streams import device_index


def place(where: device) -> device:
    """The device with its index; the current one where none is named. RuntimeError when there is no such NPU."""
    return device("npu", device_index(where))


def empty(shape: tuple, stride: tuple | None, dtype: Any, where: Any = None) -> NpuPayload:
    """An uninitialised payload with a storage of its own; `stride` in elements, None for contiguous.

    RuntimeError (out of memory, or why there is no NPU).
    """
    if stride is None:
        stride = contiguous_strides(shape)
    return NpuPayload(shape, tuple(stride), dtype, 0, NpuStorage(extent(shape, stride) * dtype.itemsize, where))
