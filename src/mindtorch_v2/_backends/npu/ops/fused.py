"""torch_npu's fused operators whose functions take more than the operator's arguments."""

from __future__ import annotations

from typing import Any

from ...._dispatch import ops
from ...._generated.npu.functions import (
    aclnnDropout,
    aclnnDynamicQuant,
    aclnnDynamicQuantV2,
    aclnnDynamicQuantV3,
    aclnnFlashAttentionScoreGradV2,
    aclnnFlashAttentionScoreV2,
    aclnnFlashAttentionUnpaddingScoreGradV2,
    aclnnFlashAttentionVarLenScoreV2,
    aclnnFusedInferAttentionScore,
    aclnnGroupedMatmulV4,
    aclnnInplaceFillScalar,
    aclnnInplaceZero,
    aclnnMoeTokenUnpermuteGrad,
)
from .. import copies
from ..aclnn import ACL_DTYPES, launch
from ..creation import empty
from ..generator import get

_SIGNED = (1 << 63) - 1


def _data(tensor: Any) -> Any:
    return None if tensor is None else tensor._payload


def attention(
    out: Any,
    query: Any,
    key: Any,
    value: Any,
    head_num: int,
    input_layout: str,
    pse: Any,
    drop_mask: Any,
    atten_mask: Any,
    prefix: Any,
    scale: float,
    keep_prob: float,
    modes: Any,
) -> None:
    if not out[0].size:
        for index in (1, 2):
            if out[index].size:
                launch(aclnnInplaceZero, out[index])
        return
    none = empty((0,), None, query.dtype, query.device)  # the softmax itself, which no kernel gives
    launch(
        aclnnFlashAttentionScoreV2, query._payload, key._payload, value._payload, _data(pse), _data(drop_mask), None, _data(atten_mask), prefix, None,
        None, scale, keep_prob, *modes[:2], head_num, input_layout, *modes[2:], out[1], out[2], none, out[0],
    )  # fmt: skip


def attention_backward(
    out: Any,
    grad: Any,
    query: Any,
    key: Any,
    value: Any,
    head_num: int,
    input_layout: str,
    pse: Any,
    drop_mask: Any,
    atten_mask: Any,
    softmax_max: Any,
    softmax_sum: Any,
    result: Any,
    prefix: Any,
    scale: float,
    keep_prob: float,
    modes: Any,
) -> None:
    if not grad.numel():
        for index in range(4):
            if out[index].size:
                launch(aclnnInplaceZero, out[index])
        return
    launch(
        aclnnFlashAttentionScoreGradV2, query._payload, key._payload, value._payload, grad._payload, _data(pse), _data(drop_mask), None, _data(atten_mask),
        softmax_max._payload, softmax_sum._payload, None, result._payload, prefix, None, None, scale, keep_prob, *modes[:2], head_num,
        input_layout, *modes[2:], out[0], out[1], out[2], out[3],
    )  # fmt: skip


def attention_varlen(
    out: Any,
    query: Any,
    key: Any,
    value: Any,
    head_num: int,
    q_ends: Any,
    k_ends: Any,
    drop_mask: Any,
    atten_mask: Any,
    prefix: Any,
    scale: float,
    keep_prob: float,
    modes: Any,
) -> None:
    if not out[0].size:
        return
    none = empty((0,), None, query.dtype, query.device)  # the softmax itself, which no kernel gives
    launch(
        aclnnFlashAttentionVarLenScoreV2, query._payload, key._payload, value._payload, None, _data(drop_mask), None, _data(atten_mask), prefix,
        q_ends, k_ends, None, None, scale, keep_prob, *modes[:2], head_num, "TND", *modes[2:], out[1], out[2], none, out[0],
    )  # fmt: skip


def attention_varlen_backward(
    out: Any,
    grad: Any,
    query: Any,
    key: Any,
    value: Any,
    head_num: int,
    q_ends: Any,
    k_ends: Any,
    drop_mask: Any,
    atten_mask: Any,
    softmax_max: Any,
    softmax_sum: Any,
    result: Any,
    prefix: Any,
    scale: float,
    keep_prob: float,
    modes: Any,
) -> None:
    if not grad.numel():
        for index in range(3):
            if out[index].size:
                launch(aclnnInplaceZero, out[index])
        return
    none = empty((0,), None, query.dtype, query.device)  # of pse, which there is not
    launch(
        aclnnFlashAttentionUnpaddingScoreGradV2, query._payload, key._payload, value._payload, grad._payload, None, _data(drop_mask), None, _data(atten_mask),
        softmax_max._payload, softmax_sum._payload, None, result._payload, prefix, q_ends, k_ends, None, None, scale, keep_prob, *modes[:2], head_num,
        "TND", *modes[2:], out[0], out[1], out[2], none,
    )  # fmt: skip


def infer_attention(
    out: Any,
    query: Any,
    key: Any,
    value: Any,
    pse_shift: Any,
    atten_mask: Any,
    actual_seq_lengths: Any,
    actual_seq_lengths_kv: Any,
    num_heads: int,
    scale: float,
    pre_tokens: int,
    next_tokens: int,
    input_layout: str,
    num_key_value_heads: int,
    sparse_mode: int,
    inner_precise: int,
    softmax_lse_flag: bool,
) -> None:
    if not softmax_lse_flag:
        launch(aclnnInplaceZero, out[1])
    if not out[0].size:
        return
    query, key, value = (ops.contiguous(t) for t in (query, key, value))  # it takes no strides
    launch(
        aclnnFusedInferAttentionScore, query._payload, [key._payload], [value._payload], _data(pse_shift), _data(atten_mask), actual_seq_lengths,
        actual_seq_lengths_kv, *(None,) * 10, num_heads, scale, pre_tokens, next_tokens, input_layout, num_key_value_heads, sparse_mode,
        inner_precise, 0, 0, softmax_lse_flag, out[0], out[1],
    )  # fmt: skip


def dynamic_quant(
    out: Any, input: Any, smooth_scales: Any, group_index: Any, dst_type: Any, quant_mode: str, dst_type_max: float
) -> None:
    if not out[0].size:
        if out[1].size:
            launch(aclnnInplaceZero, out[1])
        return
    given = (input._payload, _data(smooth_scales))
    if quant_mode != "pertoken":
        launch(
            aclnnDynamicQuantV3, *given, _data(group_index), ACL_DTYPES["int8"], True, quant_mode, out[0], out[1], None
        )
    elif group_index is not None:
        launch(aclnnDynamicQuantV2, *given, group_index._payload, ACL_DTYPES["int8"], out[0], out[1], None)
    else:
        launch(aclnnDynamicQuant, *given, out[0], out[1])


def grouped_matmul(
    out: Any, x: list, weight: list, bias: list, group_list: Any, group_type: int, group_list_type: int
) -> None:
    results = [out[i] for i in range(len(out))]
    more = [b._payload for b in bias] or None
    split = 0 if group_type == -1 else 3
    if group_type == 2 and results[0].size:  # groups of no columns are not written
        launch(aclnnInplaceZero, results[0])
    if all(r.size == 0 for r in results):
        return
    launch(
        aclnnGroupedMatmulV4, [t._payload for t in x], [t._payload for t in weight], more, *(None,) * 5, _data(group_list), *(None,) * 3, split,
        group_type, group_list_type, 0, results, None, None,
    )  # fmt: skip


def moe_token_unpermute_grad(
    out: Any,
    permuted_tokens: Any,
    grad_unpermuted_tokens: Any,
    sorted_indices: Any,
    probs: Any,
    padded_mode: bool,
    restore_shape: Any,
) -> None:
    given = (permuted_tokens._payload, grad_unpermuted_tokens._payload, sorted_indices._payload, _data(probs))
    launch(aclnnMoeTokenUnpermuteGrad, *given, padded_mode, restore_shape, out[0], None if probs is None else out[1])


def dropout(out: Any, self: Any, p: float) -> None:
    if not out[0].size:
        return
    if p == 0:
        copies.copy_on_device(out[0], self._payload)
        launch(aclnnInplaceFillScalar, out[1], 255)
        return
    seed, offset = get(self.device.index or 0).next(self.numel())
    launch(aclnnDropout, self._payload, p, True, seed & _SIGNED, offset & _SIGNED, out[0], out[1])
