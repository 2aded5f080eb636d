# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed._composable.fsdp, import-only stub."""

from __future__ import annotations

from torch.distributed.fsdp import (
    CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, fully_shard, register_fsdp_forward_method,
)

_MODULE = "torch.distributed._composable.fsdp"
