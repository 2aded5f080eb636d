"""`torch.accelerator`: whatever accelerator there is, an NPU or none, by names that say no kind of device."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from .. import npu
from .._device import device as _device
from ._kind import index_of, require
from .graphs import Graph
from .memory import (
    empty_cache,
    empty_host_cache,
    get_memory_info,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
)

if TYPE_CHECKING:
    from .._device import DeviceLike

__all__ = [
    "Graph",
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "empty_host_cache",
    "get_device_capability",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]


def is_available() -> bool:
    """Whether there is an accelerator."""
    return npu.is_available()


def device_count() -> int:
    """The number of accelerators; 0 without one."""
    return npu.device_count()


def current_accelerator(check_available: bool = False) -> _device | None:
    """The kind of the accelerators, as a device without an index; None without one."""
    return _device("npu") if npu.is_available() else None


def get_device_capability(device: DeviceLike | None = None, /) -> dict[str, Any]:
    """`supported_dtypes`: the dtypes that tensors on a device may have. RuntimeError without one."""
    from .._backends.npu.aclnn import ACL_DTYPES
    from .._dtype import DTYPES

    require()
    index_of(device)
    bfloat16 = npu.is_bf16_supported()
    return {"supported_dtypes": {DTYPES[name] for name in ACL_DTYPES if bfloat16 or name != "bfloat16"}}


def current_device_index() -> int:
    """The index of this thread's current device. RuntimeError without an accelerator."""
    require()
    return npu.current_device()


def set_device_index(device: DeviceLike | None, /) -> None:
    """Make a device this thread's current one. ValueError for None and for a device without an index or of another kind, RuntimeError for one that is not there."""
    npu.set_device(index_of(device, optional=False))


def current_device_idx() -> int:
    """`current_device_index`, under its former name."""
    warnings.warn("Use `current_device_index` instead.", FutureWarning, stacklevel=2)
    return current_device_index()


def set_device_idx(device: DeviceLike | None, /) -> None:
    """`set_device_index`, under its former name."""
    warnings.warn("Use `set_device_index` instead.", FutureWarning, stacklevel=2)
    set_device_index(device)


def current_stream(device: DeviceLike | None = None, /) -> npu.Stream:
    """The stream that this thread's work on a device (the current one) goes to. RuntimeError without an accelerator."""
    return npu.current_stream(index_of(device))


def set_stream(stream: npu.Stream) -> None:
    """Make a stream, and its device, this thread's current ones. RuntimeError without an accelerator, TypeError for another thing than a stream of it."""
    require()
    if not isinstance(stream, npu.Stream):
        raise TypeError(f"expected a stream of the accelerator, but got {type(stream).__name__}")
    npu.set_stream(stream)


def synchronize(device: DeviceLike | None = None, /) -> None:
    """Wait for all work of a device (the current one). RuntimeError without one."""
    npu.synchronize(index_of(device))


class device_index:
    """Makes the device of an index this thread's current one for a while; None changes nothing."""

    def __init__(self, device: int | None, /) -> None:
        self.idx = device
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx is not None:
            require()
            self.prev_idx = npu.current_device()
            npu.set_device(self.idx)

    def __exit__(self, *exc: object) -> None:
        if self.idx is not None:
            npu.set_device(self.prev_idx)
