"""Adagrad."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._tensor import Tensor
from ._single import (
    SingleTensorOptimizer,
    check_fused,
    check_lr,
    check_positive,
    check_tensors,
    number,
    run,
    scalar,
    unscale,
)
from .optimizer import ParamsT

__all__ = ["Adagrad", "adagrad"]


class Adagrad(SingleTensorOptimizer):
    """Steps by the gradient over the root of the sum of all squared gradients. Raises ValueError."""

    _later_options = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check_positive("lr_decay value", lr_decay)
        check_positive("weight_decay value", weight_decay)
        check_positive("initial_accumulator_value value", initial_accumulator_value)
        check_positive("epsilon value", eps)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)
        # The state is there from the start: programs share it between processes before the first step.
        for group in self.param_groups:
            for param in group["params"]:
                self._init_state(group, param, self.state[param])

    def share_memory(self) -> None:
        """Move the sums into shared memory."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()

    def _init_state(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        start = group["initial_accumulator_value"]
        value = complex(start, start) if param.is_complex() else start
        state["step"] = self._counter(group, param)
        state["sum"] = torch.full_like(param, value, memory_format=torch.preserve_format)

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        state["step"] += 1
        if group["weight_decay"] != 0:
            if grad.is_sparse:
                raise RuntimeError("weight_decay option is not compatible with sparse gradients")
            grad = grad.add(param, alpha=group["weight_decay"])
        rate = scalar(group["lr"]) / (1 + (state["step"].item() - 1) * group["lr_decay"])
        if grad.is_sparse:
            self._update_sparse(param, grad, state["sum"], number(rate), group["eps"])
            return
        state["sum"].addcmul_(grad, grad, value=1)
        param.addcdiv_(grad, state["sum"].sqrt() + group["eps"], value=-number(rate))

    def _check_sparse(self, grad: Tensor) -> None:
        """Sparse gradients move the elements that they specify."""

    @staticmethod
    def _update_sparse(param: Tensor, grad: Tensor, sums: Tensor, rate: float, eps: float) -> None:
        grad = grad.coalesce()  # squares are not linear
        sums.add_(grad.pow(2))
        roots = sums.sparse_mask(grad)._values().sqrt_().add_(eps)
        moved = torch.sparse_coo_tensor(
            grad._indices(), grad._values() / roots, grad.size(), check_invariants=False, is_coalesced=True
        )
        param.add_(moved, alpha=-rate)


def adagrad(
    params: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    state_steps: list[Tensor],
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Update the parameters once, as `Adagrad` does, with the state in lists; both change in place. Raises RuntimeError for numbers in `state_steps`, AssertionError."""
    check_tensors("state_steps", state_steps)
    if not params:
        return
    if fused and (has_sparse_grad or has_complex):
        raise RuntimeError("`fused` does not support sparse grad or complex param")
    if fused and differentiable:
        raise RuntimeError("adagrad with fused=True does not support differentiable=True")
    if not unscale("adagrad", params, grads, fused, grad_scale, found_inf):
        return
    group = {
        "lr": lr,
        "lr_decay": lr_decay,
        "eps": eps,
        "weight_decay": weight_decay,
        "maximize": maximize,
        "foreach": foreach,
        "differentiable": differentiable,
    }
    run(Adagrad, group, params, grads, {"step": state_steps, "sum": state_sums})
