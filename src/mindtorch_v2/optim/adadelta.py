"""Adadelta."""

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

__all__ = ["Adadelta", "adadelta"]


class Adadelta(SingleTensorOptimizer):
    """Steps by the gradient times the ratio of the running means of squared steps and gradients. Raises ValueError."""

    _later_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _captured_by_xla = False

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_positive("epsilon value", eps)
        check_positive("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _init_state(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        state["step"] = self._counter(group, param)
        state["square_avg"] = zeros_like(param)
        state["acc_delta"] = zeros_like(param)

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        rho, eps = group["rho"], group["eps"]
        square, past = state["square_avg"], state["acc_delta"]
        state["step"] += 1
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=group["weight_decay"])
        square.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        root = square.add(eps).sqrt_()
        delta = past.add(eps).sqrt_()
        if group["differentiable"]:
            delta = delta.clone()
        delta.div_(root).mul_(grad)
        past.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        param.add_(delta, alpha=-number(scalar(group["lr"])))


def adadelta(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    acc_deltas: list[Tensor],
    state_steps: list[Tensor],
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """Update the parameters once, as `Adadelta` does, with the state in lists; both change in place. Raises RuntimeError for numbers in `state_steps`, AssertionError."""
    check_tensors("state_steps", state_steps)
    group = {
        "lr": lr,
        "rho": rho,
        "eps": eps,
        "weight_decay": weight_decay,
        "maximize": maximize,
        "capturable": capturable,
        "foreach": foreach,
        "differentiable": differentiable,
    }
    run(Adadelta, group, params, grads, {"step": state_steps, "square_avg": square_avgs, "acc_delta": acc_deltas})
