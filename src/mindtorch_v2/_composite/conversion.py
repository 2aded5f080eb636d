"""`Tensor.to` in its forms: the tensor itself where nothing changes, else a recorded copy."""

from __future__ import annotations

from typing import Any

import numpy as np

from mindtorch_v2._dtype import int64
from mindtorch_v2._generated import functions as F
from mindtorch_v2._layout import preserve_format
from mindtorch_v2._tensor import Tensor, wrap


def _to(
    self: Tensor, dtype: Any, device: Any, non_blocking: bool = False, copy: bool = False, memory_format: Any = None
) -> Tensor:
    if (
        not copy
        and (dtype is None or dtype is self.dtype)
        and (device is None or device == self.device)
        and (memory_format in (None, preserve_format) or self.is_contiguous(memory_format=memory_format))
    ):
        return self
    return F._to_copy(self, dtype=dtype, device=device, non_blocking=non_blocking, memory_format=memory_format)


def to_dtype(
    self: Tensor, dtype: Any, non_blocking: bool = False, copy: bool = False, memory_format: Any = None
) -> Tensor:
    """self with another dtype."""
    return _to(self, dtype, None, non_blocking, copy, memory_format)


def to_device(
    self: Tensor, device: Any, dtype: Any, non_blocking: bool = False, copy: bool = False, memory_format: Any = None
) -> Tensor:
    """self on another device, with another dtype."""
    return _to(self, dtype, device, non_blocking, copy, memory_format)


def to_other(
    self: Tensor, other: Tensor, non_blocking: bool = False, copy: bool = False, memory_format: Any = None
) -> Tensor:
    """self with the dtype and on the device of `other`."""
    return _to(self, other.dtype, other.device, non_blocking, copy, memory_format)


def to_dtype_layout(
    self: Tensor,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """self with what is given of dtype and device."""
    return _to(self, dtype, device, non_blocking, copy, memory_format)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """self with the dtype and on the device of `other`."""
    return _to(self, other.dtype, other.device)


def pin_memory(self, device=None):
    """The tensor in memory that is pinned for copies to a device."""
    return self.pin_memory(device)


def shape_as_tensor(self):
    """The shape as a tensor of int64."""
    return wrap(np.array(self.shape, np.int64), int64)
