"""Embedding look-ups and the linear layer fused with cross entropy."""

from __future__ import annotations

import warnings
from math import prod
from typing import Any

import mindtorch_v2 as torch

from ..._generated import functions as _f
from ..._tensor import Tensor
from .loss import cross_entropy


def _no_grad_embedding_renorm_(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    with torch.no_grad():
        _f.embedding_renorm_(weight, input, max_norm, norm_type)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of ``weight`` (num, dim) at the integers ``input`` (*): a tensor (*, dim).

    The row ``padding_idx`` gets no gradient. Raises AssertionError for one out of range.
    """
    if padding_idx is None:
        padding_idx = -1
    else:
        rows = weight.size(0)
        if not -rows <= padding_idx < max(rows, 1):
            raise AssertionError("Padding_idx must be within num_embeddings")
        if padding_idx < 0:
            padding_idx += rows
    if max_norm is not None:
        input = input.contiguous()
        _no_grad_embedding_renorm_(weight, input, max_norm, norm_type)
    return _f.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sums, means or maxima of bags of rows of ``weight``: bags are rows of a 2-D ``input``, or begin at ``offsets``."""
    if weight.dtype == torch.long and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        weight, input = input, weight
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
            f"same shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        starts = torch.arange(0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
        include_last_offset = False
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
        starts = offsets
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if max_norm is not None:
        _no_grad_embedding_renorm_(weight, input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}'). Please open a feature request on GitHub."
        )
    if include_last_offset:
        starts = starts[:-1]
    if padding_idx is not None:
        padding_idx = _within(padding_idx, weight.size(0))
    _check_bag_arguments(input, weight, per_sample_weights)
    rows = _f.embedding(weight, input, -1 if padding_idx is None else padding_idx, scale_grad_by_freq, sparse)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    if starts.is_meta:  # where the bags begin is data: any will do, for the shape and the history
        return rows.sum(0).expand(starts.numel(), rows.size(1)).clone()
    return _reduce_bags(rows, starts.tolist(), None if padding_idx is None else input != padding_idx, mode)


def _within(padding_idx: int, count: int) -> int:
    if not -count <= padding_idx < count:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, -{count} through {count - 1}, but got {padding_idx}"
        )
    return padding_idx % count


def _check_bag_arguments(input: Tensor, weight: Tensor, per_sample_weights: Tensor | None) -> None:
    """RuntimeError for wrong dtypes, and for the first index that is no row of ``weight``."""
    where = "(while checking arguments for embedding_bag)"
    if input.dtype not in (torch.int32, torch.int64):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{input.type()} instead {where}"
        )
    if per_sample_weights is not None and per_sample_weights.dtype is not weight.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 'per_sample_weights'; but type "
            f"{weight.type()} does not equal {per_sample_weights.type()} {where}"
        )
    if input.is_meta or not input.numel():
        return
    outside = ((input < 0) | (input >= weight.size(0))).nonzero()
    if outside.numel():
        place = int(outside[0].item())
        raise RuntimeError(
            f"Index {place} of input takes value {int(input[place].item())} which is not in the valid range [0, {weight.size(0)})"
        )


def _reduce_bags(rows: Tensor, starts: list[int], counted: Tensor | None, mode: str) -> Tensor:
    """The sums, means or maxima of ``rows`` from each of ``starts`` to the next; rows that are not ``counted`` are left out."""
    total = rows.size(0)
    if starts and starts[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
            f"However, got {starts[0]}"
        )
    if starts and starts[-1] > total:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {total} but got offsets[-1] of {starts[-1]}"
        )
    ends = [*starts[1:], total] if starts else []
    if mode == "max":
        bags = []
        for start, end in zip(starts, ends, strict=True):
            bag = rows[start:end] if counted is None else rows[start:end][counted[start:end]]
            bags.append(bag.max(0).values if bag.size(0) else bag.sum(0))
        return torch.stack(bags) if bags else rows.new_zeros((0, rows.size(1)))
    sizes = [end - start for start, end in zip(starts, ends, strict=True)]
    owner = torch.arange(len(sizes), device=rows.device).repeat_interleave(torch.tensor(sizes, device=rows.device))
    if counted is not None:
        rows, owner = rows[counted], owner[counted]
    sums = rows.new_zeros((len(sizes), rows.size(1))).index_add(0, owner, rows)
    if mode == "sum":
        return sums
    counts = rows.new_zeros(len(sizes)).index_add(0, owner, rows.new_ones(rows.size(0)))
    return sums / counts.clamp_min(1).unsqueeze(1)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """Cross entropy of ``linear(input, linear_weight, linear_bias)``; ``options`` (chunking) do not change the value."""
    if not 1 <= input.dim() <= 2:
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    batches, in_features = input.shape[:-1], input.shape[-1]
    if in_features != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{in_features} and {linear_weight.shape[-1]}, respectively"
        )
    outputs = linear_weight.shape[:-1]
    if linear_bias is not None and linear_bias.shape != outputs:
        raise RuntimeError(f"expected linear_bias shape {tuple(outputs)}, got {tuple(linear_bias.shape)}")
    if len(outputs) > 1 and not batches:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {in_features}), got unbatched input with shape {tuple(input.shape)}"
        )
    logits_shape = (*batches, *outputs)
    if target.shape == logits_shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    if len(outputs) > 1:
        linear_weight = linear_weight.reshape(prod(outputs), in_features)
        if linear_bias is not None:
            linear_bias = linear_bias.reshape(prod(outputs))
    logits = _f.linear(input, linear_weight, linear_bias).reshape(logits_shape)
    return cross_entropy(
        logits,
        target,
        weight=weight,
        reduction=reduction,
        ignore_index=-100 if ignore_index is None else ignore_index,
        label_smoothing=label_smoothing,
    )
