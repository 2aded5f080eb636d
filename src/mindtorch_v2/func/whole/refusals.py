"""What cannot run on a batch."""

from __future__ import annotations

from ..._tensor import Tensor
from ..batched import Level

__all__ = ["by_mask", "dynamic", "each", "no_tensor"]


def each(level: Level) -> None:
    """One by one, though the operator is a view."""


def dynamic(level: Level, name: str) -> None:
    """RuntimeError: the result has another shape for each example."""
    raise RuntimeError(
        f"vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over aten::{name}. Please file an "
        "issue at https://github.com/pytorch/pytorch/issues if you need this feature."
    )


def by_mask(level: Level, mask: Tensor) -> None:
    """RuntimeError where each example has a mask of its own."""
    if level(mask):
        raise RuntimeError(
            "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this because for each batch this would "
            "return a differently shaped Tensor. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature."
        )


def no_tensor(level: Level, name: str) -> None:
    """RuntimeError: the result is one number for all examples."""
    raise RuntimeError(
        f"Batching rule not implemented for aten::{name}. We could not generate a fallback since it gives no tensors."
    )
