"""Losses whose weights aclnn does not take as optional."""

from __future__ import annotations

import math
from typing import Any

from ...._dispatch import ops
from ...._generated.npu.functions import (
    aclnnBinaryCrossEntropy,
    aclnnBinaryCrossEntropyBackward,
    aclnnCtcLoss,
    aclnnCtcLossBackward,
    aclnnInplaceFillScalar,
    aclnnInplaceZero,
    aclnnNLLLoss,
    aclnnNLLLossBackward,
)
from .. import copies
from ..aclnn import launch
from ..creation import empty


def binary_cross_entropy(out: Any, self: Any, target: Any, weight: Any, reduction: int) -> None:
    weight = ops.ones_like(self) if weight is None else ops.expand_as(weight, self)
    launch(aclnnBinaryCrossEntropy, self._payload, target._payload, ops.contiguous(weight)._payload, reduction, out[0])


def binary_cross_entropy_backward(
    out: Any, grad_output: Any, self: Any, target: Any, weight: Any, reduction: int
) -> None:
    weight = None if weight is None else ops.contiguous(ops.expand_as(weight, self))._payload
    launch(
        aclnnBinaryCrossEntropyBackward, grad_output._payload, self._payload, target._payload, weight, reduction, out[0]
    )


def _class_weights(self: Any, weight: Any) -> Any:
    return ops.ones(self.shape[-1], dtype=self.dtype, device=self.device) if weight is None else weight


def nll_loss_forward(out: Any, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> None:
    weight = _class_weights(self, weight)
    launch(aclnnNLLLoss, self._payload, target._payload, weight._payload, reduction, ignore_index, out[0], out[1])
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
    given = (grad_output._payload, self._payload, target._payload, _class_weights(self, weight)._payload)
    launch(aclnnNLLLossBackward, *given, reduction, ignore_index, total_weight._payload, out[0])


_STATES = 8  # aclnnCtcLoss wants the states of an alignment in a multiple of so many


def _wide(log_alpha: Any) -> tuple[Any, Any]:
    """A payload whose last dimension is rounded up, and the part of it that has log_alpha's shape; or the same one twice."""
    batch, times, states = log_alpha.shape
    width = -(-states // _STATES) * _STATES
    if width == states and log_alpha.is_contiguous:
        return log_alpha, log_alpha
    whole = empty((batch, times, width), None, log_alpha.dtype, log_alpha.device)
    return whole, whole.__class__((batch, times, states), whole.stride, whole.dtype, 0, whole.storage)


def ctc_loss(
    out: Any,
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int,
    zero_infinity: bool,
) -> None:
    """(losses, logarithms of the probabilities of all beginnings)."""
    if not out[1].size:
        if out[0].size:
            launch(aclnnInplaceZero, out[0])
        return
    whole, part = _wide(out[1])
    given = (log_probs._payload, targets._payload, list(input_lengths), list(target_lengths))
    launch(aclnnCtcLoss, *given, blank, zero_infinity, out[0], whole)
    if whole is not out[1]:
        copies.copy_on_device(out[1], part)


def ctc_loss_backward(
    out: Any,
    grad: Any,
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    neg_log_likelihood: Any,
    log_alpha: Any,
    blank: int,
    zero_infinity: bool,
) -> None:
    """The gradient of log_probs."""
    if not out[0].size:
        return
    whole, part = _wide(log_alpha._payload)
    if whole is not log_alpha._payload:
        launch(aclnnInplaceFillScalar, whole, -math.inf)
        copies.copy_on_device(part, log_alpha._payload)
    given = (grad._payload, log_probs._payload, targets._payload, list(input_lengths), list(target_lengths))
    launch(aclnnCtcLossBackward, *given, neg_log_likelihood._payload, whole, blank, zero_infinity, out[0])


def _reduced(loss: Any, reduction: int) -> Any:
    return loss if reduction == 0 else ops.mean(loss) if reduction == 1 else ops.sum(loss)


def huber_loss(out: Any, self: Any, target: Any, reduction: int, delta: float) -> Any:
    size = ops.abs(ops.sub(self, target))
    near, far = ops.mul(ops.square(size), 0.5), ops.mul(ops.sub(size, 0.5 * delta), delta)
    return _reduced(ops.where(ops.le(size, delta), near, far), reduction)


def soft_margin_loss(out: Any, self: Any, target: Any, reduction: int) -> Any:
    return _reduced(ops.log1p(ops.exp(ops.neg(ops.mul(target, self)))), reduction)


def nll_loss2d_forward(out: Any, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    """Of every pixel as of an example."""
    if not self.numel():
        return NotImplemented
    flat = ops.reshape(ops.permute(self, (0, 2, 3, 1)), (-1, self.shape[1]))
    loss, total = ops.nll_loss_forward(flat, ops.reshape(target, (-1,)), weight, reduction, ignore_index)
    return (ops.reshape(loss, tuple(target.shape)) if reduction == 0 else loss), total


def nll_loss2d_backward(
    out: Any,
    grad_output: Any,
    self: Any,
    target: Any,
    weight: Any,
    reduction: int,
    ignore_index: int,
    total_weight: Any,
) -> Any:
    if not self.numel():
        return NotImplemented
    n, classes, height, width = self.shape
    flat = ops.reshape(ops.permute(self, (0, 2, 3, 1)), (-1, classes))
    grad = ops.reshape(grad_output, (-1,)) if reduction == 0 else grad_output
    made = ops.nll_loss_backward(grad, flat, ops.reshape(target, (-1,)), weight, reduction, ignore_index, total_weight)
    return ops.permute(ops.reshape(made, (n, height, width, classes)), (0, 3, 1, 2))
