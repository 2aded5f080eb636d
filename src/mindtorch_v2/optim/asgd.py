"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._tensor import Tensor
from ._single import (
    SingleTensorOptimizer,
    check_lr,
    check_positive,
    number,
    run,
    scalar,
    zeros_like,
)
from .optimizer import ParamsT, _get_scalar_dtype

__all__ = ["ASGD", "asgd"]


class ASGD(SingleTensorOptimizer):
    """Gradient descent with a decaying rate that also keeps the average of the parameters (``ax``). Raises ValueError."""

    _later_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _scalar_state = ("step", "eta", "mu")
    _captured = "params, mus, etas, and state_steps"

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_positive("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _counter(self, group: dict[str, Any], param: Tensor, value: float = 0.0) -> Tensor:
        return torch.tensor(value, dtype=_get_scalar_dtype(), device=param.device)

    def _init_state(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        state["step"] = self._counter(group, param)
        state["eta"] = self._counter(group, param, number(group["lr"]))
        state["mu"] = self._counter(group, param, 1.0)
        state["ax"] = zeros_like(param)

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        lr, lambd, alpha, t0 = scalar(group["lr"]), group["lambd"], group["alpha"], group["t0"]
        mu, average, eta, step = state["mu"], state["ax"], state["eta"], state["step"]
        capturable = group["capturable"]
        step += 1
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=group["weight_decay"])
        if capturable:
            param.mul_(1 - lambd * eta)
            param.addcmul_(grad, eta, value=-1)
        else:
            rate = eta.item()
            param.mul_(1 - lambd * rate)
            param.add_(grad, alpha=-rate)
        if capturable or mu.item() != 1:
            average.add_(param.sub(average).mul_(mu))
        else:
            average.copy_(param)
        if capturable:
            eta.copy_(lr / ((1 + lambd * lr * step) ** alpha))
            mu.copy_(1 / torch.maximum(step - t0, torch.ones_like(step)))
        else:
            count = step.item()
            eta.copy_(torch.as_tensor(lr / ((1 + lambd * lr * count) ** alpha)))
            mu.copy_(torch.as_tensor(1 / max(1, count - t0)))


def asgd(
    params: list[Tensor],
    grads: list[Tensor],
    axs: list[Tensor],
    mus: list[Tensor],
    etas: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: float,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """Update the parameters once, as `ASGD` does, with the state in lists; both change in place. Raises AssertionError."""
    group = {
        "lr": lr,
        "lambd": lambd,
        "alpha": alpha,
        "t0": t0,
        "weight_decay": weight_decay,
        "maximize": maximize,
        "foreach": foreach,
        "differentiable": differentiable,
        "capturable": capturable,
    }
    run(ASGD, group, params, grads, {"step": state_steps, "eta": etas, "mu": mus, "ax": axs})
