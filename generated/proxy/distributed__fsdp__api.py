# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.fsdp.api, import-only stub."""

from __future__ import annotations

from torch.distributed.fsdp import (
    BackwardPrefetch, CPUOffload, FullOptimStateDictConfig, FullStateDictConfig, LocalStateDictConfig,
    MixedPrecision, ShardedOptimStateDictConfig, ShardedStateDictConfig, ShardingStrategy, StateDictConfig,
    StateDictType,
)

_MODULE = "torch.distributed.fsdp.api"
