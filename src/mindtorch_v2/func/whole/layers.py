"""Embeddings, normalisation and attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._dispatch import ops
from ..._tensor import Tensor
from ..batched import Level, line_up
from ..kinds import front

__all__ = [
    "attended",
    "batch_normed",
    "embedded",
    "embedded_back",
    "group_normed",
    "layer_normed",
    "root_normed",
    "statistics_of_layers",
]


def embedded(level: Level, weight: Any, indices: Any, padding_idx: int, scale: bool, sparse: bool) -> Any:
    """The rows of a table at the indices; of a table of each example, all tables are one."""
    if weight.dim() != 2:
        return None
    if not level(weight):
        return level.wrap(ops.embedding(weight, indices._value, padding_idx, scale, sparse))
    tables = weight._value
    count, rows = tables.shape[:2]
    if padding_idx >= 0 or scale or sparse:
        return None
    return level.wrap(ops.embedding(tables.flatten(0, 1), _in_one(level, indices, count, rows)))


def embedded_back(level: Level, grad: Any, indices: Any, rows: int, padding_idx: int, scale: bool) -> Any:
    """The gradient of a table."""
    if padding_idx >= 0 or scale:
        return None
    count = (grad if level(grad) else indices)._value.shape[0]
    places = _in_one(level, indices, count, rows)
    made = ops.embedding_dense_backward(front(level, grad, count), places, count * rows, -1, False)
    return level.wrap(made.unflatten(0, (count, rows)))


def _in_one(level: Level, indices: Tensor, count: int, rows: int) -> Tensor:
    """Indices of each example's table in a table of all."""
    starts = ops.arange(0, count * rows, rows, dtype=indices.dtype, device=indices.device)
    return front(level, indices, count) + starts.reshape((count, *([1] * indices.dim())))


def layer_normed(
    level: Level, input: Tensor, shape: Sequence[int], weight: Any, bias: Any, eps: float, cudnn_enable: bool = True
) -> Any:
    """Examples without mean and of variance 1, times weight, plus bias."""
    if level(input) and not level(weight) and not level(bias):
        return level.wrap(ops.layer_norm(input._value, shape, weight, bias, eps))
    if not all(t is None or list(t.shape) == list(shape) for t in (weight, bias)):
        return None
    return _scaled(ops.layer_norm(input, shape, None, None, eps), weight, bias)


def statistics_of_layers(level: Level, input: Tensor, shape: Sequence[int], weight: Any, bias: Any, eps: float) -> Any:
    """(`layer_normed`, means, reciprocal deviations)."""
    if level(input) and not level(weight) and not level(bias):
        return tuple(map(level.wrap, ops.native_layer_norm(input._value, shape, weight, bias, eps)))
    if not all(t is None or list(t.shape) == list(shape) for t in (weight, bias)):
        return None
    made, mean, scale = ops.native_layer_norm(input, shape, None, None, eps)
    return _scaled(made, weight, bias), mean, scale


def root_normed(level: Level, input: Tensor, shape: Sequence[int], weight: Any, eps: float | None) -> Any:
    """Examples of mean square 1, times weight."""
    if level(input) and not level(weight):
        return level.wrap(ops.rms_norm(input._value, shape, weight, eps))
    if weight is not None and list(weight.shape) != list(shape):
        return None
    return _scaled(ops.rms_norm(input, shape, None, eps), weight, None)


def _scaled(made: Tensor, weight: Any, bias: Any) -> Tensor:
    made = made if weight is None else made * weight
    return made if bias is None else made + bias


def group_normed(
    level: Level, input: Tensor, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float
) -> Any:
    """(groups of channels without mean and of variance 1, means, reciprocal deviations)."""
    if not N:
        return None
    if not level(input):
        made, mean, scale = ops.native_group_norm(input, None, None, N, C, HxW, group, eps)
    else:
        count = input._value.shape[0]
        found = ops.native_group_norm(input._value.flatten(0, 1), None, None, count * N, C, HxW, group, eps)
        made, mean, scale = (level.wrap(t.unflatten(0, (count, N))) for t in found)
    shape = (C, *([1] * (input.dim() - 2)))
    parts = [None if t is None else t.reshape(shape) for t in (weight, bias)]
    return _scaled(made, *parts), mean, scale


def batch_normed(
    level: Level,
    input: Tensor,
    weight: Any,
    bias: Any,
    mean: Any,
    variance: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    """(channels without mean and of variance 1, means, reciprocal deviations), where each example's channels stand for channels of their own.

    RuntimeError where all examples would write to the same statistics.
    """
    if training and any(t is not None and not level(t) for t in (mean, variance)):
        raise RuntimeError(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in place, were not "
            "batched.\nIf you are using a module and do not need eval mode, please set `track_running_stats` to be False.\nIf you are using a "
            "prebuilt module and do not need eval mode, please see the functorch website for resources on how to patch your module to work "
            "with vmap"
        )
    if input.dim() < 2 or not all(t is None or not level(t) or t._value.is_contiguous() for t in (mean, variance)):
        return None
    tensors = [t for t in (input, weight, bias, mean, variance) if t is not None]
    count = next(t for t in tensors if level(t))._value.shape[0]
    channels = input.shape[1]

    def flat(tensor: Any) -> Any:
        return None if tensor is None else front(level, tensor, count).reshape((count * channels,))

    examples = front(level, input, count).movedim(0, 1).flatten(1, 2)
    own = map(flat, (weight, bias, mean, variance))
    made, means, scales = ops.native_batch_norm(examples, *own, training, momentum, eps)
    apart = made.unflatten(1, (count, channels)).movedim(1, 0)
    return level.wrap(apart), *(level.wrap(t.reshape((count, -1))) for t in (means, scales))


def attended(
    level: Level, query: Any, key: Any, value: Any, dropout_p: float, is_causal: bool, attn_mask: Any, scale: Any
) -> Any:
    """(attention, the logarithms of its sums)."""
    if any(t.dim() != 4 for t in (query, key, value)) or not query.shape[0]:
        return None
    given = [query, key, value, *([] if attn_mask is None else [attn_mask])]
    count, own = next(t for t in given if level(t))._value.shape[0], query.shape[0]
    folded = [front(level, t, count).flatten(0, 1) for t in (query, key, value)]
    if attn_mask is not None and level(attn_mask):
        mask = line_up(attn_mask, level, 4)
        attn_mask = mask.expand((count, own, *mask.shape[2:])).flatten(0, 1)
    elif attn_mask is not None and attn_mask.dim() == 4 and attn_mask.shape[0] != 1:
        attn_mask = attn_mask.expand((count, *attn_mask.shape)).flatten(0, 1)
    made = ops._scaled_dot_product_flash_attention_for_cpu(
        *folded, dropout_p, is_causal, attn_mask=attn_mask, scale=scale
    )
    return tuple(level.wrap(t.unflatten(0, (count, own))) for t in made)
