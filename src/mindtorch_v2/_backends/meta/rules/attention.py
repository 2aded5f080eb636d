"""Rules of the fused attention pair, which `scaled_dot_product_attention` uses for four-dimensional operands of one
width."""

from __future__ import annotations

from typing import Any

from ..spec import Spec, format_strides
from ._common import not_implemented


def _by_position(like: Any) -> Spec:
    """like's shape (batch, heads, length, width) in the memory order (batch, length, heads, width)."""
    batch, heads, length, width = like.shape
    stride = (length * heads * width, width, heads * width, 1)
    return Spec((batch, heads, length, width), like.dtype, stride, like.dtype.opmath)


def flash_attention(query: Any, key: Any, value: Any) -> tuple[Spec, Spec]:
    """(output of query's shape and memory order, logsumexp [batch, heads, length] of at least float32)."""
    if query.dim() != 4:
        raise RuntimeError(
            "scaled_dot_product_attention_flash_attention: Accept only 4 dims inputs shape of {B, H, T, K}"
        )
    if not query.dtype.is_floating_point:
        raise not_implemented("flash_attention", query.dtype)
    batch, heads, length, _ = query.shape
    wide = query.dtype.opmath
    out = Spec(tuple(query.shape), query.dtype, format_strides(query), wide)
    return out, Spec((batch, heads, length), wide, (heads * length, 1, heads), wide)


def flash_attention_backward(query: Any, key: Any, value: Any, grad: Any, out: Any) -> tuple[Spec, Spec, Spec]:
    """The gradients of query, key and value."""
    return _by_position(query), _by_position(key), _by_position(value)
