"""Optimizers that take their step for a parameter as soon as its gradient is there, which is forgotten then."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...nn.modules.module import Module
from ...optim.optimizer import Optimizer

__all__: list[str] = []


def _step(parameter: Any) -> None:
    for optimizer in parameter._in_backward_optimizers:
        optimizer.step()
    parameter.grad = None


def _apply_optimizer_in_backward(
    optimizer_class: type[Optimizer],
    params: Iterable[Any],
    optimizer_kwargs: dict[str, Any],
    register_hook: bool = True,
) -> None:
    """Give each parameter an optimizer of its own, which runs within backward; with several they run in turn. register_hook: False leaves it to the caller to run them."""
    for parameter in params:
        if not hasattr(parameter, "_in_backward_optimizers"):
            parameter._in_backward_optimizers = []
            parameter._optimizer_classes, parameter._optimizer_kwargs = [], []
        first = not parameter._in_backward_optimizers
        parameter._in_backward_optimizers.append(optimizer_class([parameter], **optimizer_kwargs))
        parameter._optimizer_classes.append(optimizer_class)
        parameter._optimizer_kwargs.append(optimizer_kwargs)
        if register_hook and first:
            parameter.register_post_accumulate_grad_hook(_step)


def _get_in_backward_optimizers(module: Module) -> list[Optimizer]:
    """The optimizers of a module's parameters that run within backward."""
    return [one for parameter in module.parameters() for one in getattr(parameter, "_in_backward_optimizers", ())]
