"""`torch._check` and its relatives: assertions that raise the error a program wants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch_v2

_DEFAULT = "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an enhancement request to PyTorch.)"


def _check_with(error_type: type[Exception], cond: bool, message: Callable[[], Any] | None = None) -> None:
    """Raise `error_type` unless `cond` holds.

    Raises:
        TypeError: if `cond` is not a bool, or `message` cannot be called.
    """
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        raise error_type(_DEFAULT)
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """Raise RuntimeError unless `cond` holds."""
    _check_with(RuntimeError, cond, message)


def _check_is_size(i: int, message: Callable[[], Any] | None = None, *, max: int | None = None) -> None:
    """Raise RuntimeError unless `i` can be a size (and is at most `max`)."""
    _check_with(RuntimeError, bool(i >= 0), message)
    if max is not None:
        _check_with(RuntimeError, bool(i <= max), message)


def _check_index(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """Raise IndexError unless `cond` holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """Raise ValueError unless `cond` holds."""
    _check_with(ValueError, cond, message)


def _check_not_implemented(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """Raise NotImplementedError unless `cond` holds."""
    _check_with(NotImplementedError, cond, message)


def _check_type(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """Raise TypeError unless `cond` holds."""
    _check_with(TypeError, cond, message)


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise `error_type` unless every element of the bool tensor `cond` holds.

    Raises:
        TypeError: if `cond` is not a bool tensor.
    """
    if not isinstance(cond, mindtorch_v2.Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != mindtorch_v2.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all().item()), message)


def _check_tensor_all(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise RuntimeError unless every element of the bool tensor `cond` holds."""
    _check_tensor_all_with(RuntimeError, cond, message)
