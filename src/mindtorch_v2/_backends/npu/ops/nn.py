"""Attention and softmax of rows that are masked whole."""

from __future__ import annotations

import math
from typing import Any

from ...._dispatch import ops
from ...._dtype import DTYPES
from ...._tensor import wrap
from .. import copies


def safe_softmax(out: Any, self: Any, dim: int, dtype: Any) -> Any:
    made = ops.softmax(self, dim, dtype)
    empty = ops.all(ops.eq(self, -math.inf), dim, True)
    return ops.masked_fill(made, empty, 0.0)


def _scores(query: Any, key: Any, is_causal: bool, attn_mask: Any, scale: float | None) -> Any:
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = ops.mul(ops.matmul(query, ops.transpose(key, -2, -1)), factor)
    if is_causal:
        rows, columns = scores.shape[-2:]
        ones = ops.ones((rows, columns), dtype=DTYPES["bool"], device=query.device)
        scores = ops.masked_fill(scores, ops.logical_not(ops.tril(ones)), -math.inf)
    if attn_mask is not None:
        if attn_mask.dtype is DTYPES["bool"]:
            scores = ops.masked_fill(scores, ops.logical_not(attn_mask), -math.inf)
        else:
            scores = ops.add(scores, attn_mask)
    return scores


def attention(
    out: Any, query: Any, key: Any, value: Any, dropout_p: float, is_causal: bool, attn_mask: Any, scale: float | None
) -> tuple:
    """(result, logarithms of the sums): by products, as the mathematics says. Dropout never comes here: its mask could not be had again."""
    kind = query.dtype
    if kind.itemsize < 4:  # the sums are float32
        query, key, value = (ops._to_copy(t, dtype=DTYPES["float32"]) for t in (query, key, value))
    scores = _scores(query, key, is_causal, attn_mask, scale)
    total = ops.logsumexp(scores, -1)
    total = ops.masked_fill(total, ops.eq(total, -math.inf), 0.0)  # of a row that is masked whole
    made = ops.matmul(safe_softmax(None, scores, -1, None), value)
    return made if made.dtype is kind else ops._to_copy(made, dtype=kind), total


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
    kind = query.dtype
    if kind.itemsize < 4:
        float32 = DTYPES["float32"]
        query, key, value, grad_out, result = (
            ops._to_copy(t, dtype=float32) for t in (query, key, value, grad_out, result)
        )
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = _scores(query, key, is_causal, attn_mask, scale)
    weights = ops.exp(ops.sub(scores, ops.unsqueeze(logsumexp, -1)))
    to_value = ops.matmul(ops.transpose(weights, -2, -1), grad_out)
    to_weights = ops.matmul(grad_out, ops.transpose(value, -2, -1))
    correction = ops.sum(ops.mul(grad_out, result), -1, True)
    to_scores = ops.mul(ops.mul(weights, ops.sub(to_weights, correction)), factor)
    found = ops.matmul(to_scores, key), ops.matmul(ops.transpose(to_scores, -2, -1), query), to_value
    return found if kind is query.dtype else tuple(ops._to_copy(t, dtype=kind) for t in found)


def embedding_renorm_(out: Any, self: Any, indices: Any, max_norm: float, norm_type: float) -> None:
    """Rows that are looked up, and longer than they may be, shrink. The host waits for how many there are."""
    target = out[0]
    if target is not self._payload:
        copies.copy_on_device(target, self._payload)
    if not indices.numel():
        return
    whole = wrap(target, self.dtype)
    rows = ops._unique2(ops.reshape(indices, (-1,)))[0]
    chosen = ops.index_select(whole, 0, rows)
    norms = ops.linalg_vector_norm(chosen, norm_type, [1], True)
    factor = ops.where(ops.gt(norms, max_norm), ops.div(max_norm, ops.add(norms, 1e-7)), ops.ones_like(norms))
    ops.index_copy_(whole, 0, ops._to_copy(rows, dtype=DTYPES["int64"]), ops.mul(chosen, factor))
