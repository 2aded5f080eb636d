"""`torch.distributed.algorithms.ddp_comm_hooks`: how DistributedDataParallel exchanges its buckets."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from . import debugging_hooks as debugging_hooks, default_hooks as default, powerSGD_hook as powerSGD

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


class _Way:
    """Registers a hook at a model."""

    def __init__(self, hook: Callable[..., Any], rank: int | None = None) -> None:
        self.hook, self.rank = hook, rank

    def __call__(self, model: Any, state: Any = None) -> None:
        if self.rank is not None:
            state = powerSGD.PowerSGDState(state, matrix_approximation_rank=self.rank)
        model.register_comm_hook(state, self.hook)


class DDPCommHookType(Enum):
    """The hooks by their names: `DDPCommHookType.FP16_COMPRESS.value(model=model, state=group)` registers one."""

    ALLREDUCE = _Way(default.allreduce_hook)
    FP16_COMPRESS = _Way(default.fp16_compress_hook)
    BF16_COMPRESS = _Way(default.bf16_compress_hook)
    POWER_SGD = _Way(powerSGD.powerSGD_hook, 1)
    POWER_SGD_RANK2 = _Way(powerSGD.powerSGD_hook, 2)
    BATCHED_POWER_SGD = _Way(powerSGD.batched_powerSGD_hook, 1)
    BATCHED_POWER_SGD_RANK2 = _Way(powerSGD.batched_powerSGD_hook, 2)
    NOOP = _Way(debugging_hooks.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Register a hook at a DistributedDataParallel model."""
    comm_hook_type.value(model=model, state=state)
