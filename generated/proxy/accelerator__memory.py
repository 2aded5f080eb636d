# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.accelerator.memory, functional stub."""

from __future__ import annotations

from torch.accelerator import (
    empty_cache, memory_allocated, memory_stats,
)

_MODULE = "torch.accelerator.memory"
