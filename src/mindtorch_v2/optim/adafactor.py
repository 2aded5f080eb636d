"""Adafactor."""

from __future__ import annotations

from typing import Any, cast

import mindtorch_v2 as torch

from .._tensor import Tensor
from ._single import SingleTensorOptimizer, number, scalar, zeros_like
from .optimizer import ParamsT

__all__ = ["Adafactor"]


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
            rows.lerp_(torch.norm(grad, dim=-1, keepdim=True).square_().div_(grad.size(-1)), share)
            cols.lerp_(torch.norm(grad, dim=-2, keepdim=True).square_().div_(grad.size(-2)), share)
            variance = rows @ cols
            variance.div_(rows.mean(dim=-2, keepdim=True).clamp_(min=eps1))
        else:
            state["variance"].lerp_(grad * grad, share)
            variance = state["variance"].clone()
        update = variance.clamp_(min=eps1 * eps1).rsqrt_()
        update.mul_(grad)
        clipped = max(1.0, update.norm(2).item() / (update.numel() ** 0.5 * group["d"]))
        param.add_(update, alpha=number(-rate / clipped))
