"""Losses. `reduction` is 0 for none, 1 for the mean, 2 for the sum."""

from __future__ import annotations

import numpy as np
from numpy import ndarray

from ...._dispatch import native
from .view import FEW

MEAN, SUM = 1, 2


def reduce(values: ndarray, reduction: int) -> ndarray:
    if reduction == MEAN:
        return np.asarray(values.mean() if values.size else values.dtype.type(np.nan))
    return np.asarray(values.sum()) if reduction == SUM else values


# ------------------------------------------------------------------------------------------------------------------- pointwise


@native.kernel
def mse_loss(self: ndarray, target: ndarray, reduction: int = MEAN) -> ndarray:
    difference = np.subtract(self, target)
    if reduction and difference.dtype.kind == "f" and difference.size:
        flat = difference.reshape(-1)
        total = np.einsum("i,i->", flat, flat) if flat.size < 4096 else np.square(flat).sum()
        return np.asarray(total / flat.size if reduction == MEAN else total, dtype=difference.dtype)
    return reduce(np.square(difference), reduction)


@native.kernel
def smooth_l1_loss(self: ndarray, target: ndarray, reduction: int = MEAN, beta: float = 1.0) -> ndarray:
    distance = np.abs(self - target)
    if beta:
        distance = np.where(distance < beta, distance * distance * (0.5 / beta), distance - 0.5 * beta)
    return reduce(distance, reduction)


@native.kernel
def huber_loss(self: ndarray, target: ndarray, reduction: int = MEAN, delta: float = 1.0) -> ndarray:
    distance = np.abs(self - target)
    return reduce(np.where(distance <= delta, distance * distance * 0.5, (distance - 0.5 * delta) * delta), reduction)


@native.kernel
def soft_margin_loss(self: ndarray, target: ndarray, reduction: int = MEAN) -> ndarray:
    return reduce(np.log1p(np.exp(-target * self)), reduction)


@native.kernel
def binary_cross_entropy(
    self: ndarray, target: ndarray, weight: ndarray | None = None, reduction: int = MEAN
) -> ndarray:
    if self.size and not (self.min() >= 0 and self.max() <= 1):
        raise RuntimeError("all elements of input should be between 0 and 1")
    if target.size and not (target.min() >= 0 and target.max() <= 1):
        raise RuntimeError("all elements of target should be between 0 and 1")
    value = (target - 1) * np.maximum(np.log1p(-self), -100) - target * np.maximum(np.log(self), -100)
    return reduce(value if weight is None else value * weight, reduction)


def binary_cross_entropy_backward(
    grad_output: ndarray, self: ndarray, target: ndarray, weight: ndarray | None = None, reduction: int = MEAN
) -> ndarray:
    grad = grad_output * (self - target) / np.maximum((1 - self) * self, 1e-12)
    if weight is not None:
        grad = grad * weight
    return grad / max(self.size, 1) if reduction == MEAN else grad


@native.kernel
def binary_cross_entropy_with_logits(
    self: ndarray,
    target: ndarray,
    weight: ndarray | None = None,
    pos_weight: ndarray | None = None,
    reduction: int = MEAN,
) -> ndarray:
    softplus = np.log1p(np.exp(-np.abs(self))) + np.maximum(-self, 0)
    if pos_weight is not None:
        softplus = softplus * ((pos_weight - 1) * target + 1)
    value = (1 - target) * self + softplus
    return reduce(value if weight is None else value * weight, reduction)


# ----------------------------------------------------------------------------------------------- negative log likelihood


class _Targets:
    """(N, C, S) scores with (N, S) classes: which elements count, and how much.

    1-D scores are one sample; 2-D ones have S = 1; further dimensions are flattened into S.
    """

    def __init__(self, scores: ndarray, target: ndarray, weight: ndarray | None, ignore_index: int):
        if scores.ndim == 1:
            self.shape = (1, scores.shape[0], 1)
        else:
            self.shape = (scores.shape[0], scores.shape[1], int(np.prod(scores.shape[2:], dtype=np.int64)))
        classes = self.shape[1]
        self.target = target.reshape(self.shape[0], self.shape[2]).astype(np.int64, copy=False)
        self.kept = self.target != ignore_index
        wrong = self.kept & ((self.target < 0) | (self.target >= classes))
        if wrong.any():
            raise IndexError(f"Target {self.target[wrong][0]} is out of bounds.")
        self.classes = np.where(self.kept, self.target, 0)
        self.weights = None if weight is None else weight[self.classes] * self.kept

    def where(self) -> tuple[ndarray, ndarray, ndarray]:
        batch, _, places = self.shape
        return np.arange(batch)[:, None], self.classes, np.arange(places)

    def counted(self, dtype: np.dtype) -> ndarray:
        return self.kept.astype(dtype) if self.weights is None else self.weights.astype(dtype, copy=False)


@native.kernel
def nll_loss_forward(
    self: ndarray, target: ndarray, weight: ndarray | None, reduction: int, ignore_index: int
) -> tuple[ndarray, ndarray]:
    """(loss, sum of the weights that counted); the second is 0 without reduction. Of half types in float32."""
    half = self.dtype.itemsize == 2
    kind = np.dtype(np.float32) if half else self.dtype
    few = half or self.size <= FEW
    if weight is None and reduction and self.ndim == 2 and few and self.size and target.dtype == np.int64:
        count, classes = self.shape
        if not 0 <= ignore_index < classes and np.maximum.reduce(target.view(np.uint64)) < classes:  # none is negative
            loss = np.negative(np.add.reduce(self[np.arange(count), target].astype(kind, copy=False)))
            total = kind.type(count)
            return np.asarray(loss / total if reduction == MEAN else loss), np.asarray(total)
    found = _Targets(self, target, weight, ignore_index)
    counted = found.counted(kind)
    if found.shape[1] == 0 or not found.target.size:
        picked = np.zeros(found.target.shape, kind)
    else:
        picked = self.reshape(found.shape)[found.where()].astype(kind, copy=False)
    losses = np.where(found.kept, -picked * counted, kind.type(0))
    if not reduction:
        return losses.reshape(target.shape), np.zeros((), kind)
    total = counted.sum()
    loss = losses.sum()
    return np.asarray(loss / total if reduction == MEAN else loss, dtype=kind), np.asarray(total)


@native.kernel
def nll_loss_backward(
    grad_output: ndarray,
    self: ndarray,
    target: ndarray,
    weight: ndarray | None,
    reduction: int,
    ignore_index: int,
    total_weight: ndarray,
) -> ndarray:
    result = np.zeros(self.shape, self.dtype)
    found = _Targets(self, target, weight, ignore_index)
    if not result.size:
        return result
    kind = np.dtype(np.float32) if self.dtype.itemsize == 2 else self.dtype
    upper = (grad_output if reduction else grad_output.reshape(found.target.shape)).astype(kind, copy=False)
    share = -found.counted(kind) * upper
    if reduction == MEAN:
        share = share / total_weight.astype(kind, copy=False)
    result.reshape(found.shape)[found.where()] = np.where(found.kept, share, kind.type(0))
    return result
