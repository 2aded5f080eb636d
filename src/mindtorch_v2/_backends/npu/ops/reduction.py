"""Reductions whose corrections, dimensions or definitions aclnn words otherwise."""

from __future__ import annotations

from typing import Any

from ...._dispatch import ops
from ...._dtype import DTYPES
from ...._generated.npu.functions import aclnnArgMax, aclnnArgMin, aclnnVarCorrection
from ..aclnn import launch
from ..arguments import dims


def _number(correction: Any) -> Any:
    return 1 if correction is None else correction


def var(out: Any, self: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    number = _number(correction)
    if int(number) != number:  # aclnn takes whole numbers only
        mean = ops.mean(self, dims(self, dim), True)
        squares = ops.sum(ops.square(ops.sub(self, mean)), dims(self, dim), keepdim)
        count = self.numel() // max(squares.numel(), 1)
        return ops.div(squares, max(count - number, 0.0))
    if out[0].size:
        launch(aclnnVarCorrection, self._data, dims(self, dim), int(number), keepdim, out[0])
    return None


def std(out: Any, self: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    return ops.sqrt(ops.var(self, dims(self, dim), correction=_number(correction), keepdim=keepdim))


def var_mean(out: Any, self: Any, dim: Any, correction: Any, keepdim: bool) -> tuple:
    over = dims(self, dim)
    return ops.var(self, over, correction=_number(correction), keepdim=keepdim), ops.mean(self, over, keepdim)


def _arg(function: Any, out: Any, self: Any, dim: int | None, keepdim: bool) -> None:
    result = out[0]
    if not result.size:
        return
    if dim is None:
        flat = ops.reshape(self, (-1,))
        target = result.__class__((), (), result.dtype, result.offset, result.storage)
        launch(function, flat._data, 0, False, target)
    elif not self.dim():
        launch(function, ops.reshape(self, (1,))._data, 0, False, result)
    else:
        launch(function, self._data, dim, keepdim, result)


def argmax(out: Any, self: Any, dim: int | None, keepdim: bool) -> None:
    _arg(aclnnArgMax, out, self, dim, keepdim)


def argmin(out: Any, self: Any, dim: int | None, keepdim: bool) -> None:
    _arg(aclnnArgMin, out, self, dim, keepdim)


def count_nonzero(out: Any, self: Any, dim: Any) -> Any:
    return ops.sum(ops.ne(self, 0), dims(self, dim), False, dtype=DTYPES["int64"])


def nansum(out: Any, self: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if self.dtype.is_floating_point:
        self = ops.where(ops.isnan(self), ops.zeros_like(self), self)
    return ops.sum(self, dims(self, dim), keepdim, dtype=dtype)


def logcumsumexp(out: Any, self: Any, dim: int) -> Any:
    """From the largest so far: stable, and exact where one element dominates."""
    if not self.dim() or not self.numel():
        return ops.clone(self)
    top = ops.amax(self, [dim], True)
    top = ops.where(ops.isinf(top), ops.zeros_like(top), top)
    return ops.add(ops.log(ops.cumsum(ops.exp(ops.sub(self, top)), dim)), top)
