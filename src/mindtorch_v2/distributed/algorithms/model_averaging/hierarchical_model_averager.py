"""Averages over small groups often, and over large ones seldom."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from ... import distributed_c10d as dist
from . import averagers, utils

__all__ = ["HierarchicalModelAverager"]


class HierarchicalModelAverager(averagers.ModelAverager):
    """Averages over groups of `period_group_size_dict[period]` ranks every `period` steps, the largest where several are due.

    Raises:
        ValueError: for no periods, for group sizes that do not grow with the periods, for a largest group that is not all ranks, and for negative warm-up.
    """

    def __init__(
        self,
        period_group_size_dict: OrderedDict[int, int] | None = None,
        warmup_steps: int = 0,
        process_group: Any = None,
    ) -> None:
        super().__init__(process_group)
        if not period_group_size_dict:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        self._periods = list(period_group_size_dict.keys())
        sizes = list(period_group_size_dict.values())
        if self._periods[0] <= 0:
            raise ValueError("The minimum period in arg ``period_group_size_dict`` must be a positive value.")
        if sizes[-1] != dist.get_world_size(self.process_group):
            raise ValueError(
                "The last value in arg ``period_process_group_dict`` must be equal to the size of arg ``process_group``."
            )
        if sizes != sorted(sizes) or warmup_steps < 0:
            raise ValueError("group sizes must grow with their periods, and ``warmup_steps`` must not be negative")
        self.period_process_group_dict = OrderedDict()
        for period, size in period_group_size_dict.items():
            whole = size == sizes[-1]
            made = self.process_group if whole else dist.new_subgroups(size, group=self.process_group)[0]
            self.period_process_group_dict[period] = made
        self.warmup_steps = warmup_steps

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Count a step, and average over the largest group that is due."""
        if self.step >= self.warmup_steps:
            done = self.step - self.warmup_steps
            due = [period for period in reversed(self._periods) if not done % period]
            if due:
                utils.average_parameters_or_parameter_groups(params, self.period_process_group_dict[due[0]])
        self.step += 1
