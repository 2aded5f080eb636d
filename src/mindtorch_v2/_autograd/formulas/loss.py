"""Derivatives of losses. `reduction` is 0 for none, 1 for the mean, 2 for the sum."""

from __future__ import annotations

from ..._dispatch import ops
from ..._tensor import Tensor

Pair = tuple[Tensor, Tensor]


def _shared(grad: Tensor, values: Tensor, reduction: int) -> Tensor:
    """`grad` for each element of what was reduced."""
    return grad / max(values.numel(), 1) if reduction == 1 else grad


def mse_loss_gradient(grad: Tensor, self: Tensor, target: Tensor, reduction: int) -> Pair:
    """Gradients of input and target."""
    difference = self - target
    first = difference * (_shared(grad, difference, reduction) * 2)
    return first, -first


def smooth_l1_loss_gradient(grad: Tensor, self: Tensor, target: Tensor, reduction: int, beta: float) -> Pair:
    """Gradients of input and target."""
    difference = self - target
    slope = ops.clamp(difference / beta, -1, 1) if beta else ops.sign(difference)
    first = slope * _shared(grad, difference, reduction)
    return first, -first


def huber_loss_gradient(grad: Tensor, self: Tensor, target: Tensor, reduction: int, delta: float) -> Pair:
    """Gradients of input and target."""
    difference = self - target
    first = ops.clamp(difference, -delta, delta) * _shared(grad, difference, reduction)
    return first, -first


def soft_margin_loss_gradient(grad: Tensor, self: Tensor, target: Tensor, reduction: int) -> Pair:
    """Gradients of input and target."""
    slope = ops.sigmoid(-target * self) * -_shared(grad, self, reduction)
    return slope * target, slope * self


def _weighted(grad: Tensor, values: Tensor, weight: Tensor | None, reduction: int) -> Tensor:
    share = _shared(grad, values, reduction)
    return share if weight is None else share * weight


def binary_cross_entropy_target(
    grad: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, reduction: int
) -> Tensor:
    """The gradient of the target: log((1 - x) / x), with logarithms not below -100."""
    logs = ops.clamp_min(ops.log1p(-self), -100) - ops.clamp_min(ops.log(self), -100)
    return logs * _weighted(grad, self, weight, reduction)


def binary_cross_entropy_to_grad(
    grad: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, reduction: int
) -> Tensor:
    """The gradient of the backward operator with respect to its grad_output."""
    slope = (self - target) / ops.clamp_min((1 - self) * self, 1e-12)
    return _weighted(grad, self, weight, reduction) * slope


def binary_cross_entropy_second(
    grad: Tensor, grad_output: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, reduction: int
) -> Tensor:
    """The second derivative in the input."""
    product = ops.clamp_min((1 - self) * self, 1e-12)
    curve = (self * self - 2 * self * target + target) / (product * product)
    return grad * _weighted(grad_output, self, weight, reduction) * curve


def binary_cross_entropy_second_target(
    grad: Tensor, grad_output: Tensor, self: Tensor, weight: Tensor | None, reduction: int
) -> Tensor:
    """The mixed derivative in input and target."""
    product = ops.clamp_min((1 - self) * self, 1e-12)
    return -grad * _weighted(grad_output, self, weight, reduction) / product


def bce_with_logits_gradient(
    grad: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, pos_weight: Tensor | None, reduction: int
) -> Pair:
    """Gradients of logits and target."""
    share = _weighted(grad, self, weight, reduction)
    if pos_weight is None:
        return (ops.sigmoid(self) - target) * share, -self * share
    positive = pos_weight * target
    first = ((positive + 1 - target) * ops.sigmoid(self) - positive) * share
    second = (ops.softplus(-self) * (pos_weight - 1) - self) * share
    return first, second


__all__ = [
    "bce_with_logits_gradient",
    "binary_cross_entropy_second",
    "binary_cross_entropy_second_target",
    "binary_cross_entropy_target",
    "binary_cross_entropy_to_grad",
    "huber_loss_gradient",
    "mse_loss_gradient",
    "smooth_l1_loss_gradient",
    "soft_margin_loss_gradient",
]
