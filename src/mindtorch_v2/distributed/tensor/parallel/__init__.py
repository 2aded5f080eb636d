"""`torch.distributed.tensor.parallel`: modules whose parameters are in parts. See docs/distributed.md."""

from __future__ import annotations

from .api import parallelize_module as parallelize_module
from .loss import loss_parallel as loss_parallel
from .style import (
    ColwiseParallel as ColwiseParallel,
    ParallelStyle as ParallelStyle,
    PrepareModuleInput as PrepareModuleInput,
    PrepareModuleInputOutput as PrepareModuleInputOutput,
    PrepareModuleOutput as PrepareModuleOutput,
    RowwiseParallel as RowwiseParallel,
    SequenceParallel as SequenceParallel,
)

__all__ = ["ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput", "RowwiseParallel",
           "SequenceParallel", "parallelize_module", "loss_parallel"]  # fmt: skip
