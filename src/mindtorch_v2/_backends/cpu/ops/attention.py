"""Scaled dot product attention, a block of heads and query rows at a time, so that the scores stay in the cache.

Note [Layout of attention]: the output has query's memory order, the gradients that of (batch, length, heads, width), as PyTorch's CPU kernels lay
them out; the following `transpose(1, 2).reshape(...)` is then a view. All products are strided BLAS calls without copies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy import ndarray

from ...._dispatch import native
from .view import FEW

_BLOCK = 1 << 17
"""Scores that are computed at a time."""


def _blocks(batch: int, heads: int, queries: int, keys: int) -> Iterator[tuple[int, slice, slice]]:
    rows = min(max(_BLOCK // max(keys, 1), 16), max(queries, 1))
    group = max(_BLOCK // max(rows * keys, 1), 1)
    for b in range(batch):
        for h in range(0, heads, group):
            for r in range(0, queries, rows):
                yield b, slice(h, min(h + group, heads)), slice(r, min(r + rows, queries))


class _Scores:
    """The masked and scaled scores of a block."""

    def __init__(self, query: ndarray, key: ndarray, is_causal: bool, attn_mask: ndarray | None, scale: float | None):
        batch, heads, queries, width = query.shape
        keys = key.shape[2]
        self.query, self.key = query, key
        self.is_causal = is_causal
        self.scale = query.dtype.type(1 / math.sqrt(width) if scale is None else scale)
        self.mask = None
        if attn_mask is not None:
            if attn_mask.dtype.kind != "b" and attn_mask.dtype != query.dtype:
                attn_mask = attn_mask.astype(query.dtype)
            self.mask = np.broadcast_to(attn_mask, (batch, heads, queries, keys))
        self.columns = np.arange(keys)

    def __call__(self, b: int, heads: slice, rows: slice) -> tuple[ndarray, slice]:
        """(scores of the block, the keys that they reach): causal attention leaves out what lies behind the last row."""
        keys = slice(0, min(rows.stop, self.key.shape[2])) if self.is_causal else slice(0, self.key.shape[2])
        scores = np.matmul(self.query[b, heads, rows], self.key[b, heads, keys].swapaxes(-1, -2))
        scores *= self.scale
        if self.mask is not None:
            mask = self.mask[b, heads, rows, keys]
            if mask.dtype.kind == "b":
                np.copyto(scores, -np.inf, where=~mask)
            else:
                scores += mask
        if self.is_causal:
            late = self.columns[keys] > np.arange(rows.start, rows.stop)[:, None]
            np.copyto(scores, -np.inf, where=late)
        return scores, keys


@native.kernel
def flash_attention(
    query: ndarray,
    key: ndarray,
    value: ndarray,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    attn_mask: ndarray | None = None,
    scale: float | None = None,
) -> tuple[ndarray, ndarray]:
    """(attention, logsumexp); a query that may see no key gets zeros."""
    batch, heads, queries, _ = query.shape
    out = np.empty_like(query)  # in query's memory order
    if attn_mask is None and not is_causal and 0 < batch * heads * queries * key.shape[2] <= FEW:
        scores = np.matmul(query, key.swapaxes(-1, -2))
        scores *= query.dtype.type(1 / math.sqrt(query.shape[3]) if scale is None else scale)
        top = np.maximum.reduce(scores, -1, None, None, True)
        scores -= top
        total = np.add.reduce(np.exp(scores, scores), -1, None, None, True)
        np.divide(np.matmul(scores, value, out), total, out)
        return out, np.add(np.log(total, total), top, total)[..., 0]
    logsumexp = np.empty((batch, heads, queries), query.dtype)
    scores_of = _Scores(query, key, is_causal, attn_mask, scale)
    for b, h, r in _blocks(batch, heads, queries, key.shape[2]):
        scores, keys = scores_of(b, h, r)
        top = np.maximum.reduce(scores, axis=-1, keepdims=True, initial=-np.inf)
        if scores_of.mask is not None:
            np.copyto(top, 0, where=np.isneginf(top))
        scores -= top
        np.exp(scores, out=scores)
        total = np.add.reduce(scores, axis=-1, keepdims=True)
        target = out[b, h, r]
        np.matmul(scores, value[b, h, keys], out=target)
        if scores_of.mask is not None:
            np.copyto(total, 1, where=total == 0)
        target /= total
        np.log(total, out=total)
        total += top
        logsumexp[b, h, r] = total[..., 0]
    return out, logsumexp


@native.kernel
def flash_attention_backward(
    grad_out: ndarray,
    query: ndarray,
    key: ndarray,
    value: ndarray,
    out: ndarray,
    logsumexp: ndarray,
    dropout_p: float,
    is_causal: bool,
    attn_mask: ndarray | None = None,
    scale: float | None = None,
) -> tuple[ndarray, ndarray, ndarray]:
    batch, heads, queries, _ = query.shape
    grads = [
        make((x.shape[0], x.shape[2], x.shape[1], x.shape[3]), x.dtype).transpose(0, 2, 1, 3)
        for make, x in ((np.empty, query), (np.zeros, key), (np.zeros, value))
    ]
    grad_query, grad_key, grad_value = grads
    scores_of = _Scores(query, key, is_causal, attn_mask, scale)
    for b, h, r in _blocks(batch, heads, queries, key.shape[2]):
        weights, keys = scores_of(b, h, r)
        weights -= logsumexp[b, h, r, None]
        np.exp(weights, out=weights)
        upper = grad_out[b, h, r]
        grad_value[b, h, keys] += np.matmul(weights.swapaxes(-1, -2), upper)
        inner = np.matmul(upper, value[b, h, keys].swapaxes(-1, -2))
        inner -= np.einsum("hrw,hrw->hr", upper, out[b, h, r])[..., None]
        weights *= inner
        weights *= scores_of.scale
        np.matmul(weights, key[b, h, keys], out=grad_query[b, h, r])
        grad_key[b, h, keys] += np.matmul(weights.swapaxes(-1, -2), query[b, h, r])
    return grad_query, grad_key, grad_value
