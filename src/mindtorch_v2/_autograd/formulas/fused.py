"""Derivatives of torch_npu's fused operators, by their backward operators, as torch_npu has them."""

from __future__ import annotations

from collections.abc import Sequence

from ..._dispatch import ops
from ..._tensor import Tensor

Maybe = Tensor | None


def npu_attention_gradient(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    head_num: int,
    input_layout: str,
    pse: Maybe,
    drop_mask: Maybe,
    atten_mask: Maybe,
    softmax_max: Tensor,
    softmax_sum: Tensor,
    attention: Tensor,
    prefix: Sequence[int] | None,
    scale: float,
    keep_prob: float,
    modes: Sequence[int],
) -> tuple[Tensor, Tensor, Tensor, Maybe]:
    """Gradients of query, key, value and pse."""
    to_query, to_key, to_value, to_pse = ops._npu_attention_backward(
        grad,
        query,
        key,
        value,
        head_num,
        input_layout,
        pse=pse,
        drop_mask=drop_mask,
        atten_mask=atten_mask,
        softmax_max=softmax_max,
        softmax_sum=softmax_sum,
        attention=attention,
        prefix=prefix,
        scale=scale,
        keep_prob=keep_prob,
        modes=modes,
    )
    return to_query, to_key, to_value, None if pse is None else to_pse


def npu_attention_varlen_gradient(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    head_num: int,
    q_ends: Sequence[int],
    k_ends: Sequence[int],
    drop_mask: Maybe,
    atten_mask: Maybe,
    softmax_max: Tensor,
    softmax_sum: Tensor,
    attention: Tensor,
    prefix: Sequence[int] | None,
    scale: float,
    keep_prob: float,
    modes: Sequence[int],
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of query, key and value of variable lengths."""
    return ops._npu_attention_varlen_backward(
        grad,
        query,
        key,
        value,
        head_num,
        q_ends,
        k_ends,
        drop_mask=drop_mask,
        atten_mask=atten_mask,
        softmax_max=softmax_max,
        softmax_sum=softmax_sum,
        attention=attention,
        prefix=prefix,
        scale=scale,
        keep_prob=keep_prob,
        modes=modes,
    )


def npu_moe_unpermute_gradient(
    grad: Tensor,
    permuted_tokens: Tensor,
    sorted_indices: Tensor,
    probs: Maybe,
    padded_mode: bool,
    restore_shape: Sequence[int] | None,
) -> tuple[Tensor, Maybe]:
    """Gradients of rows and weights."""
    first, second = ops.npu_moe_token_unpermute_grad(
        permuted_tokens, grad, sorted_indices, probs, padded_mode, restore_shape
    )
    return first, None if probs is None else second


__all__ = ["npu_attention_gradient", "npu_attention_varlen_gradient", "npu_moe_unpermute_gradient"]
