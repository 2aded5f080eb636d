"""`make_tensor`: random tensors for tests."""

from __future__ import annotations

from typing import Any

from .._dispatch import ops
from .._dtype import dtype as _dtype
from .._tensor import Tensor


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

    exclude_zero: no element is zero; noncontiguous: every second element of a wider tensor.
    """
    size = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else tuple(shape)
    wide = (*size[:-1], size[-1] * 2) if noncontiguous and size else size
    category = dtype.category
    if category == 0:
        made = ops.randint(0, 2, wide, dtype=dtype, device=device)
    elif category == 1:
        least = 0 if not dtype.is_signed else -9
        made = ops.randint(
            int(least if low is None else low), int(10 if high is None else high), wide, dtype=dtype, device=device
        )
    else:
        bottom, top = (-9.0 if low is None else low), (9.0 if high is None else high)
        if category == 3:
            part = dtype.to_real()
            made = ops.complex(*(ops.rand(wide, dtype=part, device=device) * (top - bottom) + bottom for _ in range(2)))
        else:
            made = (ops.rand(wide, device=device) * (top - bottom) + bottom).to(dtype)
    if exclude_zero:
        made = ops.masked_fill(made, made == 0, 1)
    if noncontiguous and size:
        made = made[..., ::2]
    if memory_format is not None:
        made = ops.contiguous(made, memory_format=memory_format)
    return made.requires_grad_(True) if requires_grad else made
