"""Memory of NPUs and pinned memory, as `torch.cuda.memory` has it of CUDA devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._backends.npu._host_statistics import HOST as _HOST
from .._backends.npu.memory import (
    _dump_snapshot as _dump_snapshot,
    _record_memory_history as _record_memory_history,
    _snapshot as _snapshot,
    caching_allocator_alloc,
    caching_allocator_delete,
    empty_cache,
    get_per_process_memory_fraction,
    host_memory_stats,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from ._missing import NAMES as _NAMES

if TYPE_CHECKING:
    from .._device import DeviceLike
    from .._tensor import Tensor

__all__ = [
    "MemPool",
    "NPUPluggableAllocator",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "change_current_allocator",
    "empty_cache",
    "empty_virt_addr_cache",
    "get_allocator_backend",
    "get_per_process_memory_fraction",
    "host_empty_cache",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "is_pinned",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "pin_memory",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
    "use_mem_pool",
]

MemPool, NPUPluggableAllocator = _NAMES["MemPool"], _NAMES["NPUPluggableAllocator"]
change_current_allocator, use_mem_pool = _NAMES["change_current_allocator"], _NAMES["use_mem_pool"]


def pin_memory(tensor: Tensor, device: DeviceLike | None = None) -> Tensor:
    """The tensor in pinned host memory: itself, or a copy."""
    return tensor.pin_memory()


def is_pinned(tensor: Tensor, device: DeviceLike | None = None) -> bool:
    """Whether a tensor lies in pinned host memory."""
    return tensor.is_pinned()


def get_allocator_backend() -> str:
    """`native`: the caching allocator cannot be replaced."""
    return "native"


def empty_virt_addr_cache() -> None:
    """Give back ranges of addresses that no memory is mapped to: there are none once `empty_cache` has run."""


def host_empty_cache() -> None:
    """Give cached pinned memory back: none is cached."""


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """Statistics of pinned memory, nested."""
    return _HOST.nested()


def reset_accumulated_host_memory_stats() -> None:
    """Let sums of what was pinned and given back, times, and counts begin at 0."""
    _HOST.reset_accumulated()


def reset_peak_host_memory_stats() -> None:
    """Let peaks of pinned memory begin at what is current."""
    _HOST.reset_peak()
