"""Whether attention of PyTorch's form is one launch here, and its mask."""

from __future__ import annotations

from typing import Any

from ..._dispatch import ops
from ..._dtype import DTYPES
from ..._tensor import Tensor
from .chips import is_training_a2

_FLOATS = frozenset(DTYPES[name] for name in ("float32", "float16", "bfloat16"))
_LONGEST = 2048
_triangles: dict[Any, Tensor] = {}


def fits(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> bool:
    """Whether aclnnFlashAttentionScore takes the operands: four dimensions, one dtype of three, widths to 768, heads that are multiples."""
    if query.dtype not in _FLOATS or not query.dtype is key.dtype is value.dtype:
        return False
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4 or 0 in query.shape or 0 in key.shape:
        return False
    batch, heads, length, width = query.shape
    if key.shape[0] != batch or value.shape[0] != batch or key.shape[1:3] != value.shape[1:3]:
        return False
    if width != key.shape[3] or not 0 < value.shape[3] <= width <= 768 or heads > 256 or heads % key.shape[1]:
        return False
    if mask is not None:
        boolean = mask.dtype is DTYPES["bool"]
        whole = (batch, heads, length, key.shape[2])
        if mask.dim() > 4 or not (boolean or mask.dtype is query.dtype):
            return False
        if any(n not in (1, w) for n, w in zip(mask.shape, whole[4 - mask.dim() :], strict=True)):
            return False
    return is_training_a2()


def triangle(where: Any) -> Tensor:
    """The mask of causal attention that serves all lengths: 2048 x 2048, True above the diagonal. One for each device."""
    found = _triangles.get(where)
    if found is None:
        ones = ops.ones((_LONGEST, _LONGEST), dtype=DTYPES["bool"], device=where)
        found = _triangles[where] = ops.triu(ones, 1)
    return found


def hidden(mask: Tensor, batch: int, heads: int, length: int, keys: int) -> Tensor:
    """A mask that is True where nothing is seen, [S, S], [B, 1, S, S] or [B, N, S, S], of PyTorch's that says what may be seen."""
    lead = tuple(mask.shape[:-2])
    if all(n == 1 for n in lead):
        shape: tuple[int, ...] = (length, keys)
        mask = ops.reshape(mask, tuple(mask.shape[-2:]))
    else:
        per_head = len(lead) >= 1 and lead[-1] != 1
        shape = (batch, heads if per_head else 1, length, keys)
    return ops.logical_not(ops.contiguous(ops.expand(mask, shape)))


def shift(mask: Tensor, batch: int, heads: int, length: int, keys: int) -> Tensor:
    """Numbers that are added to the scores, [1, N, S, S] or [B, N, S, S]."""
    one = mask.dim() < 4 or mask.shape[0] == 1
    return ops.contiguous(ops.expand(mask, (1 if one else batch, heads, length, keys)))
