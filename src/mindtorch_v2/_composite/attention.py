"""Scaled dot product attention: the fused pair of operators where it fits, else products and a softmax."""

from __future__ import annotations

import math

from mindtorch_v2 import _dtype
from mindtorch_v2._composite.fused import drawn
from mindtorch_v2._generated import functions as F
from mindtorch_v2._rules import nn as rules
from mindtorch_v2._rules.fused import mask_bytes
from mindtorch_v2._state import TLS
from mindtorch_v2._tensor import Tensor

_TWO_MASKS = "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ key.T * scale + mask) @ value, over the last two dimensions.

    query (..., heads, L, E), key (..., heads, S, E), value (..., heads, S, Ev). A bool mask says what may be seen. With `enable_gqa` heads of key
    and value are repeated. RuntimeError for shapes and dtypes that do not fit.
    """
    if query.device.type == "npu":
        made = _on_npu(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
        if made is not None:
            return made
    if TLS.attention_backends is not None:
        if fused_sdp_choice(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa) == _MATH:
            rules.attention(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
            if attn_mask is not None and is_causal:
                raise RuntimeError(_TWO_MASKS)
            return attention_math(query, key, value, attn_mask, dropout_p, is_causal, None, scale, enable_gqa)[0]
    elif not dropout_p and _alike(query, key, value):
        if attn_mask is None:
            return F._scaled_dot_product_flash_attention_for_cpu(query, key, value, 0.0, is_causal, scale=scale)[0]
        if not is_causal and _masks(attn_mask, query, key):
            return F._scaled_dot_product_flash_attention_for_cpu(
                query, key, value, 0.0, False, attn_mask=attn_mask, scale=scale
            )[0]
    rules.attention(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    if attn_mask is not None and is_causal:
        raise RuntimeError(_TWO_MASKS)
    if _fits(query, key, value, attn_mask, dropout_p, enable_gqa):
        if query.shape[1] != key.shape[1]:
            if (
                query.shape[2] == 1
                and not is_causal
                and (attn_mask is None or attn_mask.dim() == 2 or attn_mask.shape[1] == 1)
            ):
                return _attention_of_groups(query, key, value, attn_mask, scale)
            key = F.repeat_interleave(key, query.shape[1] // key.shape[1], 1)
            value = F.repeat_interleave(value, query.shape[1] // value.shape[1], 1)
        mask = attn_mask
        if mask is not None and mask.dim() == 3:
            mask = F.unsqueeze(mask, 1)
        return F._scaled_dot_product_flash_attention_for_cpu(
            query, key, value, dropout_p, is_causal, attn_mask=mask, scale=scale
        )[0]
    return attention_math(query, key, value, attn_mask, dropout_p, is_causal, None, scale, enable_gqa)[0]


def _attention_of_groups(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float | None) -> Tensor:
    """That of one query: those of the heads that share keys and values stand as queries of one head, so that nothing is repeated."""
    batch, heads, _, width = query.shape
    grouped = F.reshape(query, (batch, key.shape[1], heads // key.shape[1], width))
    made = F._scaled_dot_product_flash_attention_for_cpu(grouped, key, value, 0.0, False, attn_mask=mask, scale=scale)[
        0
    ]
    if query.stride(1) < query.stride(2):  # a view of (batch, length, heads, width), as the result is then
        return F.transpose(F.reshape(made, (batch, 1, heads, width)), 1, 2)
    return F.reshape(made, (batch, heads, 1, width))


def _on_npu(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Tensor | None:
    """The same by one launch; None for operands that its function does not take, and where another way is asked for."""
    from mindtorch_v2._backends.npu import attention as fused

    if TLS.attention_backends is not None and _FLASH not in TLS.attention_backends:
        return None
    rules.attention(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    if attn_mask is not None and is_causal:
        raise RuntimeError(_TWO_MASKS)
    if (
        dropout_p >= 1
        or not fused.fits(query, key, value, attn_mask)
        or (query.shape[1] != key.shape[1] and not enable_gqa)
    ):
        return None
    batch, heads, length, width = query.shape
    keys = key.shape[2]
    hidden = shift = dropped = None
    precise = sparse = 0
    if is_causal:
        hidden, sparse = fused.triangle(query.device), 2
    elif attn_mask is not None and attn_mask.dtype is _dtype.bool:
        hidden, precise = fused.hidden(attn_mask, batch, heads, length, keys), 2
    elif attn_mask is not None:
        shift = fused.shift(attn_mask, batch, heads, length, keys)
    if dropout_p > 0:
        seed, offset = drawn(query, mask_bytes(batch * heads * length * keys) * 8)
        dropped = F._npu_dropout_gen_mask(query, [batch, heads, length, keys], dropout_p, seed, offset)
    # Positions before heads in memory, as projections leave them: the result lies alike, and no copy is made.
    turned = query.stride(2) > query.stride(1) and heads > 1
    given = [F.transpose(t, 1, 2) if turned else t for t in (query, key, value)]
    made = F._npu_attention(
        *given,
        heads,
        "BSND" if turned else "BNSD",
        pse=shift,
        drop_mask=dropped,
        atten_mask=hidden,
        scale=1 / math.sqrt(width) if scale is None else scale,
        keep_prob=1.0 - dropout_p,
        modes=[2147483647, 2147483647, precise, sparse, 0],
    )[0]
    return F.transpose(made, 1, 2) if turned else made


def fused_sdp_choice(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> int:
    """Which way `scaled_dot_product_attention` takes, as the value of a `SDPBackend`. RuntimeError when neither of both here is allowed."""
    allowed = TLS.attention_backends
    if allowed is not None and not {_MATH, _FLASH} & allowed:
        raise RuntimeError(
            "No viable backend for scaled_dot_product_attention was found. This is likely due to turning off both the math kernel and the "
            "fused kernels."
        )
    fused = query.dtype is key.dtype is value.dtype and _fits(query, key, value, attn_mask, dropout_p, enable_gqa)
    fused = fused and query.stride(-1) == key.stride(-1) == value.stride(-1) == 1
    return _FLASH if fused and (allowed is None or _FLASH in allowed) else _MATH


_MATH, _FLASH = 0, 1  # of SDPBackend


def _alike(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether operands are, beyond question, what the fused operators take."""
    kind, shape, other = query.dtype, query.shape, key.shape
    return (
        kind is key.dtype is value.dtype
        and kind.is_floating_point
        and len(shape) == len(other) == 4
        and other == value.shape
        and shape[:2] == other[:2]
        and shape[3] == other[3]
        and 0 not in shape
        and 0 not in other
    )


def _masks(mask: Tensor, query: Tensor, key: Tensor) -> bool:
    """Whether a mask is, beyond question, one of the scores of such operands."""
    batch, heads, length, _ = query.shape
    shape = mask.shape
    return (
        (mask.dtype is _dtype.bool or mask.dtype is query.dtype)
        and not mask.requires_grad
        and mask.device == query.device
        and (len(shape) == 2 or (len(shape) == 4 and shape[0] in (1, batch) and shape[1] in (1, heads)))
        and shape[-2] in (1, length)
        and shape[-1] in (1, key.shape[2])
    )


def _fits(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float, enable_gqa: bool) -> bool:
    """Whether the fused operators can take the operands."""
    if dropout_p or query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        return False
    batch, heads, length, width = query.shape
    if key.shape[0] != batch or value.shape[0] != batch or not width == key.shape[3] == value.shape[3]:
        return False
    if key.shape[1] != value.shape[1] or (key.shape[1] != heads and not enable_gqa):
        return False
    if not (batch and heads and length and width and key.shape[2]):
        return False
    if mask is None:
        return True
    if mask.requires_grad or mask.dim() not in (2, 4):
        return False
    wanted = (batch, heads, length, key.shape[2])[4 - mask.dim() :]
    return all(n in (1, w) for n, w in zip(mask.shape, wanted, strict=True))


def attention_math(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    dropout_mask: Tensor | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Tensor, Tensor]:
    """(attention, weights), in operators that can be differentiated twice. Halves are computed in float32."""
    given = query.dtype
    if given in (_dtype.float16, _dtype.bfloat16):
        query, key, value = (F.to(x, _dtype.float32) for x in (query, key, value))
    if enable_gqa:
        key = F.repeat_interleave(key, query.shape[-3] // key.shape[-3], -3)
        value = F.repeat_interleave(value, query.shape[-3] // value.shape[-3], -3)
    if is_causal:
        attn_mask = F.tril(F.ones([query.shape[-2], key.shape[-2]], dtype=_dtype.bool, device=query.device))
    if attn_mask is not None and attn_mask.dtype is _dtype.bool:
        blank = F.zeros(list(attn_mask.shape), dtype=query.dtype, device=query.device)
        attn_mask = F.masked_fill(blank, F.logical_not(attn_mask), -math.inf)
    # The root of the scale on both sides keeps the scores in range.
    factor = math.sqrt(1.0 / math.sqrt(query.shape[-1]) if scale is None else abs(scale))
    right = -factor if scale is not None and scale < 0 else factor
    scores = F.matmul(F.mul(query, factor), F.transpose(F.mul(key, right), -2, -1))
    if attn_mask is None:
        weights = F.softmax(scores, -1)
    else:
        scores = F.add(scores, attn_mask if attn_mask.dtype is scores.dtype else F.to(attn_mask, scores.dtype))
        weights = F._safe_softmax(scores, -1)
    if dropout_mask is not None:
        weights = F.masked_fill(weights, F.logical_not(dropout_mask), 0.0)
        value = F.mul(value, 1.0 / (1.0 - dropout_p))
    elif dropout_p > 0:
        weights = F.dropout(weights, dropout_p, True)
    return F.to(F.matmul(weights, value), given), F.to(weights, given)
