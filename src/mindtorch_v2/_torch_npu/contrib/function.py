"""Functions of `torch_npu.contrib`, by operators that are there."""

from __future__ import annotations

import math
from collections.abc import Callable

import mindtorch_v2 as torch

__all__ = ["fuse_add_softmax_dropout", "matmul_transpose", "roll"]


def roll(input1: torch.Tensor, shifts: int | list[int], dims: int | list[int] | None = None) -> torch.Tensor:
    """`torch.roll`."""
    return torch.roll(input1, shifts, dims if dims is not None else ())


def matmul_transpose(tensor1: torch.Tensor, tensor2: torch.Tensor) -> torch.Tensor:
    """`tensor1 @ tensor2.transpose(-1, -2)`, one launch: the product reads the second factor by its strides."""
    return torch.matmul(tensor1, tensor2.transpose(-1, -2))


def fuse_add_softmax_dropout(
    training: bool,
    dropout: Callable[[torch.Tensor], torch.Tensor],
    attn_mask: torch.Tensor,
    attn_scores: torch.Tensor,
    attn_head_size: float,
    p: float = 0.5,
    dim: int = -1,
) -> torch.Tensor:
    """`dropout(softmax(attn_mask + attn_scores / sqrt(attn_head_size)))`: weights of attention. `training` and `p` are those of `dropout`, the module."""
    scores = torch.add(attn_mask, attn_scores, alpha=1 / math.sqrt(attn_head_size))
    return dropout(torch.softmax(scores, dim))
