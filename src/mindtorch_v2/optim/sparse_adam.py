"""Adam for gradients of embeddings, which say something of few rows only."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import mindtorch_v2 as torch

from .._tensor import Tensor
from ._single import SingleTensorOptimizer, check_betas, scalar, zeros_like
from .optimizer import ParamsT

__all__ = ["SparseAdam"]


class SparseAdam(SingleTensorOptimizer):
    """Adam that moves, of dense parameters with sparse gradients, the specified elements and their moments only. Raises ValueError, RuntimeError for dense gradients."""

    _later_options: ClassVar[dict[str, Any]] = {"maximize": False}
    _scalar_state: ClassVar[tuple[str, ...]] = ()  # the step stays a number

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        sparse, numbers = [], []
        for group_index, group in enumerate(self.param_groups):
            for index, param in enumerate(group["params"]):
                if param.is_sparse:
                    sparse.append([group_index, index])
                if param.is_complex():
                    numbers.append([group_index, index])
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        if numbers:
            raise ValueError(f"Complex params at indices {numbers}: SparseAdam does not support complex parameters")

    def _check_sparse(self, grad: Tensor) -> None:
        if not grad.is_sparse:
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")

    def _init_state(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        state["step"] = 0
        state["exp_avg"] = zeros_like(param)
        state["exp_avg_sq"] = zeros_like(param)

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        state["step"] += 1
        grad = grad.coalesce()  # what follows is not linear
        values = grad._values()
        if values.numel() == 0:
            return
        average, squares = state["exp_avg"], state["exp_avg_sq"]
        beta1, beta2 = group["betas"]

        def changed(values: Tensor) -> Tensor:
            return torch.sparse_coo_tensor(
                grad._indices(), values, grad.size(), check_invariants=False, is_coalesced=True
            )

        before = average.sparse_mask(grad)._values()
        step = values.sub(before).mul_(1 - beta1)
        average.add_(changed(step))
        squared = squares.sparse_mask(grad)._values()
        grown = values.pow(2).sub_(squared).mul_(1 - beta2)
        squares.add_(changed(grown))
        # The moments as they are now, without looking them up again.
        numerator = step.add_(before)
        denominator = grown.add_(squared).sqrt_().add_(group["eps"])
        rate = scalar(group["lr"]) * math.sqrt(1 - beta2 ** state["step"]) / (1 - beta1 ** state["step"])
        param.add_(changed(-rate * numerator.div_(denominator)))
