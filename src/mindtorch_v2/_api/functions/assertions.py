"""Assertions that are calls, so that tracers can see them."""

from __future__ import annotations

from typing import Any

from ..._dispatch.native import builtin
from ..._dispatch.overrides import find_for, run_function
from ..._tensor import Tensor

__all__ = ["_assert", "_assert_async"]

_DEFAULT = "Expected Tensor with single nonzero value, but got zero"


def _assert(condition: Any, message: Any) -> Any:
    """Raise AssertionError with `message` unless `condition` holds. A subclass of Tensor may see the call."""
    if type(condition) is not Tensor:
        special = find_for((condition,))
        if special is not None:
            return run_function(_assert, special, (condition, message), {})
    if not condition:
        raise AssertionError(message)
    return None


@builtin
def _assert_async(input: Tensor, assert_msg: str = _DEFAULT) -> None:
    """Raise RuntimeError with `assert_msg` unless the one element of `input` is true; on the CPU at once.

    Raises:
        RuntimeError: also if there is no element, or more than one.
    """
    if input.device.type != "meta" and not bool(input):
        raise RuntimeError(assert_msg)
