"""Every operator's public function by native name (`ops.add`, `ops.copy_`), for floors below the generated one.

The names are set when the package is put together; using one before that is an AttributeError.
"""

from __future__ import annotations

from typing import Any, Callable

Function = Callable[..., Any]


def publish(functions: dict[str, Function]) -> None:
    """Make functions available under their names."""
    globals().update(functions)


def __getattr__(name: str) -> Function:
    raise AttributeError(f"there is no operator {name!r} (or the package is not put together yet)")
