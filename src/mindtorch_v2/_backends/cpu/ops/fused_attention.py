"""References of torch_npu's fused attention; see Note [Layouts of attention] in `_rules/fused_attention.py`.

A masked score is the number MASKED, so that a row of nothing else gives all keys the same weight; with invalid rows on (inner_precise 2, or
sparse mode 3 with more queries than keys) such a row is zero, and its sum infinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from ...._rules.fused_attention import COMPRESSED, PLACES, lengths_of, modes_of

MASKED = -(2.0**127)  # exact in float32, in which the largest scores are kept


def _by_heads(x: ndarray, layout: str, heads: int) -> ndarray:
    """[B, N, S, D] over the same memory, where its strides allow."""
    batch, at, length, last = PLACES[layout]
    if at is None:
        x = x.reshape(*x.shape[:2], heads, x.shape[2] // heads)
        at, last = 2, 3
    return x.transpose(batch, at, length, last)


def _as_layout(x: ndarray, layout: str) -> ndarray:
    """The reverse of `_by_heads`."""
    batch, at, length, last = PLACES[layout]
    if at is not None:
        return x.transpose(*np.argsort((batch, at, length, last)))
    x = x.transpose(0, 2, 1, 3) if layout == "BSH" else x.transpose(2, 0, 1, 3)
    return x.reshape(*x.shape[:2], x.shape[2] * x.shape[3])


class _Given(NamedTuple):
    """Operands by heads, those of key and value repeated for each head of the query."""

    query: ndarray
    key: ndarray
    value: ndarray
    group: int
    shown: ndarray | None
    scores: ndarray


def _numbers(values: Sequence[int] | None, count: int, default: int) -> ndarray:
    if not values:
        return np.full(count, default)
    return np.resize(np.asarray(values if len(values) > 1 else [values[0]] * count), count)


def _shown(
    shape: tuple[int, ...],
    mask: ndarray | None,
    sparse_mode: int,
    before: int,
    after: int,
    prefix: Sequence[int] | None,
    lengths: ndarray,
    query_lengths: ndarray,
) -> ndarray | None:
    """Which keys a query may see [B, N, S, S]; None for all."""
    batch, _, queries, keys = shape
    rows, columns = np.arange(queries)[:, None], np.arange(keys)[None, :]
    shifted = rows + (lengths - query_lengths)[:, None, None, None]
    seen = np.broadcast_to(columns < lengths[:, None, None, None], (batch, 1, queries, keys))
    if mask is None:
        return None if bool(seen.all()) else np.broadcast_to(seen, shape)
    if sparse_mode not in COMPRESSED and sparse_mode != 6:
        lead = mask[:, None] if mask.ndim == 3 else mask
        seen = seen & (np.broadcast_to(lead, shape) == 0)
    if sparse_mode == 0:
        seen = seen & (columns - rows <= after) & (rows - columns <= before)
    elif sparse_mode == 2:
        seen = seen & (columns <= rows)
    elif sparse_mode == 3:
        seen = seen & (columns <= shifted)
    elif sparse_mode == 4:
        seen = seen & (columns - shifted <= after) & (shifted - columns <= before)
    elif sparse_mode == 6:
        wide = _numbers(prefix, batch, 0)[:, None, None, None]
        seen = seen & ((columns <= shifted) | (columns < wide))
    return np.broadcast_to(seen, shape)


def _given(
    query: ndarray,
    key: ndarray,
    value: ndarray,
    heads: int,
    layout: str,
    pse: ndarray | None,
    mask: ndarray | None,
    prefix: Sequence[int] | None,
    scale: float,
    window: tuple[int, int],
    sparse_mode: int,
    pse_first: bool,
    lengths: Sequence[int] | None = None,
    query_lengths: Sequence[int] | None = None,
) -> _Given:
    q = _by_heads(query, layout, heads)
    last = PLACES[layout][1] is None
    kv_heads = key.shape[-1] // q.shape[3] if last else key.shape[PLACES[layout][1] or 0]
    k, v = _by_heads(key, layout, kv_heads), _by_heads(value, layout, kv_heads)
    group = heads // kv_heads
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scores = np.matmul(q, k.swapaxes(-1, -2))
    if pse is not None and pse_first:
        scores = scores + pse.astype(scores.dtype)
    scores = scores * scale
    if pse is not None and not pse_first:
        scores = scores + pse.astype(scores.dtype)
    batch, _, queries, keys = scores.shape
    shown = _shown(
        scores.shape,
        mask,
        sparse_mode,
        *window,
        prefix,
        _numbers(lengths, batch, keys),
        _numbers(query_lengths, batch, queries),
    )
    if shown is not None:
        scores = np.where(shown, scores, scores.dtype.type(MASKED))
    return _Given(q, k, v, group, shown, scores)


def _kept(drop_mask: ndarray | None, shape: tuple[int, ...], keep_prob: float) -> ndarray | float:
    if drop_mask is None:
        return 1.0
    bits = np.unpackbits(drop_mask.reshape(-1), bitorder="little")
    return bits[: int(np.prod(shape))].reshape(shape) / keep_prob


def _statistics(given: _Given, invalid: bool) -> tuple[ndarray, ndarray, ndarray]:
    """(largest scores, sums, weights)."""
    top = given.scores.max(-1, keepdims=True)
    raised = np.exp(given.scores - top)
    total = raised.sum(-1, keepdims=True)
    if invalid and given.shown is not None:
        total = np.where(given.shown.any(-1, keepdims=True), total, np.inf).astype(total.dtype)
    return top, total, raised / total


def attention(
    query: ndarray,
    key: ndarray,
    value: ndarray,
    head_num: int,
    input_layout: str,
    pse: ndarray | None,
    drop_mask: ndarray | None,
    atten_mask: ndarray | None,
    prefix: Sequence[int] | None,
    scale: float,
    keep_prob: float,
    modes: Sequence[int],
) -> tuple[ndarray, ndarray, ndarray]:
    """(attention, the largest score and the sum of each row, eight times)."""
    before, after, inner_precise, sparse_mode, pse_type = modes
    window = before, after
    given = _given(
        query, key, value, head_num, input_layout, pse, atten_mask, prefix, scale, window, sparse_mode, pse_type == 1
    )
    top, total, weights = _statistics(given, _invalid(given, inner_precise, sparse_mode))
    weights = weights * _kept(drop_mask, weights.shape, keep_prob)
    made = np.matmul(weights.astype(query.dtype), given.value)
    kind = np.float64 if query.dtype == np.float64 else np.float32
    return _as_layout(made, input_layout), *(np.repeat(x, 8, -1).astype(kind) for x in (top, total))


def _invalid(given: _Given, inner_precise: int, sparse_mode: int) -> bool:
    return inner_precise == 2 or (sparse_mode == 3 and given.scores.shape[2] > given.scores.shape[3])


def attention_backward(
    grad: ndarray,
    query: ndarray,
    key: ndarray,
    value: ndarray,
    head_num: int,
    input_layout: str,
    pse: ndarray | None,
    drop_mask: ndarray | None,
    atten_mask: ndarray | None,
    softmax_max: ndarray,
    softmax_sum: ndarray,
    attention: ndarray,
    prefix: Sequence[int] | None,
    scale: float,
    keep_prob: float,
    modes: Sequence[int],
) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    """The gradients of query, key, value and pse."""
    before, after, _, sparse_mode, pse_type = modes
    window = before, after
    given = _given(
        query, key, value, head_num, input_layout, pse, atten_mask, prefix, scale, window, sparse_mode, pse_type == 1
    )
    above, result = (_by_heads(x.astype(query.dtype), input_layout, head_num) for x in (grad, attention))
    weights = np.exp(given.scores - softmax_max[..., :1].astype(query.dtype)) / softmax_sum[..., :1].astype(query.dtype)
    kept = _kept(drop_mask, weights.shape, keep_prob)
    to_value = np.matmul((weights * kept).swapaxes(-1, -2).astype(query.dtype), above)
    slopes = np.matmul(above, given.value.swapaxes(-1, -2)) * kept
    to_scores = weights * (slopes - np.sum(above * result, -1, keepdims=True))
    if given.shown is not None:
        to_scores = np.where(given.shown, to_scores, 0)
    to_query = np.matmul(to_scores, given.key) * scale
    to_key = np.matmul(to_scores.swapaxes(-1, -2), given.query) * scale
    found = [_as_layout(to_query, input_layout)]
    found += [_as_layout(_by_group(x, given.group), input_layout) for x in (to_key, to_value)]
    if pse is None:
        return found[0], found[1], found[2], np.zeros(0, query.dtype)
    shift = to_scores * (scale if pse_type == 1 else 1)
    over = tuple(d for d, n in enumerate(pse.shape) if n == 1 and shift.shape[d] != 1)
    return found[0], found[1], found[2], shift.sum(over, keepdims=True) if over else shift


def _by_group(x: ndarray, group: int) -> ndarray:
    batch, heads, length, width = x.shape
    return x.reshape(batch, heads // group, group, length, width).sum(2)


def infer_attention(
    query: ndarray,
    key: ndarray,
    value: ndarray,
    pse_shift: ndarray | None,
    atten_mask: ndarray | None,
    actual_seq_lengths: Sequence[int] | None,
    actual_seq_lengths_kv: Sequence[int] | None,
    num_heads: int,
    scale: float,
    pre_tokens: int,
    next_tokens: int,
    input_layout: str,
    num_key_value_heads: int,
    sparse_mode: int,
    inner_precise: int,
    softmax_lse_flag: bool,
) -> tuple[ndarray, ndarray]:
    """(attention, the logarithm of each row's sum); rows beyond the actual length are zero."""
    input_layout, _, turned = input_layout.partition("_")
    given = _given(
        query, key, value, num_heads, input_layout, pse_shift, atten_mask, None, scale, (pre_tokens, next_tokens), sparse_mode,
        False, actual_seq_lengths_kv, actual_seq_lengths,
    )  # fmt: skip
    top, total, weights = _statistics(given, True)
    made: Any = np.matmul(weights, given.value)
    lse = np.where(np.isinf(total), np.inf, top + np.log(total))
    if actual_seq_lengths:
        batch, _, queries, _ = made.shape
        real = np.arange(queries)[None, :, None] < _numbers(actual_seq_lengths, batch, queries)[:, None, None]
        made, lse = np.where(real[:, None], made, 0), np.where(real[:, None], lse, np.inf)
    kind = np.float64 if query.dtype == np.float64 else np.float32
    return _as_layout(made, turned or input_layout), (lse if softmax_lse_flag else np.zeros(1)).astype(kind)


# Sequences of variable lengths: one after the other, each a batch of its own


def _sequences(q_ends: Sequence[int], k_ends: Sequence[int]) -> Any:
    """(number, queries, keys) of the sequences that have queries, as slices."""
    queries, keys = lengths_of(q_ends), lengths_of(k_ends)
    for number, (q, k) in enumerate(zip(queries, keys, strict=True)):
        if q:
            yield number, slice(q_ends[number] - q, q_ends[number]), slice(k_ends[number] - k, k_ends[number])


def _modes(modes: Sequence[int], q_ends: Sequence[int], k_ends: Sequence[int]) -> list[list[int]]:
    """The modes of each sequence."""
    return [[*modes[:3], kind, *modes[4:]] for kind in modes_of(modes[3], q_ends, k_ends)]


def _of_sequence(mask: ndarray | None, number: int, queries: slice, keys: slice, sparse_mode: int) -> ndarray | None:
    """The part of a mask for all lengths that a sequence sees."""
    if mask is None or sparse_mode in COMPRESSED or sparse_mode == 6:
        return mask
    if mask.ndim > 2 and mask.shape[0] > 1:
        mask = mask[number : number + 1]
    return mask[..., : queries.stop - queries.start, : keys.stop - keys.start]


def _bits(drop_mask: ndarray | None, heads: int, q_ends: Sequence[int], k_ends: Sequence[int]) -> list[Any]:
    """The drop mask of each sequence: its bits are behind those of the sequences before it."""
    sizes = [heads * q * k for q, k in zip(lengths_of(q_ends), lengths_of(k_ends), strict=True)]
    if drop_mask is None:
        return [None] * len(sizes)
    bits = np.unpackbits(drop_mask.reshape(-1), bitorder="little")
    at = np.concatenate(([0], np.cumsum(sizes)))
    return [np.packbits(bits[a:b], bitorder="little") for a, b in zip(at[:-1], at[1:], strict=True)]


def attention_varlen(
    query: ndarray,
    key: ndarray,
    value: ndarray,
    head_num: int,
    q_ends: Sequence[int],
    k_ends: Sequence[int],
    drop_mask: ndarray | None,
    atten_mask: ndarray | None,
    prefix: Sequence[int] | None,
    scale: float,
    keep_prob: float,
    modes: Sequence[int],
) -> tuple[ndarray, ndarray, ndarray]:
    """(attention, the largest score and the sum of each row, eight times), sequence by sequence."""
    kind = np.float64 if query.dtype == np.float64 else np.float32
    total = query.shape[0]
    made = np.zeros((total, head_num, value.shape[2]), query.dtype)
    tops, sums = np.zeros((total, head_num, 8), kind), np.zeros((total, head_num, 8), kind)
    drops, kinds = _bits(drop_mask, head_num, q_ends, k_ends), _modes(modes, q_ends, k_ends)
    for number, q, k in _sequences(q_ends, k_ends):
        mask = _of_sequence(atten_mask, number, q, k, modes[3])
        wide = None if not prefix else [prefix[number]]
        given = query[q][None], key[k][None], value[k][None]
        more = scale, keep_prob, kinds[number]
        one, top, summed = attention(*given, head_num, "BSND", None, drops[number], mask, wide, *more)
        made[q], tops[q], sums[q] = one[0], top[0].swapaxes(0, 1), summed[0].swapaxes(0, 1)
    return made, tops, sums


def attention_varlen_backward(
    grad: ndarray,
    query: ndarray,
    key: ndarray,
    value: ndarray,
    head_num: int,
    q_ends: Sequence[int],
    k_ends: Sequence[int],
    drop_mask: ndarray | None,
    atten_mask: ndarray | None,
    softmax_max: ndarray,
    softmax_sum: ndarray,
    attention: ndarray,
    prefix: Sequence[int] | None,
    scale: float,
    keep_prob: float,
    modes: Sequence[int],
) -> tuple[ndarray, ndarray, ndarray]:
    """The gradients of query, key and value."""
    found = np.zeros_like(query), np.zeros_like(key), np.zeros_like(value)
    drops, kinds = _bits(drop_mask, head_num, q_ends, k_ends), _modes(modes, q_ends, k_ends)
    for number, q, k in _sequences(q_ends, k_ends):
        mask = _of_sequence(atten_mask, number, q, k, modes[3])
        wide = None if not prefix else [prefix[number]]
        given = grad[q][None], query[q][None], key[k][None], value[k][None]
        kept = *(x[q].swapaxes(0, 1)[None] for x in (softmax_max, softmax_sum)), attention[q][None]
        parts = attention_backward(
            *given, head_num, "BSND", None, drops[number], mask, *kept, wide, scale, keep_prob, kinds[number]
        )
        found[0][q], found[1][k], found[2][k] = parts[0][0], parts[1][0], parts[2][0]
    return found
