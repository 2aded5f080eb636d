"""Joining and rolling."""

from __future__ import annotations

from typing import Any

from ...._dispatch import ops
from ...._generated.npu.functions import aclnnCat, aclnnRepeat, aclnnRoll
from ..aclnn import launch
from ..arguments import dims as all_dims, spread
from ..run import cast


def cat(out: Any, tensors: list, dim: int) -> None:
    result = out[0]
    given = [t for t in tensors if t.numel()]
    if given:
        payloads = [t._payload if t.dtype is result.dtype else cast(t._payload, result.dtype) for t in given]
        launch(aclnnCat, payloads, dim, result)


def roll(out: Any, self: Any, shifts: Any, dims: Any) -> Any:
    if not out[0].size:
        return None
    moved = spread(shifts, 1)
    over = all_dims(self, dims) if dims else []
    if not over:  # the flattened tensor is rolled
        flat = ops.roll(ops.reshape(self, (-1,)), moved, [0]) if self.dim() != 1 else None
        if flat is not None:
            return ops.reshape(flat, tuple(self.shape))
        over = [0]
    launch(aclnnRoll, self._payload, moved, over, out[0])
    return None


_MOST_REPEATS = 4  # dimensions that the function repeats


def repeat(out: Any, self: Any, repeats: Any) -> Any:
    """The tensor side by side, as often as `repeats` says for each dimension."""
    if not out[0].size:
        return None
    if len(repeats) <= _MOST_REPEATS:
        launch(aclnnRepeat, self._payload, list(repeats), out[0])
        return None
    made = ops.reshape(self, (*(1,) * (len(repeats) - self.dim()), *self.shape))
    for dim, count in enumerate(repeats):
        if count != 1:
            made = ops.cat([made] * count, dim)
    return ops.clone(made) if made._payload.storage is self._payload.storage else made
