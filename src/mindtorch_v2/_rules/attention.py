"""Rules of the fused attention pair, which `scaled_dot_product_attention` uses for four-dimensional operands of one
width."""

from __future__ import annotations

from typing import Any

from ._common import check_dtype
from .geometry import format_strides
from .spec import Spec, rule


def _by_position(like: Any) -> Spec:
    """like's shape (batch, heads, length, width) in the memory order (batch, length, heads, width)."""
    batch, heads, length, width = like.shape
    stride = (length * heads * width, width, heads * width, 1)
    return Spec((batch, heads, length, width), like.dtype, stride, like.dtype.opmath)


@rule(flops="attention(query, key, value)")
def flash_attention(query: Any, key: Any, value: Any, dropout_p: float = 0.0) -> tuple[Spec, Spec]:
    """(output of query's shape and memory order, logsumexp [batch, heads, length] of at least float32)."""
    if query.dim() != 4:
        raise RuntimeError(
            "scaled_dot_product_attention_flash_attention: Accept only 4 dims inputs shape of {B, H, T, K}"
        )
    name = "scaled_dot_product_attention_flash_attention"
    if not query.dtype.is_floating_point:
        raise RuntimeError(f"{name}: Expected data type in FP32, FP64, BF16, FP16, but got {query.dtype.cpp} instead.")
    if dropout_p > 0:
        raise RuntimeError(f"{name}: Currently do not support dropout > 0")
    if not query.shape[3] == key.shape[3] == value.shape[3]:
        raise RuntimeError(f"{name}: Q/K/V should have the same head size")
    if not tuple(key.shape[:3]) == tuple(value.shape[:3]) == (query.shape[0], query.shape[1], key.shape[2]):
        # PyTorch reads on in the memory of its neighbour here.
        raise RuntimeError(f"{name}: Q/K/V should have the same batch size and heads, and K/V the same length")
    for tensor in (key, value):
        if tensor.dtype is not query.dtype:
            raise RuntimeError(f"expected scalar type {query.dtype.cpp} but found {tensor.dtype.cpp}")
    batch, heads, length, _ = query.shape
    wide = query.dtype.opmath
    out = Spec(tuple(query.shape), query.dtype, format_strides(query), wide)
    return out, Spec((batch, heads, length), wide, (heads * length, 1, heads), wide)


@rule(
    flops="5 * attention(query, key, value) // 2"
)  # the scores again, and two products each for their gradient and that of the values
def flash_attention_backward(query: Any, key: Any, value: Any, grad: Any, out: Any) -> tuple[Spec, Spec, Spec]:
    """The gradients of query, key and value; all are floating and of one dtype."""
    for tensor in (query, key, value, grad, out):
        check_dtype(tensor.dtype, "floating_real", "flash_attention_backward")
        if tensor.dtype is not grad.dtype:
            raise RuntimeError(f"expected scalar type {grad.dtype.cpp} but found {tensor.dtype.cpp}")
    return _by_position(query), _by_position(key), _by_position(value)
