"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._backends.cpu.ops.optim import sgd_step
from .._tensor import Tensor
from ._single import (
    SingleTensorOptimizer,
    arrays,
    changed,
    check_fused,
    number,
    run,
    scalar,
    step_group,
    unscale,
)
from .optimizer import ParamsT

__all__ = ["SGD", "sgd"]


class SGD(SingleTensorOptimizer):
    """``p -= lr * (grad + weight_decay * p)``, with momentum if asked for. Raises ValueError for wrong hyperparameters."""

    _later_options = {
        "nesterov": False,
        "maximize": False,
        "foreach": None,
        "differentiable": False,
        "fused": None,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if lr < 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)

    def _check_sparse(self, grad: Tensor) -> None:
        """Every operation takes sparse gradients."""

    def _state_of(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        # Without momentum there is nothing to remember, and nothing to save.
        return self.state[param] if group["momentum"] != 0 else {}

    def _init_state(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        if group["momentum"] != 0:
            state["momentum_buffer"] = None

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        if self._in_one_pass(group, param, grad, state):
            return
        lr, decay, momentum = scalar(group["lr"]), group["weight_decay"], group["momentum"]
        if decay != 0:
            if isinstance(decay, Tensor) and decay.requires_grad:
                grad = grad.addcmul(param.clone(), decay)
            else:
                grad = grad.add(param, alpha=number(decay))
        if momentum != 0:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = grad.detach().clone()
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        if isinstance(lr, Tensor) and lr.requires_grad:
            param.addcmul_(grad, lr, value=-1)
        else:
            param.add_(grad, alpha=-number(lr))

    def _together(self, group: dict[str, Any], ready: list[tuple[Tensor, Tensor, dict]]) -> list[tuple]:
        lr, decay, momentum = group["lr"], group["weight_decay"], group["momentum"]
        plain = type(self)._update is SGD._update and not (group["differentiable"] or group["maximize"])
        if not plain or isinstance(lr, Tensor) or isinstance(decay, Tensor):
            return ready
        near = [row for row in ready if _is_near(row) and (momentum == 0 or row[2]["momentum_buffer"] is not None)]
        if len(near) < 2:
            return ready
        params, grads = [row[0] for row in near], [row[1] for row in near]
        if decay != 0:
            grads = torch._foreach_add(grads, params, alpha=decay)
        if momentum != 0:
            buffers = [row[2]["momentum_buffer"] for row in near]
            torch._foreach_mul_(buffers, momentum)
            torch._foreach_add_(buffers, grads, alpha=1 - group["dampening"])
            grads = torch._foreach_add(grads, buffers, alpha=momentum) if group["nesterov"] else buffers
        torch._foreach_add_(params, grads, alpha=-lr)
        done = {id(row) for row in near}
        return [row for row in ready if id(row) not in done]

    def _quick(self, group: dict[str, Any]) -> list[Tensor]:
        decay, plain = group["weight_decay"], type(self)._update is SGD._update
        if not plain or isinstance(decay, Tensor):
            return group["params"]
        numbers = (number(group["lr"]), group["momentum"], 1 - group["dampening"], decay)
        return step_group("sgd", group, self.state, bool(group["nesterov"]), numbers)

    def _in_one_pass(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> bool:
        """Let a kernel do the whole update: whether it could."""
        lr, decay, momentum = group["lr"], group["weight_decay"], group["momentum"]
        buffer = state.get("momentum_buffer")
        if group["differentiable"] or isinstance(decay, Tensor) or (momentum != 0 and buffer is None):
            return False
        if self._recorded:
            return False
        kept = () if buffer is None else (buffer,)
        plain = arrays(param, grad, *kept)
        if plain is None:
            return False
        memory = plain[2] if kept else None
        fresh, nesterov = 1 - group["dampening"], bool(group["nesterov"])
        done = sgd_step(plain[0], plain[1], memory, number(lr), momentum, fresh, decay, nesterov)
        return done and changed(param, *kept)

    # Every operation is linear, so complex numbers need no care.
    _update_complex = _update


def _is_near(row: tuple[Tensor, Tensor, dict]) -> bool:
    """Whether a parameter and its gradient are dense real tensors of an NPU."""
    param, grad, _ = row
    return param.device.type == grad.device.type == "npu" and not (grad.is_sparse or param.is_complex())


def sgd(
    params: list[Tensor],
    d_p_list: list[Tensor],
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float,
    momentum: float,
    lr: float,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """Update the parameters once, as `SGD` does, with the state in lists; both change in place. Where there is no momentum buffer yet, it comes into its list. Raises RuntimeError, AssertionError."""
    fused = fused and not foreach
    if not params:
        return
    if fused and has_sparse_grad:
        raise RuntimeError("`_fused_sgd` does not support sparse gradients")
    if not unscale("sgd", params, d_p_list, fused, grad_scale, found_inf):
        return
    group = {
        "lr": lr,
        "momentum": momentum,
        "dampening": dampening,
        "weight_decay": weight_decay,
        "nesterov": nesterov,
        "maximize": maximize,
        "foreach": foreach,
        "differentiable": False,
    }
    states = run(SGD, group, params, d_p_list, {"momentum_buffer": momentum_buffer_list} if momentum != 0 else {})
    if momentum != 0:
        for place, state in enumerate(states):
            momentum_buffer_list[place] = state["momentum_buffer"]
