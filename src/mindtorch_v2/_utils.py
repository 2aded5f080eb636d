"""The names of `torch._utils`: how tensors are rebuilt from files, and the attributes that pickles carry."""

from __future__ import annotations

import functools
import warnings
from types import ModuleType
from typing import Any

from . import _device
from ._dtype import dtype
from ._serialization.rebuild import (
    _get_obj_state,
    _rebuild_device_tensor_from_cpu_tensor,
    _rebuild_device_tensor_from_numpy,
    _rebuild_meta_tensor_no_storage,
    _rebuild_nested_tensor,
    _rebuild_parameter,
    _rebuild_parameter_with_state,
    _rebuild_sparse_tensor,
    _rebuild_tensor,
    _rebuild_tensor_v2,
    _rebuild_tensor_v3,
    _set_obj_state,
)

__all__ = [
    "_element_size",
    "_get_available_device_type",
    "_get_device_index",
    "_get_device_module",
    "_get_obj_state",
    "_rebuild_device_tensor_from_cpu_tensor",
    "_rebuild_device_tensor_from_numpy",
    "_rebuild_meta_tensor_no_storage",
    "_rebuild_nested_tensor",
    "_rebuild_parameter",
    "_rebuild_parameter_with_state",
    "_rebuild_sparse_tensor",
    "_rebuild_tensor",
    "_rebuild_tensor_v2",
    "_rebuild_tensor_v3",
    "_set_obj_state",
    "is_compiling",
]


def _element_size(dtype: dtype) -> int:
    """The bytes of an element."""
    return dtype.itemsize


def _get_available_device_type() -> str | None:
    """The type of the accelerator that there is, or None."""
    return "npu" if _get_device_module("npu").is_available() else None


@functools.cache
def _get_device_module(device_type: str) -> ModuleType:
    """The module `torch.<device_type>`.

    Raises:
        RuntimeError: if there is none.
    """
    import mindtorch_v2  # the package's own names; stubs of devices are among them where it serves as torch

    found = getattr(mindtorch_v2, device_type, None)
    if not isinstance(found, ModuleType):
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as 'torch.{device_type}'."
        )
    return found


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a device: an int, a device or its name; None and devices without an index are the current one if `optional`.

    Raises:
        ValueError: for the CPU unless `allow_cpu` (then it is -1), and where there is no index and none is `optional`.
    """
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    place = _device.placed(device) if isinstance(device, str) else device
    index = None
    if isinstance(place, _device.device):
        if place.type == "cpu":
            if not allow_cpu:
                raise ValueError(f"Expected a non cpu device, but got: {place}")
            return -1
        index = place.index
    if index is not None:
        return index
    if not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    kind = place.type if isinstance(place, _device.device) else _get_available_device_type()
    return 0 if kind is None else _get_device_module(kind).current_device()


def is_compiling() -> bool:
    """Whether a program is being compiled: never. It warns that `torch.compiler.is_compiling` is its name now."""
    warnings.warn("`torch._utils.is_compiling` is deprecated. Use `torch.compiler.is_compiling` instead.", stacklevel=2)
    return False
