"""Memory of the accelerator that there is. All raise RuntimeError without one."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from .. import npu
from ._kind import index_of, require

if TYPE_CHECKING:
    from .._device import DeviceLike

__all__ = [
    "empty_cache",
    "empty_host_cache",
    "get_memory_info",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
]


def empty_cache() -> None:
    """Give cached memory of every device back."""
    require()
    npu.empty_cache()


def empty_host_cache() -> None:
    """Give cached pinned memory back: none is cached."""
    require()
    npu.host_empty_cache()


def memory_stats(device_index: DeviceLike | None = None, /) -> OrderedDict[str, Any]:
    """Every statistic of a device's allocator by its flat name, sorted."""
    return OrderedDict(npu.memory_stats(index_of(device_index)))


def memory_allocated(device_index: DeviceLike | None = None, /) -> int:
    """Bytes that tensors hold."""
    return npu.memory_allocated(index_of(device_index))


def max_memory_allocated(device_index: DeviceLike | None = None, /) -> int:
    """The most bytes that tensors have held since the start or `reset_peak_memory_stats`."""
    return npu.max_memory_allocated(index_of(device_index))


def memory_reserved(device_index: DeviceLike | None = None, /) -> int:
    """Bytes that the allocator has taken from the device."""
    return npu.memory_reserved(index_of(device_index))


def max_memory_reserved(device_index: DeviceLike | None = None, /) -> int:
    """The most bytes that the allocator has taken since the start or `reset_peak_memory_stats`."""
    return npu.max_memory_reserved(index_of(device_index))


def reset_accumulated_memory_stats(device_index: DeviceLike | None = None, /) -> None:
    """Let sums and counts begin at 0."""
    npu.reset_accumulated_memory_stats(index_of(device_index))


def reset_peak_memory_stats(device_index: DeviceLike | None = None, /) -> None:
    """Let peaks begin at what is current."""
    npu.reset_peak_memory_stats(index_of(device_index))


def get_memory_info(device_index: DeviceLike | None = None, /) -> tuple[int, int]:
    """(free, total) bytes of a device."""
    return npu.mem_get_info(index_of(device_index))
