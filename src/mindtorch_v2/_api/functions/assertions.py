"""An assertion that is a call, so that tracers can see it."""

from __future__ import annotations

from typing import Any

from ..._dispatch.overrides import find_for, run_function
from ..._tensor import Tensor

__all__ = ["_assert"]


def _assert(condition: Any, message: Any) -> Any:
    """Raise AssertionError with `message` unless `condition` holds. A subclass of Tensor may see the call."""
    if type(condition) is not Tensor:
        special = find_for((condition,))
        if special is not None:
            return run_function(_assert, special, (condition, message), {})
    if not condition:
        raise AssertionError(message)
    return None
