"""Rules of torch_npu's fused attention, whose layouts say where batches, heads, positions and widths are.

Note [Layouts of attention]
BSH, SBH, BSND and BNSD, of B batches, S positions, N heads and widths D; H is N * D. TND has the positions of all sequences behind each other, of any lengths: numbers say where each ends. Key and value may have fewer heads, each of which serves several of the query's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import _dtype as _d
from ._common import shape_text
from .fused import check_fused, require, wide
from .spec import Spec, rule

PLACES = {"BSH": (0, None, 1, 2), "SBH": (1, None, 0, 2), "BSND": (0, 2, 1, 3), "BNSD": (0, 1, 2, 3)}
"""Where a layout has batches, heads (None: in the last dimension), positions and widths."""
COMPRESSED = (2, 3, 4, 7, 8)
"""Sparse modes whose mask is one of 2048 x 2048 for all lengths."""


class Sizes(NamedTuple):
    """The sizes of an operand of attention."""

    batch: int
    heads: int
    length: int
    width: int


def sizes(name: str, word: str, tensor: Any, layout: str, heads: int | None = None, width: int | None = None) -> Sizes:
    """The sizes of a tensor in a layout; heads or else width are given where one dimension holds both. RuntimeError."""
    if layout not in PLACES:
        raise RuntimeError(f"The input_layout should be BSH/SBH/BNSD/BSND(case-insensitive), but got {layout}")
    batch, at, length, last = PLACES[layout]
    if tensor.dim() != (3 if at is None else 4):
        raise RuntimeError(f"{name}: {word} of shape {shape_text(tensor.shape)} does not fit the layout {layout}")
    whole = tensor.shape[last]
    if at is not None:
        return Sizes(tensor.shape[batch], tensor.shape[at], tensor.shape[length], whole)
    count = heads if heads is not None else whole // width if width and not whole % width else 0
    if count <= 0 or whole % count:
        raise RuntimeError(f"{name}: the last dimension {whole} of {word} is no multiple of its heads")
    return Sizes(tensor.shape[batch], count, tensor.shape[length], whole // count)


def operands(name: str, query: Any, key: Any, value: Any, head_num: int, layout: str) -> tuple[Sizes, Sizes, Sizes]:
    """The sizes of query, key and value. RuntimeError where they do not fit each other."""
    check_fused(name, query, key, value)
    q = sizes(name, "query", query, layout, head_num)
    require(q.heads == head_num, f"{name}: query has {q.heads} heads, not {head_num}")
    k = sizes(name, "key", key, layout, width=q.width)
    v = sizes(name, "value", value, layout, heads=k.heads)
    require(q.batch == k.batch == v.batch, f"{name}: query, key and value differ in batches")
    require(k.heads == v.heads and k.length == v.length, f"{name}: key and value differ in heads or length")
    require(q.width == k.width >= v.width > 0, f"{name}: the widths of query, key and value do not fit each other")
    require(k.heads and not q.heads % k.heads, f"{name}: {q.heads} heads are no multiple of {k.heads}")
    require(k.length, f"{name}: there are no keys")
    return q, k, v


def check_masks(
    name: str, query: Any, q: Sizes, k: Sizes, pse: Any, mask: Any, sparse_mode: int, kinds: tuple, most: int = 6
) -> None:
    """RuntimeError where pse or the mask do not fit the operands. most: the last sparse mode that there is."""
    if pse is not None:
        require(pse.dtype is query.dtype, f"{name}: expected scalar type {query.dtype.cpp} but found {pse.dtype.cpp}")
        fits = pse.dim() == 4 and pse.shape[0] in (1, q.batch) and pse.shape[1] == q.heads
        fits = fits and pse.shape[2] in (1, q.length) and pse.shape[3] == k.length
        require(
            fits, f"{name}: pse of shape {shape_text(pse.shape)} is none of [B, N, S, S], [B, N, 1, S] and [1, N, S, S]"
        )
    require(0 <= sparse_mode <= most, f"{name}: sparse_mode should be 0 to {most}, but got {sparse_mode}")
    if mask is None:
        require(sparse_mode not in COMPRESSED, f"{name}: sparse_mode {sparse_mode} needs atten_mask")
        return
    require(mask.dtype in kinds, f"{name}: the dtype of atten_mask must be bool or uint8, but got {mask.dtype}")
    require(2 <= mask.dim() <= 4, f"{name}: atten_mask must have 2 to 4 dimensions")
    last = tuple(mask.shape[-2:])
    if sparse_mode in COMPRESSED:
        require(last == (2048, 2048), f"{name}: atten_mask of sparse_mode {sparse_mode} must be 2048 x 2048")
    elif sparse_mode != 6:
        lead = (q.batch, q.heads)[: mask.dim() - 2] if mask.dim() == 4 else (q.batch,)[: mask.dim() - 2]
        fits = all(n in (1, w) for n, w in zip(mask.shape[:-2], lead, strict=True))
        if last != (q.length, k.length) or not fits:
            raise RuntimeError(f"{name}: atten_mask of shape {shape_text(mask.shape)} does not fit query and key")


@rule(flops="4 * numel(query) * size(key, 1)")
def npu_attention(
    query: Any,
    key: Any,
    value: Any,
    head_num: int,
    input_layout: str,
    pse: Any = None,
    drop_mask: Any = None,
    atten_mask: Any = None,
    modes: Sequence[int] = (2147483647, 2147483647, 0, 0, 1),
    keep_prob: float = 1.0,
) -> tuple[Spec, Spec, Spec]:
    """(attention in query's layout, and the largest score and the sum of each row [B, N, S, 8], float32 at least).

    modes: how far back and forward a position sees, inner_precise, sparse_mode, and whether pse is added before (1) or after (0) the scale.
    """
    name = "npu_fusion_attention"
    q, k, v = operands(name, query, key, value, head_num, input_layout)
    require(
        len(modes) == 5 and modes[4] in (0, 1), f"{name}: expected five modes, of pse 0 or 1, but got {list(modes)}"
    )
    check_masks(name, query, q, k, pse, atten_mask, modes[3], (_d.bool, _d.uint8))
    require(0 < keep_prob <= 1, f"The keep_prob value must be in range of (0, 1], but got {keep_prob}")
    if drop_mask is not None:
        require(drop_mask.dtype is _d.uint8, f"{name}: expected a drop mask of uint8, but got {drop_mask.dtype}")
        bits = q.batch * q.heads * q.length * k.length
        require(drop_mask.numel() * 8 >= bits, f"{name}: the drop mask has fewer bits than there are scores")
    shape = list(query.shape)
    shape[-1] = v.width if PLACES[input_layout][1] is not None else q.heads * v.width
    kind, statistics = query.dtype, wide(query.dtype)
    sums = Spec((q.batch, q.heads, q.length, 8), statistics)
    return Spec(tuple(shape), kind, None, kind.opmath), sums, sums


@rule(flops="10 * numel(query) * size(key, 1)")
def npu_attention_backward(
    grad: Any, query: Any, key: Any, value: Any, head_num: int, input_layout: str, pse: Any = None
) -> tuple[Spec, Spec, Spec, Spec]:
    """The gradients of query, key, value and pse (no elements where there is none)."""
    name = "npu_fusion_attention_grad"
    operands(name, query, key, value, head_num, input_layout)
    check_fused(name, query, grad)
    shapes = (query.shape, key.shape, value.shape, (0,) if pse is None else pse.shape)
    first, second, third, fourth = (Spec(tuple(s), query.dtype, None, query.dtype.opmath) for s in shapes)
    return first, second, third, fourth


def lengths_of(ends: Sequence[int]) -> list[int]:
    """The length of each sequence, by where sequences end."""
    return [end - begin for begin, end in zip((0, *ends), ends)]


def modes_of(sparse_mode: int, q_ends: Sequence[int], k_ends: Sequence[int]) -> list[int]:
    """The sparse mode of each sequence. Modes 7 and 8 are of long sequences that were divided among devices along the query: a band for the last one (7) or the first one (8) that is not empty, the mode
    from before the division (3 or 2) for the others."""
    queries = lengths_of(q_ends)
    if sparse_mode not in (7, 8):
        return [sparse_mode] * len(queries)
    found = [3 if sparse_mode == 7 else 2] * len(queries)
    there = [number for number, (q, k) in enumerate(zip(queries, lengths_of(k_ends))) if q and k]
    if there:
        found[there[-1] if sparse_mode == 7 else there[0]] = 4
    return found


def _check_divided(
    name: str, sparse_mode: int, before: int, after: int, queries: list[int], keys: list[int], kinds: list[int]
) -> None:
    """RuntimeError where the window of sparse modes 7 and 8 is none that a division gives."""
    for q, k, kind in zip(queries, keys, kinds):
        if kind == 4:
            least = f"{name}: sparse_mode {sparse_mode} wants a pre_tockens of at least {k}, the keys of the sequence that was divided, but got {before}"
            require(before >= k, least)
            fits = q - k <= after and (sparse_mode == 8 or after <= 0)
            most = " and at most 0" if sparse_mode == 7 else ""
            require(
                fits,
                f"{name}: sparse_mode {sparse_mode} wants a next_tockens of at least {q - k}{most} here, but got {after}",
            )


def _check_varlen(name: str, query: Any, key: Any, value: Any, heads: int, q_ends: Any, k_ends: Any) -> None:
    """RuntimeError where operands of variable lengths do not fit each other or their ends."""
    check_fused(name, query, key, value)
    for word, tensor, ends in (("query", query, q_ends), ("key", key, k_ends), ("value", value, k_ends)):
        if tensor.dim() != 3:
            raise RuntimeError(f"{name}: {word} of shape {shape_text(tensor.shape)} does not fit the layout TND")
        rises = bool(ends) and all(n >= 0 for n in lengths_of(ends))
        if not rises or ends[-1] != tensor.shape[0]:
            raise RuntimeError(
                f"{name}: the ends of {word}'s sequences, {list(ends)}, do not rise to its {tensor.shape[0]} positions"
            )
    require(query.shape[1] == heads, f"{name}: query has {query.shape[1]} heads, not {heads}")
    require(
        len(q_ends) == len(k_ends), f"{name}: there are {len(q_ends)} sequences of queries and {len(k_ends)} of keys"
    )
    require(key.shape[1] == value.shape[1], f"{name}: key and value differ in heads or length")
    require(key.shape[1] and not heads % key.shape[1], f"{name}: {heads} heads are no multiple of {key.shape[1]}")
    widths = query.shape[2] == key.shape[2] >= value.shape[2] > 0
    require(widths, f"{name}: the widths of query, key and value do not fit each other")
    for queries, keys in zip(lengths_of(q_ends), lengths_of(k_ends)):
        require(keys or not queries, f"{name}: a sequence of queries has no keys")


@rule(flops="4 * numel(query) * size(key, 0)")
def npu_attention_varlen(
    query: Any,
    key: Any,
    value: Any,
    head_num: int,
    q_ends: Sequence[int],
    k_ends: Sequence[int],
    drop_mask: Any = None,
    atten_mask: Any = None,
    modes: Sequence[int] = (2147483647, 2147483647, 0, 0, 1),
    keep_prob: float = 1.0,
) -> tuple[Spec, Spec, Spec]:
    """(attention in query's layout TND, and the largest score and the sum of each row [T, N, 8], float32 at least); each sequence attends to itself."""
    name = "npu_fusion_attention"
    _check_varlen(name, query, key, value, head_num, q_ends, k_ends)
    queries, keys = lengths_of(q_ends), lengths_of(k_ends)
    sparse_mode = modes[3]
    whole = Sizes(len(q_ends), head_num, max(queries), query.shape[2])
    check_masks(
        name, query, whole, whole._replace(length=max(keys)), None, atten_mask, sparse_mode, (_d.bool, _d.uint8), 8
    )
    kinds = modes_of(sparse_mode, q_ends, k_ends)
    fits = all(kind != 3 or q <= k for kind, q, k in zip(kinds, queries, keys))
    require(fits, f"{name}: sparse_mode {sparse_mode} of the layout TND wants no more queries than keys in a sequence")
    if sparse_mode in (7, 8):
        _check_divided(name, sparse_mode, modes[0], modes[1], queries, keys, kinds)
    require(0 < keep_prob <= 1, f"The keep_prob value must be in range of (0, 1], but got {keep_prob}")
    if drop_mask is not None:
        require(drop_mask.dtype is _d.uint8, f"{name}: expected a drop mask of uint8, but got {drop_mask.dtype}")
        bits = head_num * sum(q * k for q, k in zip(queries, keys))
        require(drop_mask.numel() * 8 >= bits, f"{name}: the drop mask has fewer bits than there are scores")
    kind = query.dtype
    sums = Spec((query.shape[0], head_num, 8), wide(kind))
    return Spec((query.shape[0], head_num, value.shape[2]), kind, None, kind.opmath), sums, sums


@rule(flops="10 * numel(query) * size(key, 0)")
def npu_attention_varlen_backward(
    grad: Any, query: Any, key: Any, value: Any, head_num: int, q_ends: Sequence[int], k_ends: Sequence[int]
) -> tuple[Spec, Spec, Spec]:
    """The gradients of query, key and value."""
    name = "npu_fusion_attention_grad"
    _check_varlen(name, query, key, value, head_num, q_ends, k_ends)
    check_fused(name, query, grad)
    first, second, third = (Spec(tuple(t.shape), query.dtype, None, query.dtype.opmath) for t in (query, key, value))
    return first, second, third


@rule(flops="4 * numel(query) * size(key, 1)")
def npu_infer_attention(
    query: Any,
    key: Any,
    value: Any,
    num_heads: int,
    input_layout: str,
    num_key_value_heads: int = 0,
    softmax_lse_flag: bool = False,
    pse: Any = None,
    atten_mask: Any = None,
    sparse_mode: int = 0,
) -> tuple[Spec, Spec]:
    """(attention in query's layout, the logarithm of each row's sum [B, N, S, 1], or [1] without the flag)."""
    name = "npu_fused_infer_attention_score"
    layouts = ("BSH", "BSND", "BNSD", "BNSD_BSND")
    require(input_layout in layouts, f"{name}: the layout {input_layout} is not supported")
    input_layout, _, turned = input_layout.partition("_")
    q, k, v = operands(name, query, key, value, num_heads, input_layout)
    wanted = num_key_value_heads or num_heads
    require(k.heads == wanted, f"{name}: key has {k.heads} heads, not {wanted}")
    check_masks(name, query, q, k, pse, atten_mask, sparse_mode, (_d.bool, _d.uint8, _d.int8))
    shape = list(query.shape)
    shape[-1] = v.width if PLACES[input_layout][1] is not None else q.heads * v.width
    if turned:
        shape[1], shape[2] = shape[2], shape[1]
    lse = (q.batch, q.heads, q.length, 1) if softmax_lse_flag else (1,)
    return Spec(tuple(shape), query.dtype, None, query.dtype.opmath), Spec(lse, wide(query.dtype))
