"""`torch.distributed.algorithms.join`: ranks with unequally many inputs.

A rank whose inputs are at an end shadows the collectives of those that go on, until all are done.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import mindtorch_v2 as torch

from .. import distributed_c10d as dist

__all__ = ["Join", "JoinHook", "Joinable"]

_MANY = 1000  # iterations that a rank shadows before it says so


class JoinHook:
    """What a rank does that has no more inputs."""

    def main_hook(self) -> None:
        """Take part in the collectives of one iteration of the others."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """What follows when all ranks are done. is_last_joiner: whether this rank was among the last."""


class _JoinConfig(NamedTuple):
    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        """That of a Joinable outside of a Join."""
        return _JoinConfig(False, False, False)


class Joinable(ABC):
    """What can take part in a Join: it calls `Join.notify_join_context(self)` before its collectives of an iteration."""

    @classmethod
    def __subclasshook__(cls, other: type) -> Any:
        """What has its methods is one, such as DistributedDataParallel, which does without this module until it is joined."""
        names = ("join_hook", "join_device", "join_process_group")
        return True if cls is Joinable and all(hasattr(other, name) for name in names) else NotImplemented

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a rank that has no more inputs does for it."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of its collectives."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The ranks of its collectives."""


class Join:
    """`with Join([model, optimizer]):` around a loop over inputs, of which ranks have unequally many.

    Args:
        joinables: what has collectives in each iteration, in the order in which they are called.
        enable: whether the ranks may have unequally many inputs at all.
        throw_on_early_termination: the first rank without inputs ends all, by a RuntimeError.
        kwargs: given to each `join_hook`, such as `divide_by_initial_world_size` of DistributedDataParallel.

    Raises:
        ValueError: for nothing to join, and for joinables of several groups or devices.
        TypeError: for what is no Joinable.
    """

    def __init__(
        self, joinables: list[Joinable], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        for joinable in joinables:
            if not hasattr(joinable, "_join_config"):
                raise TypeError(f"{type(joinable)} does not have a `_join_config` attribute; it is no Joinable")
        self._joinables = joinables
        self._enable, self._throw = enable, throw_on_early_termination
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        for index, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, index == 0)
        groups = {id(joinable.join_process_group): joinable.join_process_group for joinable in joinables}
        if len(groups) > 1:
            raise ValueError("Using join context manager with multiple process groups")
        if len({str(joinable.join_device) for joinable in joinables}) > 1:
            raise ValueError("Using join context manager with multiple devices")
        self._group = next(iter(groups.values()))
        self._rank = dist.get_rank(self._group)
        self._device = joinables[0].join_device

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, where: Any) -> None:
        if not self._enable or kind is not None:
            return
        last, shadowed = True, 0
        while self._still_going():
            if self._throw:
                dist.all_reduce(torch.ones(1, device=self._device), group=self._group)
                raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")
            last = False
            for hook in self._hooks:
                hook.main_hook()
            shadowed += 1
            if shadowed == _MANY:
                warnings.warn(
                    f"Detected uneven input skew of greater than {_MANY}. This means that rank {self._rank} has at least {_MANY} fewer inputs than other currently-active ranks.",
                    stacklevel=2,
                )
        for hook in self._hooks:
            hook.post_hook(last)

    def _still_going(self) -> int:
        count = torch.zeros(1, device=self._device)
        dist.all_reduce(count, group=self._group)
        return int(count)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Any:
        """Say that this rank has inputs: a Work, or None outside of a Join and for all but its first joinable. RuntimeError where a rank without inputs ends all."""
        if not hasattr(joinable, "_join_config"):
            raise AssertionError(f"{type(joinable)} does not have a `_join_config` attribute")
        config = joinable._join_config
        if not config.is_first_joinable or not config.enable:
            return None
        group = joinable.join_process_group
        work = dist.all_reduce(torch.ones(1, device=joinable.join_device), group=group, async_op=True)
        if config.throw_on_early_termination:
            ended = torch.zeros(1, device=joinable.join_device)
            dist.all_reduce(ended, group=group)
            if ended:
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work
