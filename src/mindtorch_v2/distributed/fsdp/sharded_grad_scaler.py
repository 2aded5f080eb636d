"""A gradient scaler that finds infinities on any rank."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._collectives import all_reduce
from .._groups import is_initialized
from .._reduction import ReduceOp
from ..tensor import DTensor

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(torch.amp.GradScaler):
    """`torch.amp.GradScaler` of parameters in parts: all ranks skip a step in which one of them found an infinite gradient."""

    def __init__(
        self,
        device: str = "cpu",
        init_scale: float = 2.0**16,
        backoff_factor: float = 0.5,
        growth_factor: float = 2.0,
        growth_interval: int = 2000,
        enabled: bool = True,
        process_group: Any = None,
    ) -> None:
        super().__init__(device, init_scale=init_scale, backoff_factor=backoff_factor, growth_factor=growth_factor, growth_interval=growth_interval, enabled=enabled)  # fmt: skip
        self.process_group = process_group

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients by the scale, and hear from all ranks whether they are finite."""
        super().unscale_(optimizer)
        if not self._enabled or not is_initialized():
            return
        every = self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
        for where, found in every.items():
            every[where] = found.full_tensor() if isinstance(found, DTensor) else found
            all_reduce(every[where], ReduceOp.MAX, self.process_group)
