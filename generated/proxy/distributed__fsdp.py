# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.fsdp, import-only stub."""

from __future__ import annotations

import enum

from mindtorch_v2._torch_proxy.stubs.distributed import (
    FullyShardedDataParallel,
)
from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function, lazy_children

_MODULE = "torch.distributed.fsdp"
_BECAUSE = "mindtorch_v2 runs in one process"
fully_shard = import_only_function("fully_shard", _MODULE, _BECAUSE, NotImplementedError)
register_fsdp_forward_method = import_only_function("register_fsdp_forward_method", _MODULE, _BECAUSE, NotImplementedError)
__getattr__ = lazy_children(_MODULE)


class BackwardPrefetch(enum.Enum):
    """An enumeration of torch.distributed.fsdp."""

    BACKWARD_PRE = enum.auto()
    BACKWARD_POST = enum.auto()


class OptimStateKeyType(enum.Enum):
    """An enumeration of torch.distributed.fsdp."""

    PARAM_NAME = enum.auto()
    PARAM_ID = enum.auto()


class ShardingStrategy(enum.Enum):
    """An enumeration of torch.distributed.fsdp."""

    FULL_SHARD = enum.auto()
    SHARD_GRAD_OP = enum.auto()
    NO_SHARD = enum.auto()
    HYBRID_SHARD = enum.auto()
    _HYBRID_SHARD_ZERO2 = enum.auto()


class StateDictType(enum.Enum):
    """An enumeration of torch.distributed.fsdp."""

    FULL_STATE_DICT = enum.auto()
    LOCAL_STATE_DICT = enum.auto()
    SHARDED_STATE_DICT = enum.auto()


class CPUOffload(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class CPUOffloadPolicy(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class FSDPModule(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class FullOptimStateDictConfig(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class FullStateDictConfig(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class LocalOptimStateDictConfig(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class LocalStateDictConfig(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class MixedPrecision(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class MixedPrecisionPolicy(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class OffloadPolicy(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class OptimStateDictConfig(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ShardedOptimStateDictConfig(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ShardedStateDictConfig(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class StateDictConfig(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class StateDictSettings(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class UnshardHandle(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
