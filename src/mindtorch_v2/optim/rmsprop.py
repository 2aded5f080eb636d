"""RMSprop."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from ._single import (
    SingleTensorOptimizer,
    check_lr,
    check_positive,
    check_tensors,
    number,
    run,
    scalar,
    zeros_like,
)
from .optimizer import ParamsT

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(SingleTensorOptimizer):
    """Steps by the gradient over the root of the running mean of its squares. Raises ValueError."""

    _later_options = {
        "momentum": 0,
        "centered": False,
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_positive("epsilon value", eps)
        check_positive("momentum value", momentum)
        check_positive("weight_decay value", weight_decay)
        check_positive("alpha value", alpha)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _init_state(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        state["step"] = self._counter(group, param)
        state["square_avg"] = zeros_like(param)
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(param)
        if group["centered"]:
            state["grad_avg"] = zeros_like(param)

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        lr, alpha, square = number(scalar(group["lr"])), group["alpha"], state["square_avg"]
        state["step"] += 1
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=group["weight_decay"])
        square.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"]
            mean.lerp_(grad, 1 - alpha)
            root = square.addcmul(mean, mean, value=-1).sqrt_()
        else:
            root = square.sqrt()
        root = root.add(group["eps"])
        if group["momentum"] > 0:
            buffer = state["momentum_buffer"]
            buffer.mul_(group["momentum"]).addcdiv_(grad, root)
            param.add_(buffer, alpha=-lr)
        else:
            param.addcdiv_(grad, root, value=-lr)


def rmsprop(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    grad_avgs: list[Tensor],
    momentum_buffer_list: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """Update the parameters once, as `RMSprop` does, with the state in lists; both change in place. Raises RuntimeError for numbers in `state_steps`, AssertionError."""
    check_tensors("state_steps", state_steps)
    group = {
        "lr": lr,
        "momentum": momentum,
        "alpha": alpha,
        "eps": eps,
        "centered": centered,
        "weight_decay": weight_decay,
        "capturable": capturable,
        "foreach": foreach,
        "maximize": maximize,
        "differentiable": differentiable,
    }
    lists = {"step": state_steps, "square_avg": square_avgs}
    if momentum > 0:
        lists["momentum_buffer"] = momentum_buffer_list
    if centered:
        lists["grad_avg"] = grad_avgs
    run(RMSprop, group, params, grads, lists)
