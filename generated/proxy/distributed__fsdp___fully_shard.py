# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.fsdp._fully_shard, import-only stub."""

from __future__ import annotations

from torch.distributed.fsdp import (
    CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, fully_shard,
)

_MODULE = "torch.distributed.fsdp._fully_shard"
