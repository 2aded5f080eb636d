# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.cuda.memory, functional stub."""

from __future__ import annotations

from torch.cuda import (
    CUDAPluggableAllocator, change_current_allocator, empty_cache, max_memory_allocated, max_memory_reserved,
    mem_get_info, memory_allocated, memory_reserved, memory_snapshot, memory_stats, memory_summary,
    reset_peak_memory_stats, set_per_process_memory_fraction,
)

_MODULE = "torch.cuda.memory"
