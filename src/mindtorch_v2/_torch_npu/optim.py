"""Optimizers by torch_npu's names: those of `torch.optim`, which put whole lists of parameters into one launch where CANN has a function for it."""

from __future__ import annotations

from typing import Any

from .. import optim as _optim
from ..nn.utils import clip_grad_norm_

__all__ = ["NpuFusedAdadelta", "NpuFusedAdam", "NpuFusedAdamW", "NpuFusedRMSprop", "NpuFusedSGD"]


class _Clipping(_optim.Optimizer):
    def clip_grad_norm_fused_(self, max_norm: float, norm_type: float = 2) -> Any:
        """Shrink the gradients of all parameters to a norm, and return the one that they had."""
        given = [p for group in self.param_groups for p in group["params"]]
        return clip_grad_norm_(given, max_norm, norm_type)


class NpuFusedSGD(_Clipping, _optim.SGD):
    """`torch.optim.SGD`."""


class NpuFusedAdam(_Clipping, _optim.Adam):
    """`torch.optim.Adam`."""


class NpuFusedAdamW(_Clipping, _optim.AdamW):
    """`torch.optim.AdamW`."""


class NpuFusedAdadelta(_Clipping, _optim.Adadelta):
    """`torch.optim.Adadelta`."""


class NpuFusedRMSprop(_Clipping, _optim.RMSprop):
    """`torch.optim.RMSprop`."""
