"""`make_tensor`: random tensors for tests."""

from __future__ import annotations

import math
import warnings
from typing import Any

from .._dispatch import ops
from .._dtype import FLOAT8, dtype as _dtype, finfo, float32, iinfo
from .._tensor import Tensor


def _limits(dtype: _dtype) -> tuple[Any, Any]:
    """(the least value of a dtype, what is above all of them; for floats the largest value)."""
    if dtype.category == 0:
        return 0, 2
    if dtype.category == 1:
        return iinfo(dtype).min, iinfo(dtype).max + 1
    return finfo(dtype).min, finfo(dtype).max


def _interval(dtype: _dtype, low: Any, high: Any) -> tuple[Any, Any]:
    """The bounds of random values, within those of the dtype. ValueError for bounds between which no value lies."""
    usual = (
        (0, 2)
        if dtype.category == 0
        else (0, 10)
        if dtype.category == 1 and not dtype.is_signed
        else (-9, 10 if dtype.category == 1 else 9)
    )
    low, high = usual[0] if low is None else low, usual[1] if high is None else high
    least, most = _limits(dtype)
    if any(isinstance(bound, float) and math.isnan(bound) for bound in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low!r} and high={high!r}")
    if low == high and dtype.category > 1:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 and will be removed in "
            "2.3. Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=3,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < least or low >= most:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports [{least}, {most})"
        )
    low, high = (min(max(bound, least), most) for bound in (low, high))
    return (math.ceil(low), math.ceil(high)) if dtype.category < 2 else (low, high)


def _fill_uniformly(made: Tensor, low: float, high: float) -> None:
    """Fill a tensor with values from [low, high), whose distance may be more than the dtype holds."""
    if high - low >= finfo(made.dtype).max:
        made.uniform_(low / 2, high / 2).mul_(2)
    else:
        made.uniform_(low, high)


def make_tensor(
    *shape: Any,
    dtype: _dtype,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor with values drawn uniformly from [low, high): [-9, 9) by default, [0, 2) for bool, [0, 10) for uint8.

    exclude_zero: no element is zero; noncontiguous: every second element of a wider tensor. Bounds beyond the dtype's are brought to them. ValueError for
    bounds that are NaN, in the wrong order or leave nothing, and for options that exclude each other.
    """
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"noncontiguous={noncontiguous} and memory_format={memory_format}"
        )
    if requires_grad and dtype.category < 2:
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype}"
        )
    size = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else tuple(shape)
    wide = (*size[:-1], size[-1] * 2) if noncontiguous and size else size
    category = dtype.category
    bottom, top = _interval(dtype, low, high)
    if category < 2:
        made = ops.randint(bottom, top, wide, dtype=dtype, device=device)
    else:
        made = ops.empty(wide, dtype=float32 if dtype in FLOAT8 else dtype, device=device)
        _fill_uniformly(ops.view_as_real(made) if category == 3 else made, bottom, top)
        made = made.to(dtype)
    if noncontiguous and size:
        made = made[..., 1::2]  # with an offset too
    elif memory_format is not None:
        made = ops.clone(made, memory_format=memory_format)
    if exclude_zero:
        made[made == 0] = finfo(dtype).tiny if category > 1 else 1
    return made.requires_grad_(True) if requires_grad else made
