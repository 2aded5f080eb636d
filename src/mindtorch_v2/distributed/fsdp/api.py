"""The options of FullyShardedDataParallel, and of its state dicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import mindtorch_v2 as torch

__all__ = ["BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig", "LocalOptimStateDictConfig", "LocalStateDictConfig", "MixedPrecision", "OptimStateDictConfig",
           "OptimStateKeyType", "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig", "StateDictSettings", "StateDictType"]  # fmt: skip


class ShardingStrategy(Enum):
    """What is in parts, and among which ranks: FULL_SHARD all of it, SHARD_GRAD_OP not the parameters between forward and backward pass, NO_SHARD nothing, and the HYBRID ones among the ranks of a
    mesh's last dimension."""

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When the next module's parameters begin to be gathered in the backward pass; here always with the present module's."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


@dataclass
class MixedPrecision:
    """The dtypes of parameters, of the averaging of gradients, and of buffers."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Sequence[type] = (torch.nn.modules.batchnorm._BatchNorm,)


@dataclass
class CPUOffload:
    """Whether parts are on the CPU."""

    offload_params: bool = False


class StateDictType(Enum):
    """FULL_STATE_DICT: whole tensors. SHARDED_STATE_DICT and LOCAL_STATE_DICT: DTensors."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


class OptimStateKeyType(Enum):
    """By what optimizer state is found."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


@dataclass
class StateDictConfig:
    """Whether tensors are taken to the CPU."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """`rank0_only`: other ranks get an empty one."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """No further options."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Parts are DTensors anyway."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """Whether tensors are taken to the CPU."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """`rank0_only`: other ranks get an empty one."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """No further options."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Parts are DTensors anyway."""

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """What state dicts a module gives."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig
