"""NAdam."""

from __future__ import annotations

from typing import Any

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

__all__ = ["NAdam", "nadam"]


class NAdam(SingleTensorOptimizer):
    """Adam with Nesterov momentum. Raises ValueError."""

    _later_options = {
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
    }
    _scalar_state = ("step", "mu_product")
    _captured = "params, mu_products and state_steps"

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_positive("epsilon value", eps)
        check_betas(betas)
        check_positive("weight_decay value", weight_decay)
        check_positive("momentum_decay value", momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _init_state(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        state["step"] = self._counter(group, param)
        state["mu_product"] = self._counter(group, param, 1.0)
        state["exp_avg"] = zeros_like(param)
        state["exp_avg_sq"] = zeros_like(param)

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        lr, decay, eps = scalar(group["lr"]), group["weight_decay"], group["eps"]
        mean, square, product = state["exp_avg"], state["exp_avg_sq"], state["mu_product"]
        by_tensors = group["capturable"] or group["differentiable"]
        state["step"] += 1
        step = state["step"] if group["capturable"] else state["step"].item()
        correction2 = 1 - beta2**step
        if decay != 0:
            if group["decoupled_weight_decay"]:
                param.mul_(1 - lr * decay)
            else:
                grad = grad.add(param, alpha=decay)
        mu = beta1 * (1.0 - 0.5 * (0.96 ** (step * group["momentum_decay"])))
        mu_next = beta1 * (1.0 - 0.5 * (0.96 ** ((step + 1) * group["momentum_decay"])))
        product *= mu
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        denominator = square.div(correction2).sqrt()
        if by_tensors:
            denominator = denominator.add(eps)
            param.addcdiv_(grad * (-lr * (1.0 - mu) / (1.0 - product)), denominator)
            param.addcdiv_(mean * (-lr * mu_next / (1.0 - product * mu_next)), denominator)
        else:
            denominator.add_(eps)
            present = product.item()
            param.addcdiv_(grad, denominator, value=number(-lr * (1.0 - mu) / (1.0 - present)))
            param.addcdiv_(mean, denominator, value=number(-lr * mu_next / (1.0 - present * mu_next)))


def nadam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    mu_products: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """Update the parameters once, as `NAdam` does, with the state in lists; both change in place. Raises RuntimeError for numbers in `state_steps` or `mu_products`, AssertionError."""
    check_tensors("state_steps", state_steps)
    check_tensors("mu_products", mu_products)
    group = {
        "lr": lr,
        "betas": (beta1, beta2),
        "eps": eps,
        "weight_decay": weight_decay,
        "momentum_decay": momentum_decay,
        "decoupled_weight_decay": decoupled_weight_decay,
        "maximize": maximize,
        "foreach": foreach,
        "capturable": capturable,
        "differentiable": differentiable,
    }
    run(
        NAdam,
        group,
        params,
        grads,
        {"step": state_steps, "mu_product": mu_products, "exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs},
    )
