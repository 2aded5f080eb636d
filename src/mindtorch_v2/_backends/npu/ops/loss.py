"""Losses whose weights aclnn does not take as optional."""

from __future__ import annotations

from typing import Any

from ...._dispatch import ops
from ...._generated.npu.functions import (
    aclnnBinaryCrossEntropy,
    aclnnBinaryCrossEntropyBackward,
    aclnnInplaceZero,
    aclnnNLLLoss,
    aclnnNLLLossBackward,
)
from ..aclnn import launch


def binary_cross_entropy(out: Any, self: Any, target: Any, weight: Any, reduction: int) -> None:
    weight = ops.ones_like(self) if weight is None else ops.expand_as(weight, self)
    launch(aclnnBinaryCrossEntropy, self._data, target._data, ops.contiguous(weight)._data, reduction, out[0])


def binary_cross_entropy_backward(
    out: Any, grad_output: Any, self: Any, target: Any, weight: Any, reduction: int
) -> None:
    weight = None if weight is None else ops.contiguous(ops.expand_as(weight, self))._data
    launch(aclnnBinaryCrossEntropyBackward, grad_output._data, self._data, target._data, weight, reduction, out[0])


def _class_weights(self: Any, weight: Any) -> Any:
    return ops.ones(self.shape[-1], dtype=self.dtype, device=self.device) if weight is None else weight


def nll_loss_forward(out: Any, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> None:
    weight = _class_weights(self, weight)
    launch(aclnnNLLLoss, self._data, target._data, weight._data, reduction, ignore_index, out[0], out[1])
    if reduction == 0:
        launch(aclnnInplaceZero, out[1])  # only a reduction divides by it


def nll_loss_backward(
    out: Any,
    grad_output: Any,
    self: Any,
    target: Any,
    weight: Any,
    reduction: int,
    ignore_index: int,
    total_weight: Any,
) -> None:
    given = (grad_output._data, self._data, target._data, _class_weights(self, weight)._data)
    launch(aclnnNLLLossBackward, *given, reduction, ignore_index, total_weight._data, out[0])
