"""Causal masks that are known by their kind: attention need not make them where it has a way of its own."""

from __future__ import annotations

import warnings
from enum import IntEnum
from typing import Any

from ..._dispatch import ops
from ..._dtype import bool as _bool
from ..._tensor import Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """Where the diagonal of the mask lies, if there are not as many keys as queries."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask of `seq_len_q` by `seq_len_kv`, for the argument `attn_mask` of `scaled_dot_product_attention` alone."""

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant is CausalVariant.LOWER_RIGHT:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!", stacklevel=2
            )

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask itself: what may be seen."""
        diagonal = self.seq_len_kv - self.seq_len_q if self.variant is CausalVariant.LOWER_RIGHT else 0
        return ops.tril(ops.ones((self.seq_len_q, self.seq_len_kv), dtype=_bool, device=device), diagonal)

    @staticmethod
    def _dispatch(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: CausalBias,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """Attention under a mask of this kind. ValueError when it is to be causal besides."""
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        if attn_mask.variant is CausalVariant.UPPER_LEFT or attn_mask.seq_len_q == attn_mask.seq_len_kv:
            mask, is_causal = None, True
        else:
            mask = attn_mask._materialize(query.device)
        return ops.scaled_dot_product_attention(
            query, key, value, mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if getattr(func, "__name__", "") == "scaled_dot_product_attention":
            return cls._dispatch(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})

    def __repr__(self) -> str:  # type: ignore[override]
        return repr(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """The mask of (queries, keys) whose diagonal begins at the upper left. AssertionError for another number of dimensions."""
    return _made(CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """The mask of (queries, keys) whose diagonal ends at the lower right. AssertionError for another number of dimensions."""
    return _made(CausalVariant.LOWER_RIGHT, size)


def _made(variant: CausalVariant, size: tuple[int, ...]) -> CausalBias:
    if len(size) != 2:
        raise AssertionError(f"causal_{variant.name.lower()} only supports 2D tensors, got {len(size)}D")
    return CausalBias(variant, *size)
