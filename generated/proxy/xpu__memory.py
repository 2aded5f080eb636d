# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.xpu.memory, functional stub."""

from __future__ import annotations

from torch.xpu import (
    empty_cache, max_memory_allocated, mem_get_info, memory_allocated, memory_reserved, memory_stats,
    reset_peak_memory_stats,
)

_MODULE = "torch.xpu.memory"
