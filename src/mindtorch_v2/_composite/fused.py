"""torch_npu's operators that check and draw before their function is called, and those that refuse what the chip has no function for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mindtorch_v2 import _dtype
from mindtorch_v2._generated import functions as F
from mindtorch_v2._rules import fused_attention as rules
from mindtorch_v2._rules.fused import mask_bytes, require
from mindtorch_v2._tensor import Tensor, wrap
from mindtorch_v2._warnings import warn_once


def drawn(query: Tensor, count: int) -> tuple[int, int]:
    """A seed and an offset of the generator of query's device, for `count` numbers."""
    if query.device.type == "npu":
        from mindtorch_v2._backends.npu.generator import get

        seed, offset = get(query.device.index or 0).next(count)
        return seed % (1 << 63), offset % (1 << 63)
    return (0 if query.is_meta else int(F.randint(0, 1 << 62, [1], dtype=_dtype.int64).item())), 0


def fusion_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    head_num: int,
    input_layout: str,
    pse: Tensor | None = None,
    padding_mask: Tensor | None = None,
    atten_mask: Tensor | None = None,
    scale: float = 1.0,
    keep_prob: float = 1.0,
    pre_tockens: int = 2147483647,
    next_tockens: int = 2147483647,
    inner_precise: int = 0,
    prefix: Sequence[int] | None = None,
    actual_seq_qlen: Sequence[int] | None = None,
    actual_seq_kvlen: Sequence[int] | None = None,
    sparse_mode: int = 0,
    gen_mask_parallel: bool = True,
    sync: bool = False,
    softmax_layout: str = "",
    sink: Tensor | None = None,
    dropout_mask: Tensor | None = None,
    seed: int = 0,
    offset: int = 0,
) -> tuple[Tensor, Tensor, Tensor, Tensor, int, int, int]:
    """(attention, softmax_max, softmax_sum, softmax_out, seed, offset, the number of scores): dropout(softmax(scale * (query @ key.T + pse))) @ value.

    `atten_mask` is True where nothing is seen. RuntimeError for shapes, dtypes and layouts that do not fit, and for what the dense function has not.
    """
    name = "npu_fusion_attention"
    layout = input_layout.upper()
    lengths = (("actual_seq_qlen", actual_seq_qlen), ("actual_seq_kvlen", actual_seq_kvlen))
    for word, given in lengths:
        require(layout != "TND" or given, f"{name}: the layout TND needs {word}")
    for word, given in (
        ("padding_mask", padding_mask),
        *(lengths if layout != "TND" else (("pse of the layout TND", pse),)),
        ("sink", sink),
        ("softmax_layout", softmax_layout or None),
    ):
        require(given is None, f"{name}: {word} is not supported")
    require(0 < keep_prob <= 1, f"The keep_prob value must be in range of (0, 1], but got {keep_prob}")
    if layout == "TND":
        window = [pre_tockens, next_tockens, inner_precise, sparse_mode, 1]
        ends = list(actual_seq_qlen or ()), list(actual_seq_kvlen or ())
        given = query, key, value, head_num, *ends
        return _varlen(given, dropout_mask, atten_mask, prefix, scale, keep_prob, window, seed, offset)
    q, k, _ = rules.operands(name, query, key, value, head_num, layout)
    count = q.batch * q.heads * q.length * k.length
    mask = dropout_mask
    if keep_prob < 1 and mask is None:
        seed, offset = drawn(query, mask_bytes(count) * 8)
        mask = F._npu_dropout_gen_mask(query, [q.batch, q.heads, q.length, k.length], 1 - keep_prob, seed, offset)
    made, top, total = F._npu_attention(
        query,
        key,
        value,
        head_num,
        layout,
        pse=pse,
        drop_mask=mask if keep_prob < 1 else None,
        atten_mask=atten_mask,
        prefix=prefix,
        scale=scale,
        keep_prob=keep_prob,
        modes=[pre_tockens, next_tockens, inner_precise, sparse_mode, 1],
    )
    return made, top, total, F.new_empty(query, [0]), seed, offset, count


def _varlen(
    given: tuple,
    mask: Any,
    atten_mask: Any,
    prefix: Any,
    scale: float,
    keep_prob: float,
    modes: list,
    seed: int,
    offset: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, int, int, int]:
    """`fusion_attention` of sequences behind each other."""
    query, _, _, heads, *ends = given
    queries, keys = (rules.lengths_of(one) for one in ends)
    count = heads * sum(q * k for q, k in zip(queries, keys))
    if keep_prob < 1 and mask is None:
        seed, offset = drawn(query, mask_bytes(count) * 8)
        mask = F._npu_dropout_gen_mask(query, [count], 1 - keep_prob, seed, offset)
    made, top, total = F._npu_attention_varlen(
        *given,
        drop_mask=mask if keep_prob < 1 else None,
        atten_mask=atten_mask,
        prefix=prefix,
        scale=scale,
        keep_prob=keep_prob,
        modes=modes,
    )
    return made, top, total, F.new_empty(query, [0]), seed, offset, count


_INFERENCE_ONLY = (
    "dequant_scale1", "quant_scale1", "dequant_scale2", "quant_scale2", "quant_offset2", "antiquant_scale", "antiquant_offset",
    "key_antiquant_scale", "key_antiquant_offset", "value_antiquant_scale", "value_antiquant_offset", "block_table", "query_padding_size",
    "kv_padding_size", "key_shared_prefix", "value_shared_prefix", "actual_shared_prefix_len", "query_rope", "key_rope",
    "key_rope_antiquant_scale",
)  # fmt: skip


def fused_infer_attention_score(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    pse_shift: Tensor | None = None,
    atten_mask: Tensor | None = None,
    actual_seq_lengths: Sequence[int] | None = None,
    actual_seq_lengths_kv: Sequence[int] | None = None,
    *rest: Any,
) -> tuple[Tensor, Tensor]:
    """(attention, logarithms of the sums) of dense floating operands, for inference. RuntimeError names what has no dense function."""
    name = "npu_fused_infer_attention_score"
    for word, given in zip(_INFERENCE_ONLY, rest, strict=False):
        require(given is None, f"{name}: {word} is not supported; only dense operands of one floating dtype are")
    heads, scale, before, after, layout, kv_heads, sparse_mode, inner_precise, *modes, lse = rest[
        len(_INFERENCE_ONLY) :
    ]
    require(not any(modes), f"{name}: block_size and modes of quantisation are not supported")
    return F._npu_infer_attention(
        query,
        key,
        value,
        pse_shift=pse_shift,
        atten_mask=atten_mask,
        actual_seq_lengths=actual_seq_lengths,
        actual_seq_lengths_kv=actual_seq_lengths_kv,
        num_heads=heads,
        scale=scale,
        pre_tokens=before,
        next_tokens=after,
        input_layout=layout,
        num_key_value_heads=kv_heads,
        sparse_mode=sparse_mode,
        inner_precise=inner_precise,
        softmax_lse_flag=lse,
    )


# Mixtures of experts


def _grouped(
    x: Sequence[Tensor],
    weight: Sequence[Tensor],
    bias: Sequence[Tensor] | None,
    group_list: Tensor | None,
    split_item: int | None,
    group_type: int | None,
    group_list_type: int | None,
    act_type: int | None,
    refused: Sequence[tuple[str, Any]],
) -> list[Tensor]:
    name = "npu_grouped_matmul"
    require(group_type is not None, "Requires manual passing group_type, current is None.")
    for word, given in refused:
        require(not given, f"{name}: {word} is not supported; only floating groups without activations are")
    require(not act_type, f"{name}: act_type is not supported; only floating groups without activations are")
    split = split_item or 0
    require(split in (0, 1, 2, 3), f"The split_item must be 0, 1, 2 or 3, but now is [{split}]")
    if group_type == -1:
        require(split < 2, f"{name}: split_item should be 0 or 1 for lists, but got {split}")
        group_list = None
    else:
        require(split >= 2, f"{name}: split_item should be 2 or 3 where x is split, but got {split}")
    require(group_list_type in (None, 0, 1), f"{name}: group_list_type should be 0 or 1, but got {group_list_type}")
    return list(
        F._npu_grouped_matmul(list(x), list(weight), list(bias or []), group_list, group_type, group_list_type or 0)
    )


def grouped_matmul(
    x: Sequence[Tensor],
    weight: Sequence[Tensor],
    bias: Sequence[Tensor] | None = None,
    scale: Sequence[Tensor] | None = None,
    offset: Sequence[Tensor] | None = None,
    antiquant_scale: Sequence[Tensor] | None = None,
    antiquant_offset: Sequence[Tensor] | None = None,
    per_token_scale: Sequence[Tensor] | None = None,
    group_list: Tensor | None = None,
    activation_input: Sequence[Tensor] | None = None,
    activation_quant_scale: Sequence[Tensor] | None = None,
    activation_quant_offset: Sequence[Tensor] | None = None,
    split_item: int | None = 0,
    group_type: int | None = None,
    group_list_type: int | None = 0,
    act_type: int | None = 0,
    tuning_config: Sequence[int] | None = None,
    output_dtype: Any = None,
    x_dtype: int | None = None,
    weight_dtype: int | None = None,
    scale_dtype: int | None = None,
    per_token_scale_dtype: int | None = None,
) -> list[Tensor]:
    """Products of groups: of the pairs of two lists (group_type -1), of rows of x[0] (0), of columns of x[0] and rows of weight[0] (2).

    group_list has where each group ends, or (group_list_type 1) how long it is. RuntimeError for what does not fit and for quantised groups.
    """
    refused = (
        ("scale", scale),
        ("offset", offset),
        ("antiquant_scale", antiquant_scale),
        ("antiquant_offset", antiquant_offset),
        ("per_token_scale", per_token_scale),
        ("activation_input", activation_input),
        ("activation_quant_scale", activation_quant_scale),
        ("activation_quant_offset", activation_quant_offset),
        ("output_dtype", None if x and output_dtype is x[0].dtype else output_dtype),
        ("x_dtype", x_dtype),
        ("weight_dtype", weight_dtype),
        ("scale_dtype", scale_dtype),
        ("per_token_scale_dtype", per_token_scale_dtype),
    )
    return _grouped(x, weight, bias, group_list, split_item, group_type, group_list_type, act_type, refused)


def grouped_matmul_of_lengths(
    x: Sequence[Tensor],
    weight: Sequence[Tensor],
    bias: Sequence[Tensor] | None = None,
    scale: Sequence[Tensor] | None = None,
    offset: Sequence[Tensor] | None = None,
    antiquant_scale: Sequence[Tensor] | None = None,
    antiquant_offset: Sequence[Tensor] | None = None,
    per_token_scale: Sequence[Tensor] | None = None,
    group_list: Sequence[int] | None = None,
    activation_input: Sequence[Tensor] | None = None,
    activation_quant_scale: Sequence[Tensor] | None = None,
    activation_quant_offset: Sequence[Tensor] | None = None,
    split_item: int | None = 0,
    group_type: int | None = None,
    group_list_type: int | None = 0,
    act_type: int | None = 0,
    output_dtype: Any = None,
) -> list[Tensor]:
    """`grouped_matmul` whose groups are a list of numbers."""
    groups = None
    if group_list is not None:
        groups = wrap(np.array(list(group_list), np.int64), _dtype.int64).to(x[0].device)
    return grouped_matmul(
        x,
        weight,
        bias,
        scale,
        offset,
        antiquant_scale,
        antiquant_offset,
        per_token_scale,
        groups,
        activation_input,
        activation_quant_scale,
        activation_quant_offset,
        split_item,
        -1 if group_type is None and groups is None else group_type,
        group_list_type,
        act_type,
        None,
        output_dtype,
    )


_BASE_FORMATS = {-1: "UNDEFINED", 0: "NCHW", 1: "NHWC", 2: "ND", 30: "NCDHW", 47: "NCL"}


def format_cast(self: Tensor, acl_format: int) -> Tensor:
    """The tensor itself: NPUs' private formats are off here, as `torch.npu.config.allow_internal_format = False` has it."""
    if acl_format not in _BASE_FORMATS:
        warn_once(
            "Cannot create tensor with internal format while allow_internal_format=False, tensor will be created with base format."
        )
    return F.alias(self)
