"""Adamax."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._tensor import Tensor
from ._single import (
    SingleTensorOptimizer,
    check_betas,
    check_lr,
    check_positive,
    check_tensors,
    number,
    run,
    scalar,
    zeros_like,
)
from .optimizer import ParamsT

__all__ = ["Adamax", "adamax"]


class Adamax(SingleTensorOptimizer):
    """Adam with the largest past gradient in place of the root of the mean of squares. Raises ValueError."""

    _later_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_positive("epsilon value", eps)
        check_betas(betas)
        check_positive("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _init_state(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        state["step"] = self._counter(group, param)
        state["exp_avg"] = zeros_like(param)
        state["exp_inf"] = zeros_like(param)

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        mean, largest = state["exp_avg"], state["exp_inf"]
        lr = scalar(group["lr"])
        state["step"] += 1
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=group["weight_decay"])
        mean.lerp_(grad, 1 - beta1)
        present = grad.abs().add_(group["eps"])
        if group["differentiable"]:
            both = torch.cat([largest.mul_(beta2).unsqueeze(0), present.unsqueeze_(0)], 0)
            largest.copy_(torch.amax(both, 0, keepdim=False))
        else:
            torch.maximum(largest.mul_(beta2), present, out=largest)
        if group["capturable"]:
            correction = beta1 ** state["step"] - 1
            param.addcdiv_(mean, largest * correction.div_(lr))
        else:
            rate = lr / (1 - beta1 ** state["step"].item())
            param.addcdiv_(mean, largest, value=-number(rate))


def adamax(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_infs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
) -> None:
    """Update the parameters once, as `Adamax` does, with the state in lists; both change in place. Raises RuntimeError for numbers in `state_steps`, AssertionError."""
    check_tensors("state_steps", state_steps)
    group = {
        "lr": lr,
        "betas": (beta1, beta2),
        "eps": eps,
        "weight_decay": weight_decay,
        "maximize": maximize,
        "foreach": foreach,
        "differentiable": differentiable,
        "capturable": capturable,
    }
    run(Adamax, group, params, grads, {"step": state_steps, "exp_avg": exp_avgs, "exp_inf": exp_infs})
