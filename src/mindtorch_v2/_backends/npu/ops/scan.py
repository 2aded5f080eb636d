"""Running extremes, of tensors without dimensions too."""

from __future__ import annotations

from typing import Any

from ...._dispatch import ops
from ...._dtype import DTYPES
from ...._generated.npu.functions import aclnnCummax, aclnnCummin
from ..aclnn import launch


def _running(function: Any, out: Any, self: Any, dim: int) -> tuple | None:
    if not self.dim():  # aclnn takes none; one element is its own extreme
        return ops.clone(self), ops.zeros((), dtype=DTYPES["int64"], device=self.device)
    if out[0].size:
        launch(function, self._payload, dim, out[0], out[1])
    return None


def cummax(out: Any, self: Any, dim: int) -> tuple | None:
    """(the largest elements so far, their places)."""
    return _running(aclnnCummax, out, self, dim)


def cummin(out: Any, self: Any, dim: int) -> tuple | None:
    """(the smallest elements so far, their places)."""
    return _running(aclnnCummin, out, self, dim)
