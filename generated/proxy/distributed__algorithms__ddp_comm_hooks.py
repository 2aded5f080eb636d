# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.algorithms.ddp_comm_hooks, import-only stub."""

from __future__ import annotations

import enum

from mindtorch_v2._torch_proxy.placeholders import import_only_function, lazy_children

_MODULE = "torch.distributed.algorithms.ddp_comm_hooks"
_BECAUSE = "mindtorch_v2 runs in one process"
register_ddp_comm_hook = import_only_function("register_ddp_comm_hook", _MODULE, _BECAUSE, NotImplementedError)
__getattr__ = lazy_children(_MODULE)


class DDPCommHookType(enum.Enum):
    """An enumeration of torch.distributed.algorithms.ddp_comm_hooks."""

    ALLREDUCE = enum.auto()
    FP16_COMPRESS = enum.auto()
    BF16_COMPRESS = enum.auto()
    QUANTIZE_PER_TENSOR = enum.auto()
    QUANTIZE_PER_CHANNEL = enum.auto()
    POWER_SGD = enum.auto()
    POWER_SGD_RANK2 = enum.auto()
    BATCHED_POWER_SGD = enum.auto()
    BATCHED_POWER_SGD_RANK2 = enum.auto()
    NOOP = enum.auto()
