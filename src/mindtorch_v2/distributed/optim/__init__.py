"""`torch.distributed.optim`: optimizers of several ranks."""

from __future__ import annotations

from typing import Any

from .apply_optimizer_in_backward import (
    _apply_optimizer_in_backward as _apply_optimizer_in_backward,
    _get_in_backward_optimizers as _get_in_backward_optimizers,
)
from .post_localSGD_optimizer import PostLocalSGDOptimizer as PostLocalSGDOptimizer
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer as ZeroRedundancyOptimizer


class DistributedOptimizer:
    """An optimizer of parameters that other processes have, by remote calls. There is none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("DistributedOptimizer: there are no remote calls (torch.distributed.rpc)")
