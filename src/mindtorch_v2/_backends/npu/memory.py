"""Public functions about the memory of NPUs, by the names of `torch.cuda.memory` and torch_npu. `mindtorch_v2.npu` shows them.

All of them answer without an NPU and before the first allocation, except those that need the device itself (`mem_get_info`, `caching_allocator_alloc`).
"""

from __future__ import annotations

import pickle
import warnings
from typing import TYPE_CHECKING, Any

from ..._above import above
from ..._state import run_recorded
from ._host_statistics import HOST
from ._statistics import flatten
from ._summary import summary
from .allocator import Block, NpuAllocator, existing

if TYPE_CHECKING:
    from ..._device import DeviceLike

__all__ = [
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "empty_cache",
    "get_per_process_memory_fraction",
    "host_memory_stats",
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
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
]

_RAW: dict[int, tuple[NpuAllocator, Block]] = {}
"""Blocks of `caching_allocator_alloc` by their address."""


def _allocator(device: DeviceLike | None) -> Any:
    run_recorded()
    # Looked up on the public module at each call, so that it can be replaced there.
    return above("npu_allocator")(device)


# ------------------------------------------------------------------------------------------------------------------- statistics


def memory_stats(device: DeviceLike | None = None) -> dict[str, Any]:
    """Every statistic of the allocator by its flat name ("allocated_bytes.all.current"), sorted."""
    return flatten(_allocator(device).memory_stats())


def memory_stats_as_nested_dict(device: DeviceLike | None = None) -> dict[str, Any]:
    """The statistics as nested dicts: kind, pool, metric."""
    return _allocator(device).memory_stats_as_nested_dict()


def memory_allocated(device: DeviceLike | None = None) -> int:
    """Bytes that tensors hold."""
    return memory_stats(device).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device: DeviceLike | None = None) -> int:
    """The most bytes that tensors have held since the start or `reset_peak_memory_stats`."""
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def memory_reserved(device: DeviceLike | None = None) -> int:
    """Bytes that the allocator has taken from the device."""
    return memory_stats(device).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device: DeviceLike | None = None) -> int:
    """The most bytes that the allocator has taken from the device since the start or `reset_peak_memory_stats`."""
    return memory_stats(device).get("reserved_bytes.all.peak", 0)


def memory_cached(device: DeviceLike | None = None) -> int:
    """The former name of `memory_reserved`."""
    warnings.warn("npu.memory_cached has been renamed to npu.memory_reserved", FutureWarning, stacklevel=2)
    return memory_reserved(device)


def max_memory_cached(device: DeviceLike | None = None) -> int:
    """The former name of `max_memory_reserved`."""
    warnings.warn("npu.max_memory_cached has been renamed to npu.max_memory_reserved", FutureWarning, stacklevel=2)
    return max_memory_reserved(device)


def reset_peak_memory_stats(device: DeviceLike | None = None) -> None:
    """Let every "peak" begin at its current number."""
    _allocator(device).reset_peak_memory_stats()


def reset_accumulated_memory_stats(device: DeviceLike | None = None) -> None:
    """Let every "allocated" and "freed", and the counts of retries and errors, begin at 0."""
    _allocator(device).reset_accumulated_memory_stats()


def reset_max_memory_allocated(device: DeviceLike | None = None) -> None:
    """`reset_peak_memory_stats`, with a warning that it resets all peaks."""
    warnings.warn("npu.reset_max_memory_allocated resets all peak statistics", FutureWarning, stacklevel=2)
    reset_peak_memory_stats(device)


def reset_max_memory_cached(device: DeviceLike | None = None) -> None:
    """`reset_peak_memory_stats`, with a warning that it resets all peaks."""
    warnings.warn("npu.reset_max_memory_cached resets all peak statistics", FutureWarning, stacklevel=2)
    reset_peak_memory_stats(device)


def memory_summary(device: DeviceLike | None = None, abbreviated: bool = False) -> str:
    """The statistics as a table of 75 columns; `abbreviated` leaves the lines of the pools out. What an allocator does not state counts as 0."""
    allocator = _allocator(device)
    return summary(allocator.memory_stats(), getattr(allocator, "device_id", 0), abbreviated)


# ----------------------------------------------------------------------------------------------------------------------- limits


def mem_get_info(device: DeviceLike | None = None) -> tuple[int, int]:
    """Free and total bytes of the device. RuntimeError without one."""
    return _allocator(device).mem_get_info()


def set_per_process_memory_fraction(fraction: float, device: DeviceLike | None = None) -> None:
    """Let this process take at most `fraction` of the device's memory; allocations beyond it are out of memory.

    TypeError unless a float is given, ValueError outside 0 to 1.
    """
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    _allocator(device).set_memory_fraction(fraction)


def get_per_process_memory_fraction(device: DeviceLike | None = None) -> float:
    """What `set_per_process_memory_fraction` set; 1.0 before."""
    return _allocator(device).get_memory_fraction()


def empty_cache() -> None:
    """Give cached memory of every device back, as far as no tensor lies in the same segment."""
    for allocator in existing():
        allocator.empty_cache()


# -------------------------------------------------------------------------------------------------------------------- snapshots


def memory_snapshot(device: DeviceLike | None = None) -> dict[str, Any]:
    """Segments, their blocks, and the recorded actions: what PyTorch's memory visualiser reads. In loops, and by numbers, it is the list of the segments."""
    return _allocator(device).snapshot()


def _record_memory_history(
    enabled: str | None = "all",
    max_entries: int | None = None,
    device: DeviceLike | None = None,
    stacks: str = "python",
) -> None:
    """Record what the allocator does from now on, or, with `enabled=None`, stop. ValueError for other words than "state" and "all"."""
    if enabled not in (None, "state", "all"):
        raise ValueError(f"expected enabled to be None, 'state' or 'all', got {enabled!r}")
    _allocator(device).record_history(enabled is not None, 1 if enabled == "state" else max_entries, bool(stacks))


def _snapshot(device: DeviceLike | None = None) -> dict[str, Any]:
    """`memory_snapshot`, by torch.cuda's name."""
    return memory_snapshot(device)


def _dump_snapshot(filename: str = "dump_snapshot.pickle") -> None:
    """Write the snapshot where the visualiser can read it."""
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file)


# ------------------------------------------------------------------------------------------------------------------- raw memory


def caching_allocator_alloc(size: int, device: DeviceLike | None = None, stream: Any = None) -> int:
    """The address of `size` bytes for work on `stream` (a Stream, a handle, or the current stream); for use beside tensors.

    RuntimeError without a device, TypeError for another kind of stream.
    """
    allocator = _allocator(device)
    if stream is None:
        from .streams import current_stream

        stream = current_stream(allocator.device_id)
    handle = getattr(stream, "handle", stream)
    if not isinstance(handle, int) or isinstance(handle, bool):
        raise TypeError(f"stream must be a Stream or the handle of one, not {type(stream).__name__}")
    block = allocator.malloc(size, handle)
    if block.address:
        _RAW[block.address] = allocator, block
    return block.address


def caching_allocator_delete(mem_ptr: int) -> None:
    """Give memory of `caching_allocator_alloc` back. RuntimeError for another address."""
    if not mem_ptr:
        return
    found = _RAW.pop(mem_ptr, None)
    if found is None:
        raise RuntimeError(f"npu: no memory of caching_allocator_alloc lies at {mem_ptr:#x}")
    allocator, block = found
    allocator.free(block)


# ------------------------------------------------------------------------------------------------------------------ pinned memory


def host_memory_stats() -> dict[str, Any]:
    """Statistics of pinned host memory by their flat names, sorted; zeros before the first."""
    return flatten(HOST.nested())
