"""Fresh tensors."""

from __future__ import annotations

from typing import Any

from ...._dispatch import ops
from ...._generated.npu.functions import (
    aclnnArange,
    aclnnInplaceFillScalar,
    aclnnInplaceOne,
    aclnnInplaceZero,
    aclnnTril,
    aclnnTriu,
)
from ..aclnn import launch


def empty(out: Any, *args: Any) -> None:
    """Nothing is written."""
    out[0]


def zeros(out: Any, *args: Any) -> None:
    if out[0].size:
        launch(aclnnInplaceZero, out[0])


def ones(out: Any, *args: Any) -> None:
    if out[0].dtype.is_complex:  # which aclnnInplaceOne does not take
        full(out, None, 1)
    elif out[0].size:
        launch(aclnnInplaceOne, out[0])


def full(out: Any, size: Any, fill_value: Any, *args: Any) -> None:
    if out[0].size:
        launch(aclnnInplaceFillScalar, out[0], fill_value)


def full_like(out: Any, self: Any, fill_value: Any, *args: Any) -> None:
    full(out, None, fill_value)


def new_full(out: Any, self: Any, size: Any, fill_value: Any, *args: Any) -> None:
    full(out, None, fill_value)


def arange(out: Any, end: Any, *args: Any) -> None:
    _range(out, 0, end, 1)


def arange_from(out: Any, start: Any, end: Any, *args: Any) -> None:
    _range(out, start, end, 1)


def arange_step(out: Any, start: Any, end: Any, step: Any, *args: Any) -> None:
    _range(out, start, end, step)


def _range(out: Any, start: Any, end: Any, step: Any) -> None:
    """An integral range counts with truncated numbers, as PyTorch does, though its length is that of the given ones."""
    result = out[0]
    if not result.size:
        return
    if not result.dtype.is_floating_point:
        start, step = int(start), int(step)
        end = start + step * result.size
        if not step:
            launch(aclnnInplaceFillScalar, result, start)
            return
    launch(aclnnArange, start, end, step, result)


def scalar_tensor(out: Any, s: Any, *args: Any) -> None:
    full(out, None, s)


def _triangle(function: Any, out: Any, self: Any, diagonal: int) -> Any:
    if not out[0].size:
        return None
    if not self.dtype.is_complex:
        launch(function, self._payload, diagonal, out[0])
        return None
    # Real and imaginary parts, each a matrix: the function takes no complex numbers.
    parts = ops.movedim(ops.view_as_real(self), -1, 0)
    name = ops.tril if function is aclnnTril else ops.triu
    return ops.view_as_complex(ops.contiguous(ops.movedim(name(parts, diagonal), 0, -1)))


def tril(out: Any, self: Any, diagonal: int) -> Any:
    """The lower triangle."""
    return _triangle(aclnnTril, out, self, diagonal)


def triu(out: Any, self: Any, diagonal: int) -> Any:
    """The upper triangle."""
    return _triangle(aclnnTriu, out, self, diagonal)
