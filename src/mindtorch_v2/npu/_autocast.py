"""What automatic mixed precision does on NPUs, by torch_npu's former names."""

from __future__ import annotations

from typing import Any

from .._dtype import bfloat16, dtype, float16
from ..amp import _state


def get_amp_supported_dtype() -> list[dtype]:
    """The dtypes that `autocast` may compute in."""
    return [float16, bfloat16]


def is_autocast_enabled() -> bool:
    """Whether autocast is on for NPUs in this thread."""
    return _state.is_autocast_enabled("npu")


def set_autocast_enabled(enable: bool) -> None:
    """Switch autocast for NPUs in this thread."""
    _state.set_autocast_enabled("npu", enable)


def get_autocast_dtype() -> dtype:
    """The dtype that autocast computes in on NPUs in this thread."""
    return _state.get_autocast_dtype("npu")


def set_autocast_dtype(dtype: Any) -> None:
    """Let autocast compute in another dtype on NPUs in this thread."""
    _state.set_autocast_dtype("npu", dtype)
