"""Adam."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._backends.cpu.ops.optim import adam_step
from .._tensor import Tensor
from ._single import (
    SingleTensorOptimizer,
    arrays,
    changed,
    check_betas,
    check_fused,
    check_lr,
    check_positive,
    check_tensors,
    number,
    run,
    scalar,
    step_group,
    unscale,
    zeros_like,
)
from .optimizer import ParamsT

__all__ = ["Adam", "adam"]


class Adam(SingleTensorOptimizer):
    """Steps by the mean of gradients over the root of the mean of their squares, both corrected for their zero start.

    Raises ValueError for wrong hyperparameters, RuntimeError for sparse gradients.
    """

    _later_options = {
        "amsgrad": False,
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "fused": None,
    }
    _sparse_name = "Adam"
    _sparse_advice = ", please consider SparseAdam instead"

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        check_lr(lr)
        check_positive("epsilon value", eps)
        check_betas(betas)
        check_positive("weight_decay value", weight_decay)
        tensors = [isinstance(beta, Tensor) for beta in betas]
        if not (all(tensors) or all(isinstance(beta, float) for beta in betas)):
            raise ValueError("betas must be either both floats or both Tensors")
        for position, beta in enumerate(betas):
            if isinstance(beta, Tensor):
                if not capturable and foreach:
                    raise ValueError(
                        f"betas[{position}] as a Tensor is not supported for capturable=False and foreach=True"
                    )
                if beta.numel() != 1:
                    raise ValueError(f"Tensor betas[{position}] must be 1-element")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)

    def _init_state(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        state["step"] = self._counter(group, param)
        state["exp_avg"] = zeros_like(param)
        state["exp_avg_sq"] = zeros_like(param)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_like(param)

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        lr, decay = scalar(group["lr"]), group["weight_decay"]
        beta1, beta2 = (scalar(beta) for beta in group["betas"])
        state["step"] += 1
        if self._in_one_pass(group, param, grad, state):
            return
        if decay != 0:
            if group["decoupled_weight_decay"]:
                param.mul_(1 - lr * decay)
            elif isinstance(decay, Tensor) and decay.requires_grad:
                grad = grad.addcmul(param.clone(), decay)
            else:
                grad = grad.add(param, alpha=number(decay))
        if group["capturable"] or group["differentiable"]:
            self._update_by_tensors(group, param, grad, state)
            return
        beta1, beta2 = number(beta1), number(beta2)
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        step = state["step"].item()
        step_size = lr / (1 - beta1**step)
        root = (1 - beta2**step) ** 0.5
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"]
            torch.maximum(largest, square, out=largest)
            square = largest
        denominator = (square.sqrt() / root).add_(group["eps"])
        param.addcdiv_(mean, denominator, value=-number(step_size))

    def _quick(self, group: dict[str, Any]) -> list[Tensor]:
        decay, plain = group["weight_decay"], type(self)._update is Adam._update
        if not plain or group["capturable"] or group["amsgrad"] or isinstance(decay, Tensor):
            return group["params"]
        beta1, beta2 = group["betas"]
        numbers = (number(beta1), number(beta2), group["eps"], number(group["lr"]), decay)
        return step_group("adam", group, self.state, group["decoupled_weight_decay"], numbers)

    def _in_one_pass(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> bool:
        """Let a kernel do the whole update: whether it could."""
        decay = group["weight_decay"]
        if group["capturable"] or group["differentiable"] or isinstance(decay, Tensor) or self._recorded:
            return False
        if param.device.type == "npu":
            return self._on_npu(group, param, grad, state)
        if group["amsgrad"]:
            return False
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        plain = arrays(param, grad, mean, square)
        if plain is None:
            return False
        beta1, beta2 = (number(beta) for beta in group["betas"])
        step, lr, decoupled = state["step"].item(), number(group["lr"]), group["decoupled_weight_decay"]
        size, root = lr / (1 - beta1**step), (1 - beta2**step) ** 0.5
        shrink, added = (1 - lr * decay, 0.0) if decoupled else (1.0, decay)
        done = adam_step(*plain, beta1, beta2, group["eps"], size, root, shrink, added)
        return done and changed(param, mean, square)

    def _on_npu(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> bool:
        """One launch does the whole update: whether it could."""
        from .._backends.npu.optim import adamw_step

        decay, decoupled = group["weight_decay"], group["decoupled_weight_decay"]
        if decay != 0 and not decoupled:
            grad = grad.add(param, alpha=number(decay))
        beta1, beta2 = (number(beta) for beta in group["betas"])
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        largest = state["max_exp_avg_sq"] if group["amsgrad"] else None
        step, lr = state["step"].item(), number(group["lr"])
        shrink = number(decay) if decoupled else 0.0
        if not adamw_step(param, grad, mean, square, largest, step, lr, (beta1, beta2), shrink, group["eps"]):
            return False
        return changed(*(t for t in (param, mean, square, largest) if t is not None))

    def _update_by_tensors(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        """The same with the step counter as a tensor: it stays on the device, and gradients flow through the update."""
        mean, square, step = state["exp_avg"], state["exp_avg_sq"], state["step"]
        differentiable = group["differentiable"]
        lr, eps = scalar(group["lr"]), group["eps"]
        beta1, beta2 = (scalar(beta) for beta in group["betas"])
        mean.lerp_(grad, 1 - beta1)
        if isinstance(beta2, Tensor) and beta2.requires_grad:
            square.lerp_(torch.square(grad), weight=1 - beta2)
        else:
            square.mul_(beta2).addcmul_(grad, grad, value=1 - number(beta2))
        # Copies, since the state changes in place while backward still needs it.
        count = step.clone() if differentiable else step
        negative_size = (lr / (1 - beta1**count)).neg()
        root = (1 - beta2**count).sqrt()
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"]
            largest.copy_(torch.maximum(largest.clone() if differentiable else largest, square))
            square = largest
        denominator = (square.sqrt() / (root * negative_size)).add_(eps / negative_size)
        param.addcdiv_(mean.clone() if differentiable else mean, denominator)


def adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Update the parameters once, as `Adam` does, with the state in lists; both change in place. Raises RuntimeError for numbers in `state_steps`, AssertionError, ValueError."""
    check_tensors("state_steps", state_steps)
    if not params:
        return
    if fused and differentiable:
        raise RuntimeError("Adam with fused=True does not support differentiable=True")
    if foreach and not fused:
        _check_lists(lr, beta1, beta2, capturable)
    if not unscale("adam", params, grads, fused, grad_scale, found_inf):
        return
    group = {
        "lr": lr,
        "betas": (beta1, beta2),
        "eps": eps,
        "weight_decay": weight_decay,
        "amsgrad": amsgrad,
        "maximize": maximize,
        "foreach": foreach,
        "fused": fused,
        "capturable": capturable,
        "differentiable": differentiable,
        "decoupled_weight_decay": decoupled_weight_decay,
    }
    lists = {"step": state_steps, "exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs}
    if amsgrad:
        lists["max_exp_avg_sq"] = max_exp_avg_sqs
    run(Adam, group, params, grads, lists)


def _check_lists(lr: float | Tensor, beta1: float | Tensor, beta2: float | Tensor, capturable: bool) -> None:
    """Raise for tensors among the options of a step of lists, which takes them where a graph captures it only."""
    if isinstance(lr, Tensor):
        if not capturable:
            raise RuntimeError("lr as a Tensor is not supported for capturable=False and foreach=True")
        if lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
    for name, beta in (("beta1", beta1), ("beta2", beta2)):
        if isinstance(beta, Tensor):
            if not capturable:
                raise ValueError(f"{name} as a Tensor is not supported for capturable=False and foreach=True")
            if beta.numel() != 1:
                raise ValueError(f"Tensor {name} must be 1-element")
