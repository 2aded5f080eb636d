"""Operators that are made of others."""

from __future__ import annotations

from typing import Any

from my_ops.generated.functions import my_ops_difference, my_ops_scaled_tanh


def contrast(self: Any, other: Any) -> Any:
    """tanh of the difference, twice as large."""
    return my_ops_scaled_tanh(my_ops_difference(self, other), scale=2)
