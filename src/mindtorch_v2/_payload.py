"""Payloads: what a tensor of each device holds in `_payload`, and the few questions every device answers about it.

A CPU payload is a `numpy.ndarray`, a meta payload a `MetaPayload`, that of an NPU a `NpuPayload`. Kernels and the generated code see nothing else.
"""

from __future__ import annotations

import math
from typing import Any

from numpy import ndarray

from . import _device, _dtype, _memory
from ._device import device


class Shaped:
    """What follows from a shape."""

    __slots__ = ()

    shape: tuple

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class DevicePayload(Shaped):
    """Shape, stride, dtype and offset over a storage that numpy does not see; views share the `storage` object."""

    __slots__ = ("shape", "stride", "dtype", "offset", "storage")

    device: device

    def __init__(self, shape: tuple, stride: tuple, dtype: _dtype.dtype, offset: int, storage: Any):
        self.shape = shape
        self.stride = stride
        self.dtype = dtype
        self.offset = offset
        self.storage = storage


class MetaPayload(DevicePayload):
    """A geometry without memory: its storage has a size only."""

    __slots__ = ()

    device = _device.META


class WrapperPayload(DevicePayload):
    """The geometry that a wrapper shows; what it wraps holds the elements. See `Tensor._make_wrapper_subclass`."""

    __slots__ = ("device",)

    def __init__(
        self, shape: tuple, stride: tuple, dtype: _dtype.dtype, offset: int, storage: Any, where: device = _device.CPU
    ):
        super().__init__(shape, stride, dtype, offset, storage)
        self.device = where


def contiguous_strides(shape: tuple) -> tuple:
    """Strides, in elements, of a C-contiguous tensor; sizes of zero count as one, as PyTorch does."""
    strides = []
    step = 1
    for n in reversed(shape):
        strides.append(step)
        step *= n or 1
    strides.reverse()
    return tuple(strides)


def extent(shape: tuple, stride: tuple) -> int:
    """The number of elements of storage that a tensor of this geometry reaches."""
    if 0 in shape:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(shape, stride))


def device_of(payload: Any) -> device:
    """The device of a payload."""
    return _device.CPU if payload.__class__ is ndarray else payload.device


def stride_of(payload: Any) -> tuple:
    """Strides in elements. numpy gives fresh arrays without elements strides of 0; PyTorch's are those of a contiguous tensor."""
    if payload.__class__ is ndarray:
        strides = payload.strides
        if not payload.size and not any(strides):
            return contiguous_strides(payload.shape)
        item = payload.dtype.itemsize
        return tuple([s // item for s in strides])
    return payload.stride


def is_expanded(payload: Any) -> bool:
    """Whether elements share memory, as `expand` makes them."""
    strides = payload.strides if payload.__class__ is ndarray else payload.stride
    return any(step == 0 and n > 1 for n, step in zip(payload.shape, strides))


def offset_of(payload: Any) -> int:
    """Storage offset in elements."""
    if payload.__class__ is ndarray:
        return _memory.storage_offset(payload)
    return payload.offset


def as_strided(payload: Any, shape: tuple, stride: tuple, offset: int) -> Any:
    """A view of the payload's storage; `offset` in elements, relative to the payload's first element."""
    if payload.__class__ is ndarray:
        return _memory.strided_view(payload, shape, stride, offset)
    return payload.__class__(shape, stride, payload.dtype, payload.offset + offset, payload.storage)


def unavailable(where: device) -> str:
    """Why there is no tensor on `where`."""
    if where.type == "npu":
        return "npu: no NPU is available: CANN's runtime library (libascendcl.so) was not found on this machine"
    if where.type in ("cuda", "xpu"):
        return f"Torch not compiled with {where.type.upper()} enabled"
    return f"mindtorch_v2 has no backend for the device type {where.type!r}; it has cpu, meta and npu"
