"""Attention and softmax of rows that are masked whole."""

from __future__ import annotations

import math
from typing import Any

from ...._dispatch import ops


def safe_softmax(out: Any, self: Any, dim: int, dtype: Any) -> Any:
    made = ops.softmax(self, dim, dtype)
    empty = ops.all(ops.eq(self, -math.inf), dim, True)
    return ops.masked_fill(made, empty, 0.0)


def _scores(query: Any, key: Any, is_causal: bool, attn_mask: Any, scale: float | None) -> Any:
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = ops.mul(ops.matmul(query, ops.transpose(key, -2, -1)), factor)
    if is_causal:
        rows, columns = scores.shape[-2:]
        ones = ops.ones((rows, columns), dtype=_bool(), device=query.device)
        scores = ops.masked_fill(scores, ops.logical_not(ops.tril(ones)), -math.inf)
    if attn_mask is not None:
        if attn_mask.dtype is _bool():
            scores = ops.masked_fill(scores, ops.logical_not(attn_mask), -math.inf)
        else:
            scores = ops.add(scores, attn_mask)
    return scores


def _bool() -> Any:
    from ...._dtype import DTYPES

    return DTYPES["bool"]


def attention(
    out: Any, query: Any, key: Any, value: Any, dropout_p: float, is_causal: bool, attn_mask: Any, scale: float | None
) -> tuple:
    """(result, logarithms of the sums): by products, as the mathematics says. Dropout never comes here: its mask could not be had again."""
    scores = _scores(query, key, is_causal, attn_mask, scale)
    total = ops.logsumexp(scores, -1)
    return ops.matmul(safe_softmax(None, scores, -1, None), value), total


def attention_backward(
    out: Any,
    grad_out: Any,
    query: Any,
    key: Any,
    value: Any,
    result: Any,
    logsumexp: Any,
    dropout_p: float,
    is_causal: bool,
    attn_mask: Any,
    scale: float | None,
) -> tuple:
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    weights = safe_softmax(None, _scores(query, key, is_causal, attn_mask, scale), -1, None)
    to_value = ops.matmul(ops.transpose(weights, -2, -1), grad_out)
    to_weights = ops.matmul(grad_out, ops.transpose(value, -2, -1))
    correction = ops.sum(ops.mul(grad_out, result), -1, True)
    to_scores = ops.mul(ops.mul(weights, ops.sub(to_weights, correction)), factor)
    return ops.matmul(to_scores, key), ops.matmul(ops.transpose(to_scores, -2, -1), query), to_value
