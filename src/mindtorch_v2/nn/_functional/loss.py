"""Loss functions. ``reduction`` is 'mean', 'sum' or 'none'; others raise ValueError."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import mindtorch_v2 as torch

from ..._dispatch.backends import data_needed
from ..._generated import functions as _f
from ..._tensor import Tensor
from .. import _reduction as _Reduction


def _name(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction, from the former arguments when one of them is given."""
    if size_average is None and reduce is None:
        return reduction
    return _Reduction.legacy_get_string(size_average, reduce)


def _number(size_average: bool | None, reduce: bool | None, reduction: str) -> int:
    return _Reduction.get_enum(_name(size_average, reduce, reduction))


def _reduce(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


def _lengths(given: Tensor, name: str) -> list[int]:
    """Lengths of sequences as numbers. NotImplementedError for a tensor on the meta device."""
    if given.is_meta:
        raise data_needed("_ctc_loss")
    if given.dtype.is_floating_point or given.dtype.is_complex:
        raise RuntimeError(f"{name} must be integral")
    return given.long().tolist()


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The connectionist temporal classification loss of ``log_probs`` (T, N, C) and ``targets`` (N, S)."""
    number = _Reduction.get_enum(reduction)
    if isinstance(input_lengths, Tensor):
        input_lengths = _lengths(input_lengths, "input_lengths")
    if isinstance(target_lengths, Tensor):
        target_lengths = _lengths(target_lengths, "target_lengths")
    return _f.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, number, zero_infinity)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log likelihood of classes ``target`` (N, ...) under log-probabilities ``input`` (N, C, ...)."""
    if input.dim() < 1:
        raise ValueError(f"Expected 1 or more dimensions (got {input.dim()})")
    return _f.nll_loss_nd(input, target, weight, _number(size_average, reduce, reduction), ignore_index)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log likelihood of counts under Poisson distributions of mean ``input`` (or its exponential)."""
    reduction = _name(size_average, reduce, reduction)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not a valid value for reduction")
    return _f.poisson_nll_loss(input, target, log_input, full, eps, _Reduction.get_enum(reduction))


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """The negative log likelihood of ``target`` under Gaussians of mean ``input`` and variance ``var``."""
    variance: Any = var
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        variance = var * torch.ones_like(input)
    elif torch.any(var < 0):
        raise ValueError("var has negative entry/entries")
    if variance.size() != input.size():
        if input.size()[:-1] == variance.size():
            variance = torch.unsqueeze(variance, -1)
        elif not (
            # One variance for a whole dimension: all sizes agree but one, which is 1.
            input.ndim == variance.ndim
            and sum(own for given, own in zip(input.size(), variance.size(), strict=True) if given != own) == 1
        ):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    variance = variance.clone()
    with torch.no_grad():
        variance.clamp_(min=eps)
    loss = 0.5 * (torch.log(variance) + (input - target) ** 2 / variance)
    if full:
        loss += 0.5 * math.log(2 * math.pi)
    return _reduce(loss, reduction)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The Kullback-Leibler divergence of log-probabilities ``input`` from ``target``; also reduction 'batchmean'."""
    if size_average is not None or reduce is not None:
        number = _Reduction.legacy_get_enum(size_average, reduce)
    else:
        if reduction == "mean":
            warnings.warn(
                "reduction: 'mean' divides the total loss by both the batch size and the support size."
                "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
                "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
                stacklevel=2,
            )
        number = _Reduction.get_enum("sum" if reduction == "batchmean" else reduction)
    loss = _f.kl_div(input, target, number, log_target=log_target)
    if reduction == "batchmean" and input.dim() != 0:
        loss = loss / input.size()[0]
    return loss


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy of logits ``input`` (N, C, ...) and classes (N, ...) or probabilities (N, C, ...) ``target``."""
    if size_average is not None or reduce is not None:
        reduction = _Reduction.legacy_get_string(size_average, reduce)
    return _f.cross_entropy_loss(input, target, weight, _Reduction.get_enum(reduction), ignore_index, label_smoothing)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Binary cross entropy of probabilities. Raises ValueError when the sizes differ."""
    number = _number(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is "
            "deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(torch.broadcast_shapes(target.size(), weight.size()))
    return _f.binary_cross_entropy(input, target, weight, number)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Binary cross entropy of logits. Raises ValueError when the sizes differ."""
    number = _number(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return _f.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


def _broadcast(input: Tensor, target: Tensor) -> list[Tensor]:
    """Both tensors in their common shape; a warning when they differ."""
    if target.size() != input.size():
        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). "
            "This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size.",
            stacklevel=3,
        )
    return torch.broadcast_tensors(input, target)


def _weighted(loss: Tensor, input: Tensor, weight: Tensor, reduction: str, by_weight: bool) -> Tensor:
    """``loss * weight``, reduced; the mean is over the elements or, ``by_weight``, over the sum of weights."""
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    if reduction == "none":
        return loss
    if reduction == "sum":
        return torch.sum(loss)
    if reduction == "mean":
        return torch.sum(loss) / torch.sum(weight) if by_weight else loss.mean()
    raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Squared error below ``beta``, absolute error above."""
    left, right = _broadcast(input, target)
    number = _number(size_average, reduce, reduction)
    return _f.l1_loss(left, right, number) if beta == 0.0 else _f.smooth_l1_loss(left, right, number, beta)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Squared error below ``delta``, absolute error times ``delta`` above."""
    left, right = _broadcast(input, target)
    if weight is None:
        return _f.huber_loss(left, right, _Reduction.get_enum(reduction), delta)
    return _weighted(_f.huber_loss(left, right, 0, delta), input, weight, reduction, by_weight=False)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The absolute error."""
    left, right = _broadcast(input, target)
    reduction = _name(size_average, reduce, reduction)
    if weight is None:
        return _f.l1_loss(left, right, _Reduction.get_enum(reduction))
    return _weighted(torch.abs(left - right), input, weight, reduction, by_weight=True)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared error."""
    left, right = _broadcast(input, target)
    reduction = _name(size_average, reduce, reduction)
    if weight is None:
        return _f.mse_loss(left, right, _Reduction.get_enum(reduction))
    return _weighted(torch.pow(left - right, 2), input, weight, reduction, by_weight=True)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, -target * (input1 - input2) + margin)``."""
    number = _number(size_average, reduce, reduction)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return _f.margin_ranking_loss(input1, input2, target, margin, number)


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``input`` where ``target`` is 1, ``max(0, margin - input)`` where it is -1."""
    return _f.hinge_embedding_loss(input, target, margin, _number(size_average, reduce, reduction))


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The hinge loss of several classes per sample; ``target`` (N, C) ends at its first -1."""
    return _f.multilabel_margin_loss(input, target, _number(size_average, reduce, reduction))


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``log(1 + exp(-target * input))``."""
    return _f.soft_margin_loss(input, target, _number(size_average, reduce, reduction))


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Binary cross entropy of logits, averaged over the classes (N, C)."""
    reduction = _name(size_average, reduce, reduction)
    loss = -(target * _f.log_sigmoid(input) + (1 - target) * _f.log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    dim = input.dim() - 1
    loss = loss.sum(dim=dim) / input.size(dim)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    return _reduce(loss, reduction)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``1 - cos`` where ``target`` is 1, ``max(0, cos - margin)`` where it is -1."""
    return _f.cosine_embedding_loss(input1, input2, target, margin, _number(size_average, reduce, reduction))


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The hinge loss of one class per sample, to the power ``p`` (1 or 2)."""
    number = _number(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return _f.multi_margin_loss(input, target, p, margin, weight, number)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` with p-norm distances."""
    number = _number(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return _f.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """The triplet margin loss with any distance (by default the pairwise one)."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    dims = anchor.ndim, positive.ndim, negative.ndim
    if len(set(dims)) != 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {dims[0]}D, positive {dims[1]}D, and negative {dims[2]}D inputs"
        )
    distance = _f.pairwise_distance if distance_function is None else distance_function
    to_positive = distance(anchor, positive)
    to_negative = distance(anchor, negative)
    if swap:
        to_negative = torch.minimum(to_negative, distance(positive, negative))
    return _reduce(torch.clamp_min(margin + to_positive - to_negative, 0), reduction)
