# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.fsdp.fully_sharded_data_parallel, import-only stub."""

from __future__ import annotations

from torch.distributed.fsdp import (
    BackwardPrefetch, CPUOffload, FullOptimStateDictConfig, FullStateDictConfig, FullyShardedDataParallel,
    LocalStateDictConfig, MixedPrecision, OptimStateKeyType, ShardedOptimStateDictConfig, ShardedStateDictConfig,
    ShardingStrategy, StateDictConfig, StateDictType,
)

_MODULE = "torch.distributed.fsdp.fully_sharded_data_parallel"
