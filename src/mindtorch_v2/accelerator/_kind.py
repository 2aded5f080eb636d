"""The accelerator that there is, and which of its devices an argument means."""

from __future__ import annotations

from typing import Any

from .. import npu
from .._device import NO_ACCELERATOR, placed as _device


def require() -> None:
    """RuntimeError, in PyTorch's words, without an accelerator."""
    if not npu.is_available():
        raise RuntimeError(NO_ACCELERATOR)


def index_of(device: Any, optional: bool = True) -> int:
    """The index of a device: a number, a device or its name; None, and devices without an index, are the current one where that is `optional`.

    ValueError for another kind of device, and where an index is wanted and there is none; RuntimeError without an accelerator.
    """
    if isinstance(device, int) and not isinstance(device, bool):
        require()
        return device
    if device is None:
        if not optional:
            raise ValueError("Expected a torch.device with a specified index or an integer, but got:None")
        require()
        return npu.current_device()
    require()
    where = _device(device)
    if where.type != "npu":
        raise ValueError(f"{where.type} doesn't match the current accelerator npu.")
    if where.index is None and not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    return npu.current_device() if where.index is None else where.index
