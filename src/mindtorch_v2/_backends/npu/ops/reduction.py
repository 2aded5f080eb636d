"""Reductions whose corrections, dimensions or definitions aclnn words otherwise."""

from __future__ import annotations

import math
from typing import Any

from ...._dispatch import ops
from ...._dtype import DTYPES
from ...._generated.npu.functions import (
    aclnnAll,
    aclnnAny,
    aclnnArgMax,
    aclnnArgMin,
    aclnnLinalgVectorNorm,
    aclnnMaxDim,
    aclnnMinDim,
    aclnnVarCorrection,
)
from .. import copies
from ..aclnn import launch
from ..arguments import dims
from ..creation import empty


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
        launch(aclnnVarCorrection, self._payload, dims(self, dim), int(number), keepdim, out[0])
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
        launch(function, flat._payload, 0, False, target)
    elif not self.dim():
        launch(function, ops.reshape(self, (1,))._payload, 0, False, result)
    else:
        launch(function, self._payload, dim, keepdim, result)


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


_SMALL_INTEGERS = frozenset(DTYPES[name] for name in ("int8", "uint8", "int16", "int32"))


def _extreme(function: Any, out: Any, self: Any, dim: int, keepdim: bool) -> tuple | None:
    if not out[0].size:
        return None
    if self.dtype not in _SMALL_INTEGERS:
        launch(function, self._payload, dim, keepdim, out[0], out[1])
        return None
    # The functions take int64 only of the integers.
    values = empty(tuple(out[0].shape), None, DTYPES["int64"], self.device)
    launch(function, ops._to_copy(self, dtype=DTYPES["int64"])._payload, dim, keepdim, values, out[1])
    copies.copy_on_device(out[0], values)
    return None


def max_dim(out: Any, self: Any, dim: int, keepdim: bool) -> tuple | None:
    """(the largest elements along dim, their places)."""
    return _extreme(aclnnMaxDim, out, self, dim, keepdim)


def min_dim(out: Any, self: Any, dim: int, keepdim: bool) -> tuple | None:
    """(the smallest elements along dim, their places)."""
    return _extreme(aclnnMinDim, out, self, dim, keepdim)


def _truth(function: Any, out: Any, self: Any, over: list[int], keepdim: bool) -> None:
    if self.dtype.is_complex:  # which the functions do not take
        self = ops.ne(self, 0)
    if out[0].size:
        launch(function, self._payload, over, keepdim, out[0])


def all_of_all(out: Any, self: Any) -> None:
    """Whether all elements are true."""
    _truth(aclnnAll, out, self, dims(self, None), False)


def all_of_dim(out: Any, self: Any, dim: int, keepdim: bool) -> None:
    """Whether all elements along dim are true."""
    _truth(aclnnAll, out, self, [dim], keepdim)


def all_of_dims(out: Any, self: Any, dim: Any, keepdim: bool) -> None:
    """Whether all elements along dims are true."""
    _truth(aclnnAll, out, self, dims(self, dim), keepdim)


def any_of_all(out: Any, self: Any) -> None:
    """Whether an element is true."""
    _truth(aclnnAny, out, self, dims(self, None), False)


def any_of_dim(out: Any, self: Any, dim: int, keepdim: bool) -> None:
    """Whether an element along dim is true."""
    _truth(aclnnAny, out, self, [dim], keepdim)


def any_of_dims(out: Any, self: Any, dim: Any, keepdim: bool) -> None:
    """Whether an element along dims is true."""
    _truth(aclnnAny, out, self, dims(self, dim), keepdim)


def vector_norm(out: Any, self: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """The norm of the orders that the function has (0, 1, 2, 3, infinite), and of others by powers; float64 and complex by their parts."""
    over, result = dims(self, dim), out[0]
    if self.dtype in _NORM_DTYPES and (ord in (0, 1, 2, 3) or math.isinf(ord)):
        if result.size:
            launch(aclnnLinalgVectorNorm, self._payload, float(ord), over, keepdim, result.dtype, result)
        return None
    size = ops.abs(self)
    if size.dtype is not result.dtype:
        size = ops._to_copy(size, dtype=result.dtype)
    if math.isinf(ord):
        return ops.amax(size, over, keepdim) if ord > 0 else ops.amin(size, over, keepdim)
    if ord == 0:
        return ops.sum(ops._to_copy(ops.ne(size, 0), dtype=result.dtype), over, keepdim)
    if ord == 1:
        return ops.sum(size, over, keepdim)
    return ops.pow(ops.sum(ops.pow(size, ord), over, keepdim), 1 / ord)


_NORM_DTYPES = frozenset(DTYPES[name] for name in ("float32", "float16", "bfloat16"))


def std_mean(out: Any, self: Any, dim: Any, correction: Any, keepdim: bool) -> tuple:
    over = dims(self, dim)
    return ops.std(self, over, correction=_number(correction), keepdim=keepdim), ops.mean(self, over, keepdim)
