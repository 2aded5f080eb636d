"""`torch.types`: names for annotations."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, Union

from ._device import device
from ._dtype import dtype
from ._layout import layout
from ._storage import UntypedStorage
from ._tensor import Size, Tensor
from ._typed_storage import TypedStorage

Number = Union[int, float, bool]
Device = Union[device, str, int, None]
FileLike = Any
_int, _float, _bool, _complex = builtins.int, builtins.float, builtins.bool, builtins.complex
_dtype, _device, _layout = dtype, device, layout
_size = Union[Size, list[int], tuple[int, ...]]
_TensorOrTensors = Union[Tensor, Sequence[Tensor]]
Storage = Union[UntypedStorage, TypedStorage]

__all__ = ["Device", "FileLike", "Number", "Storage"]
