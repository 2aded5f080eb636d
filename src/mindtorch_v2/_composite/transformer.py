"""What encoder layers run when no gradient is wanted: attention with its projections, and a whole layer.

Rows whose keys are all masked give NaN here, where the layers themselves give the attention of nothing.
"""

from __future__ import annotations

import math

from mindtorch_v2._generated import functions as F
from mindtorch_v2._tensor import Tensor


def native_multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """(output (N, L, E), weights (N, L, S) or (N, heads, L, S), or None).

    mask: elements that are not zero are left out; mask_type: 0 (L, S), 1 (N, S), 2 (N, heads, L, S). RuntimeError for wrong sizes.
    """
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.dim() != 3:
            raise RuntimeError(f"expected 3-D `{name}`, got {tensor.dim()}-D tensor")
    if query.shape[2] != embed_dim:
        raise RuntimeError(f"passed-in embed_dim {embed_dim} didn't match last dim of query {query.shape[2]}")
    if embed_dim % num_head:
        raise RuntimeError("`embed_dim` must divide evenly by `num_heads`")
    if mask is not None and mask_type is None:
        raise RuntimeError("Mask Type should be defined")
    parts = zip((query, key, value), F.chunk(qkv_weight, 3), F.chunk(qkv_bias, 3), strict=True)
    q, k, v = (_heads(F.linear(x, weight, bias), num_head) for x, weight, bias in parts)
    weights = None
    if mask is None and not need_weights:
        out = F.scaled_dot_product_attention(q, k, v)
    else:
        scores = F.matmul(q / math.sqrt(embed_dim // num_head), F.transpose(k, -2, -1))
        if mask is not None:
            hidden = mask != 0
            scores = F.masked_fill(scores, hidden[:, None, None, :] if mask_type == 1 else hidden, -math.inf)
        weights = F.softmax(scores, -1)
        out = F.matmul(weights, v)
    out = F.linear(F.flatten(F.transpose(out, 1, 2), 2), proj_weight, proj_bias)
    if not need_weights:
        return out, None
    return out, F.mean(weights, [1]) if average_attn_weights else weights


def _heads(x: Tensor, count: int) -> Tensor:
    return F.transpose(F.unflatten(x, -1, [count, -1]), 1, 2)


def transform_bias_rescale_qkv(qkv: Tensor, qkv_bias: Tensor, num_heads: int) -> tuple[Tensor, ...]:
    """(q over the root of a head's size, k, v), each (N, heads, L, E / heads), of projections (N, L, 3 E) without their bias."""
    q, k, v = (_heads(x, num_heads) for x in F.chunk(qkv + qkv_bias, 3, -1))
    return (q / math.sqrt(q.shape[-1])).contiguous(), k.contiguous(), v.contiguous()


def transformer_encoder_layer_fwd(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """A layer of an encoder without dropout, of (N, L, E)."""

    def normed(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.layer_norm(x, [embed_dim], weight, bias, eps)

    x = normed(src, norm_weight_1, norm_bias_1) if norm_first else src
    attended = native_multi_head_attention(
        x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, mask_type
    )[0]
    x = src + attended
    if not norm_first:
        x = normed(x, norm_weight_1, norm_bias_1)
    inner = F.linear(normed(x, norm_weight_2, norm_bias_2) if norm_first else x, ffn_weight_1, ffn_bias_1)
    out = x + F.linear(F.gelu(inner) if use_gelu else F.relu(inner), ffn_weight_2, ffn_bias_2)
    return out if norm_first else normed(out, norm_weight_2, norm_bias_2)
