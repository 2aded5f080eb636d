"""Losses made of other operators. `reduction` is 0 for none, 1 for the mean, 2 for the sum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mindtorch_v2 import _dtype
from mindtorch_v2._dispatch.backends import data_needed
from mindtorch_v2._generated import functions as F
from mindtorch_v2._rules._common import check_undifferentiable
from mindtorch_v2._tensor import Tensor, alias_as

NONE, MEAN, SUM = 0, 1, 2


def _reduced(values: Tensor, reduction: int) -> Tensor:
    if reduction == MEAN:
        return F.mean(values)
    return F.sum(values) if reduction == SUM else values


def l1_loss(self: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    """|self - target|."""
    return _reduced(F.abs(F.sub(self, target)), reduction)


def kl_div(self: Tensor, target: Tensor, reduction: int = MEAN, log_target: bool = False) -> Tensor:
    """target * (log target - self), where `self` holds logarithms; with `log_target` the target does too."""
    if self.dtype.is_complex or target.dtype.is_complex:
        raise RuntimeError("kl_div: Complex inputs not supported.")
    if not (self.dtype.is_floating_point and target.dtype.is_floating_point):
        raise RuntimeError("kl_div: Integral inputs not supported.")
    if log_target:
        return _reduced(F.mul(F.exp(target), F.sub(target, self)), reduction)
    return _reduced(F.sub(F.xlogy(target, target), F.mul(target, self)), reduction)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = MEAN
) -> Tensor:
    """1 - cos for pairs with target 1, max(0, cos - margin) for those with -1."""
    dims = target.dim()
    if dims not in (0, 1):
        raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported, got {target.dim()}D")
    if dims == 1 and (input1.dim() != 2 or input2.dim() != 2):
        raise RuntimeError(
            f"1D target tensor expects 2D input tensors, but found inputs with sizes {list(input1.shape)} and {list(input2.shape)}."
        )
    if dims == 0 and (input1.dim() != 1 or input2.dim() != 1):
        raise RuntimeError(
            f"0D target tensor expects 1D input tensors, but found inputs with sizes {list(input1.shape)} and {list(input2.shape)}."
        )
    tiny = 1e-12
    product = F.sum(F.mul(input1, input2), dims)
    first = F.add(F.sum(F.mul(input1, input1), dims), tiny)
    second = F.add(F.sum(F.mul(input2, input2), dims), tiny)
    cosine = F.div(product, F.sqrt(F.mul(first, second)))
    zeros = F.zeros_like(cosine)
    positive = F.where(F.eq(target, 1), F.rsub(cosine, 1), zeros)
    negative = F.where(F.eq(target, -1), F.clamp_min(F.sub(cosine, margin), 0), zeros)
    return _reduced(F.add(positive, negative), reduction)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = MEAN
) -> Tensor:
    """max(0, -target * (input1 - input2) + margin)."""
    value = F.add(F.mul(F.neg(target), F.sub(input1, input2)), margin)
    return _reduced(F.clamp_min(value, 0), reduction)


def hinge_embedding_loss(self: Tensor, target: Tensor, margin: float = 1.0, reduction: int = MEAN) -> Tensor:
    """self for target 1, max(0, margin - self) for -1."""
    zeros = F.zeros_like(self)
    margins = F.where(F.ne(target, 1), F.clamp_min(F.rsub(self, margin), 0), zeros)
    distances = F.where(F.ne(target, -1), self, zeros)
    return _reduced(F.add(margins, distances), reduction)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-06,
    swap: bool = False,
    reduction: int = MEAN,
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin)."""
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs"
        )
    near = F.pairwise_distance(anchor, positive, p, eps)
    far = F.pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = F.minimum(far, F.pairwise_distance(positive, negative, p, eps))
    return _reduced(F.clamp_min(F.sub(F.add(near, margin), far), 0), reduction)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """exp(input) - target * input, or input - target * log(input + eps); `full` adds Stirling's term for targets above 1."""
    if log_input:
        loss = F.sub(F.exp(input), F.mul(target, input))
    else:
        loss = F.sub(input, F.mul(target, F.log(F.add(input, eps))))
    if full:
        stirling = F.add(F.sub(F.mul(target, F.log(target)), target), F.mul(F.log(F.mul(target, 2 * math.pi)), 0.5))
        loss = F.add(loss, F.masked_fill(stirling, F.le(target, 1), 0))
    return _reduced(loss, reduction)


def multi_margin_loss(
    self: Tensor, target: Tensor, p: Any = 1, margin: Any = 1, weight: Tensor | None = None, reduction: int = MEAN
) -> Tensor:
    """The mean over the other classes of max(0, margin - x[target] + x[i]) ** p."""
    check_undifferentiable("multi_margin_loss", weight=weight)
    if p not in (1, 2):
        raise RuntimeError("only p == 1 and p == 2 supported")
    if self.dim() > 2 or self.dim() and not self.shape[-1]:
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(self.shape)}"
        )
    scores = self if self.dim() == 2 else F.reshape(self, [1, -1])  # a number is one class
    if target.dim() > 1 or target.numel() != scores.shape[0]:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). Expected "
            f"target size [{scores.shape[0]}], but got {list(target.shape)}. Input has shape {list(self.shape)}."
        )
    if weight is not None and tuple(weight.shape) != (scores.shape[1],):
        raise RuntimeError(f"inconsistent weight size, expected {scores.shape[1]} but got {list(weight.shape)}")
    if self.dtype not in (_dtype.float32, _dtype.float64):
        raise NotImplementedError(f"\"multi_margin_loss_cpu_kernel\" not implemented for '{self.dtype.cpp}'")
    _check_classes(target, 0, scores.shape[1], "target out of range")
    places = F.reshape(target, [-1, 1])
    value = F.clamp_min(F.add(F.sub(scores, F.gather(scores, 1, places)), margin), 0)
    if p == 2:
        value = F.mul(value, value)
    if weight is not None:
        value = F.mul(value, F.index_select(weight, 0, F.reshape(target, [-1])).unsqueeze(1))
    value = F.scatter(value, 1, places, 0)
    loss = F.div(F.sum(value, 1), scores.shape[1])
    loss = F.reshape(loss, list(target.shape)) if target.dim() == 0 else loss
    return _reduced(loss, reduction)


def _check_classes(target: Tensor, least: int, classes: int, message: str) -> None:
    if not target.numel():
        return
    if target.dtype is not _dtype.int64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.cpp}")
    if target.device.type != "meta":
        low, high = F.aminmax(alias_as(Tensor, target))  # of all examples of a batch
        if int(low) < least or int(high) >= classes:
            raise RuntimeError(message)


def multilabel_margin_loss(self: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    """The mean over classes of the sum over the targets (up to the first -1) and the other classes of max(0, 1 - x[target] + x[i])."""
    if self.dim() > 2 or not self.dim() and self.numel() != 1 or self.dim() and self.shape[-1] == 0:
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(self.shape)}"
        )
    if tuple(target.shape) != tuple(self.shape):
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(self.shape)}")
    classes = self.shape[-1] if self.dim() else 1
    _check_classes(target, -1, classes, "argument #2 'target' is out of range")
    scores, places = F.reshape(self, [-1, classes]), F.reshape(target, [-1, classes])
    if not places.numel():
        places = F._to_copy(places, dtype=_dtype.int64)
    named = F.eq(F.cumsum(F.lt(places, 0), 1), 0)
    inside = F.where(named, places, 0)
    is_target = F.gt(F.scatter_add(F.zeros_like(places), 1, inside, F._to_copy(named, dtype=_dtype.int64)), 0)
    gaps = F.add(F.sub(F.unsqueeze(scores, 1), F.unsqueeze(F.gather(scores, 1, inside), 2)), 1)
    counted = F.logical_and(F.unsqueeze(named, 2), F.logical_not(F.unsqueeze(is_target, 1)))
    loss = F.div(F.sum(F.where(counted, F.clamp_min(gaps, 0), 0), [1, 2]), classes)
    return _reduced(loss if self.dim() == 2 else F.squeeze(loss, 0), reduction)


# Classes


def nll_loss(
    self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN, ignore_index: int = -100
) -> Tensor:
    """-self[target] for (N, C) or (C) log probabilities."""
    return F.nll_loss_forward(self, target, weight, reduction, ignore_index)[0]


def nll_loss2d(
    self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN, ignore_index: int = -100
) -> Tensor:
    """-self[target] for (N, C, H, W) log probabilities."""
    return F.nll_loss2d_forward(self, target, weight, reduction, ignore_index)[0]


def nll_loss_nd(
    self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN, ignore_index: int = -100
) -> Tensor:
    """-self[target] for any number of dimensions behind the classes."""
    if self.dim() < 1:
        raise RuntimeError(f"Expected 1 or more dimensions (got {self.dim()})")
    if self.dim() != 1 and self.shape[0] != target.shape[0]:
        raise ValueError(f"Expected input batch_size ({self.shape[0]}) to match target batch_size ({target.shape[0]}).")
    if self.dim() <= 2:
        return F.nll_loss(self, target, weight, reduction, ignore_index)
    if self.dim() == 4:
        return F.nll_loss2d(self, target, weight, reduction, ignore_index)
    batch, classes = self.shape[0], self.shape[1]
    shape = [batch, *self.shape[2:]]
    if list(target.shape[1:]) != list(self.shape[2:]):
        raise RuntimeError(f"Expected target size {_text(shape)}, got {_text(target.shape)}")
    flat = F.reshape(self, [batch, classes, 1, -1] if self.numel() else [batch, classes, 0, 0])
    places = F.reshape(target, [batch, 1, -1] if target.numel() else [batch, 0, 0])
    loss = F.nll_loss2d(flat, places, weight, reduction, ignore_index)
    return loss if reduction else F.reshape(loss, shape)


def _text(shape: Sequence[int]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def cross_entropy_loss(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = MEAN,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    """The negative logarithm of the softmax at the target class; a floating target of self's shape holds class probabilities."""
    classes = 0 if self.dim() == 1 else 1
    if label_smoothing > 1.0:  # one below zero smooths nothing
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    if label_smoothing < 0.0:
        label_smoothing = 0.0
    if self.shape == target.shape and self.dim():
        if not target.dtype.is_floating_point:
            raise RuntimeError(
                f"Expected floating point type for target with class probabilities, got {target.dtype.cpp}"
            )
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _of_probabilities(self, target, weight, reduction, label_smoothing, classes)
    logs = F.log_softmax(self, classes)
    if not label_smoothing:
        return F.nll_loss_nd(logs, target, weight, reduction, ignore_index)
    return _smoothed(logs, target, weight, reduction, ignore_index, label_smoothing, classes)


def _check_weight(self: Tensor, weight: Tensor | None, classes: int) -> None:
    if weight is not None and (weight.dim() != 1 or weight.numel() != self.shape[classes]):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {self.shape[classes]} classes or no classes but got "
            f"weight tensor of shape: {_text(weight.shape)}"
        )


def _along_classes(weight: Tensor, like: Tensor, classes: int) -> Tensor:
    return F.reshape(weight, [-1 if d == classes else 1 for d in range(like.dim())])


def _of_probabilities(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, label_smoothing: float, classes: int
) -> Tensor:
    _check_weight(self, weight, classes)
    logs = F.log_softmax(self, classes)
    count = self.shape[classes]
    if label_smoothing:
        target = F.add(F.mul(target, 1 - label_smoothing), label_smoothing / max(count, 1))
    product = F.mul(logs, target)
    if weight is not None:
        product = F.mul(product, _along_classes(weight, self, classes))
    if reduction == NONE:
        return F.neg(F.sum(product, classes))
    total = F.neg(F.sum(product))
    if reduction == SUM:
        return total
    samples = self.numel() // count if count else 0
    if not samples:
        return F.mul(total, math.nan)
    return F.div(total, samples)


def _smoothed(
    logs: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    label_smoothing: float,
    classes: int,
) -> Tensor:
    _check_weight(logs, weight, classes)
    hard = F.nll_loss_nd(logs, target, weight, reduction, ignore_index)
    summed = F.sum(logs if weight is None else F.mul(logs, _along_classes(weight, logs, classes)), classes)
    smooth = F.neg(summed)
    ignored = F.eq(target, ignore_index)
    smooth = F.masked_fill(smooth, ignored, 0.0)
    if reduction == MEAN:
        if weight is not None:
            safe = F.masked_fill(target, ignored, 0)
            counted = F.index_select(weight, 0, F.reshape(safe, [-1]))
            total = F.sum(F.masked_fill(counted, F.reshape(ignored, [-1]), 0.0))
            smooth = F.div(F.sum(smooth), total)
        else:
            kept = F.sum(F.logical_not(ignored))
            smooth = F.div(F.sum(smooth), kept)
    elif reduction == SUM:
        smooth = F.sum(smooth)
    share = label_smoothing / max(logs.shape[classes], 1)
    return F.add(F.mul(hard, 1 - label_smoothing), F.mul(smooth, share))


# Sequences


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Sequence[int],
    target_lengths: Sequence[int],
    blank: int = 0,
    reduction: int = MEAN,
    zero_infinity: bool = False,
) -> Tensor:
    """The negative logarithm of the probability of the targets, over all their alignments with the input."""
    batched = log_probs.dim() == 3
    logs = log_probs if batched else F.unsqueeze(log_probs, 1)
    loss = F._ctc_loss(logs, targets, list(input_lengths), list(target_lengths), blank, zero_infinity)[0]
    if zero_infinity:
        loss = F.where(F.eq(loss, math.inf), F.zeros_like(loss), loss)
    if reduction == MEAN:
        lengths = F.clamp_min(log_probs.new_tensor([float(n) for n in target_lengths]), 1)
        return F.mean(F.div(loss, lengths))
    if reduction == SUM:
        return F.sum(loss)
    return loss if batched else F.squeeze(loss, 0)


def ctc_loss_tensor(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int = 0,
    reduction: int = MEAN,
    zero_infinity: bool = False,
) -> Tensor:
    """`ctc_loss` with the lengths given as integer tensors."""
    for lengths in (input_lengths, target_lengths):
        if lengths.dtype.is_floating_point or lengths.dtype.is_complex:
            raise RuntimeError("input_lengths and target_lengths must be integral")
    if input_lengths.is_meta or target_lengths.is_meta:
        raise data_needed("_ctc_loss")
    first, second = (F.reshape(x, [-1]).tolist() for x in (input_lengths, target_lengths))
    return ctc_loss(log_probs, targets, first, second, blank, reduction, zero_infinity)
