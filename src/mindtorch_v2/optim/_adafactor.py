"""Adafactor."""

from __future__ import annotations

from typing import Any, cast

import mindtorch_v2 as torch

from .._tensor import Tensor
from ._single import (
    SingleTensorOptimizer,
    number,
    run,
    scalar,
    zeros_like,
)
from .optimizer import ParamsT

__all__ = ["Adafactor", "adafactor"]


class Adafactor(SingleTensorOptimizer):
    """Adam without means whose squares of matrices are kept as one row and one column. Raises ValueError, RuntimeError."""

    _later_options = {"foreach": None}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _init_state(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        if param.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        state["step"] = self._counter(group, param)
        grad = cast(Tensor, param.grad)  # only parameters that have one come here
        if grad.dim() > 1:
            *outer, rows, cols = grad.shape
            state["row_var"] = grad.new_zeros([*outer, rows, 1])
            state["col_var"] = grad.new_zeros([*outer, 1, cols])
        else:
            state["variance"] = zeros_like(grad)

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        lr = scalar(group["lr"])
        eps1, eps2 = group["eps"]
        if eps1 is None:
            eps1 = torch.finfo(param.dtype).eps
        state["step"] += 1
        step = state["step"].item()
        share = step ** group["beta2_decay"]
        rate = max(eps2, param.norm(2).item() / param.numel() ** 0.5) * min(lr, 1 / step**0.5)
        if group["weight_decay"] != 0:
            param.mul_(1 - lr * group["weight_decay"])
        if grad.dim() > 1:
            rows, cols = state["row_var"], state["col_var"]
            if rows is None or cols is None:
                raise AssertionError("row_var and col_var should be defined when grad is multidimensional")
            rows.lerp_(torch.norm(grad, dim=-1, keepdim=True).square_().div_(grad.size(-1)), share)
            cols.lerp_(torch.norm(grad, dim=-2, keepdim=True).square_().div_(grad.size(-2)), share)
            variance = rows @ cols
            variance.div_(rows.mean(dim=-2, keepdim=True).clamp_(min=eps1))
        else:
            if state["variance"] is None:
                raise AssertionError("variance should be defined when grad is a vector")
            state["variance"].lerp_(grad * grad, share)
            variance = state["variance"].clone()
        update = variance.clamp_(min=eps1 * eps1).rsqrt_()
        update.mul_(grad)
        clipped = max(1.0, update.norm(2).item() / (update.numel() ** 0.5 * group["d"]))
        param.add_(update, alpha=number(-rate / clipped))


def adafactor(
    params: list[Tensor],
    grads: list[Tensor],
    row_vars: list[Tensor | None],
    col_vars: list[Tensor | None],
    variances: list[Tensor | None],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    *,
    d: float,
    lr: float | Tensor,
    beta2_decay: float,
    weight_decay: float,
    eps1: float | None,
    eps2: float,
    maximize: bool,
) -> None:
    """Update the parameters once, as `Adafactor` does, with the state in lists; both change in place. Raises RuntimeError for numbers in `state_steps`, AssertionError."""
    if not all(isinstance(step, Tensor) for step in state_steps):
        raise RuntimeError("`state_steps` argument must contain a list of singleton tensors")
    if grad_scale is not None or found_inf is not None:
        raise AssertionError("Grad scaling should occur outside of optimizer.step()")
    if any(param.is_complex() for param in params):
        raise RuntimeError("Adafactor does not support complex parameters")
    group = {
        "lr": lr,
        "beta2_decay": beta2_decay,
        "eps": (eps1, eps2),
        "d": d,
        "weight_decay": weight_decay,
        "maximize": maximize,
    }
    lists = {"step": state_steps, "row_var": row_vars, "col_var": col_vars, "variance": variances}
    run(Adafactor, group, params, grads, lists)
