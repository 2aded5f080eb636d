"""Resilient backpropagation."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._tensor import Tensor
from ._single import (
    SingleTensorOptimizer,
    check_lr,
    check_tensors,
    number,
    run,
    zeros_like,
)
from .optimizer import ParamsT

__all__ = ["Rprop", "rprop"]


class Rprop(SingleTensorOptimizer):
    """Steps by the gradient's sign times a size that grows while the sign stays, and shrinks when it changes."""

    _later_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _init_state(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        lr = number(group["lr"])
        state["step"] = self._counter(group, param)
        state["prev"] = zeros_like(param)
        # Both parts of a complex number have a step size.
        state["step_size"] = torch.full_like(param.grad, complex(lr, lr) if param.is_complex() else lr)

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        shrink, grow = group["etas"]
        smallest, largest = group["step_sizes"]
        previous, size = state["prev"], state["step_size"]
        state["step"] += 1
        sign = grad.mul(previous.clone() if group["differentiable"] else previous).sign()
        factor = torch.where(sign.gt(0), grow, torch.where(sign.lt(0), shrink, sign))
        factor = torch.where(sign.eq(0), 1, factor)
        size.mul_(factor).clamp_(smallest, largest)
        # Where the sign changed nothing moves, and the next step does not count as a change.
        grad = torch.where(sign.lt(0), torch.zeros_like(grad), grad)
        param.addcmul_(grad.sign(), size, value=-1)
        previous.copy_(grad)


def rprop(
    params: list[Tensor],
    grads: list[Tensor],
    prevs: list[Tensor],
    step_sizes: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """Update the parameters once, as `Rprop` does, with the state in lists; both change in place. Raises RuntimeError for numbers in `state_steps`, AssertionError."""
    check_tensors("state_steps", state_steps)
    group = {
        "etas": (etaminus, etaplus),
        "step_sizes": (step_size_min, step_size_max),
        "foreach": foreach,
        "maximize": maximize,
        "differentiable": differentiable,
        "capturable": capturable,
    }
    run(Rprop, group, params, grads, {"step": state_steps, "prev": prevs, "step_size": step_sizes})
