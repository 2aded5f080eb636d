"""Averages of a model's parameters over training, and the schedule that goes with them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import mindtorch_v2 as torch

from .._tensor import Tensor
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from ._schedules.base import LRScheduler, one_for_each_group
from .optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def _is_continuous(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """A function that updates lists of exponential averages in place. Raises ValueError for a decay outside of [0, 1]."""
    _check_decay(decay)

    def ema_update(averages: list[Tensor], present: list[Tensor], _: Any) -> None:
        with torch.no_grad():
            for average, param in zip(averages, present, strict=True):
                if _is_continuous(average):
                    average.lerp_(param.to(average.dtype), 1 - decay)
                else:
                    average.copy_(average * decay + param * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """A function that updates lists of equally weighted averages in place."""

    def swa_update(averages: list[Tensor], present: list[Tensor], num_averaged: Any) -> None:
        count = int(num_averaged) + 1
        with torch.no_grad():
            for average, param in zip(averages, present, strict=True):
                if _is_continuous(average):
                    average.lerp_(param.to(average.dtype), 1 / count)
                else:
                    average.copy_(average + (param - average) / count)

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Tensor]:
    """A function that gives the next exponential average. Raises ValueError for a decay outside of [0, 1]."""
    _check_decay(decay)

    def ema_update(average: Tensor, present: Tensor, num_averaged: Any) -> Tensor:
        with torch.no_grad():
            return decay * average + (1 - decay) * present

    return ema_update


def get_swa_avg_fn() -> Callable[..., Tensor]:
    """A function that gives the next equally weighted average."""

    def swa_update(average: Tensor, present: Tensor, num_averaged: Any) -> Tensor:
        with torch.no_grad():
            return average + (present - average) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of ``model`` whose parameters become averages by :meth:`update_parameters`.

    ``avg_fn(average, present, count)`` gives the next average (by default the equally weighted one); ``multi_avg_fn``
    changes lists in place. With ``use_buffers`` buffers are averaged too, otherwise they are copied.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[..., Tensor] | None = None,
        multi_avg_fn: Callable[..., None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", torch.tensor(0, dtype=torch.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the averaged model."""
        return self.module(*args, **kwargs)

    def _averaged(self, model: Module) -> Iterable[Tensor]:
        return itertools.chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters()

    def update_parameters(self, model: Module) -> None:
        """Take the present parameters of ``model`` into the averages."""
        averages, present = [], []
        for average, param in zip(self._averaged(self.module), self._averaged(model), strict=True):
            averages.append(average.detach())
            present.append(param.detach().to(average.device))
        if int(self.n_averaged) == 0:
            for average, param in zip(averages, present, strict=True):
                average.copy_(param)
        elif self.avg_fn is not None:
            for average, param in zip(averages, present, strict=True):
                average.copy_(self.avg_fn(average, param, self.n_averaged.to(average.device)))
        else:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(averages, present, self.n_averaged)
        if not self.use_buffers:
            for own, buffer in zip(self.module.buffers(), model.buffers(), strict=True):
                own.detach().copy_(buffer.detach().to(own.device))
        self.n_averaged += 1


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of all batch normalizations in ``model`` anew from the data of ``loader``."""
    norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    was_training = model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    with torch.no_grad():
        for batch in loader:
            data = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(data if device is None else data.to(device))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Goes from the present rate to ``swa_lr`` within ``anneal_epochs``, and stays there."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = one_for_each_group("swa_lr", optimizer, swa_lr)
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, t: float) -> float:
        """How much of the way is done at the share ``t`` of the time."""
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def _done(self, step: int) -> float:
        return self.anneal_func(max(0, min(1, step / max(1, self.anneal_epochs))))

    def get_lr(self) -> list[Any]:
        """The rates of the present epoch."""
        self._warn_unless_stepping()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._done(step - 1), self._done(step)
        rates = []
        for group in self.optimizer.param_groups:
            goal = group["swa_lr"]
            start = goal if before == 1 else (group["lr"] - before * goal) / (1 - before)
            rates.append(goal * now + start * (1 - now))
        return rates
