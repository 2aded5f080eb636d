"""Averages of models now and then."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from ... import distributed_c10d as dist
from . import utils

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(ABC):
    """What averages parameters over ranks, when it is time."""

    def __init__(self, process_group: Any = None) -> None:
        self.process_group = process_group if process_group is not None else dist._get_default_group()
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Iterable[Any]) -> None:
        """Count a step, and average if it is time."""


class PeriodicModelAverager(ModelAverager):
    """Averages every `period` steps, after `warmup_steps`. ValueError for a period below 1, or negative warm-up."""

    def __init__(self, period: int, warmup_steps: int = 0, process_group: Any = None) -> None:
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warnings.warn(
                "When period is 1, no need to use model averaging because the communication cost of all-reducing parameters will be no less than the cost of all-reducing "
                "gradients by DistributedDataParallel in the backward pass. Therefore, only DistributedDataParallel should be used for this case.",
                stacklevel=2,
            )
        self.warmup_steps, self.period = warmup_steps, period

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Count a step, and average the parameters that have a gradient if it is time."""
        if self.step >= self.warmup_steps and not (self.step - self.warmup_steps) % self.period:
            utils.average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
