"""Every operator's public function by native name (`ops.add`, `ops.copy_`), for floors below the generated one.

The generated floor is known only when the package is put together; using a name before that is an AttributeError.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

_functions: ModuleType | None = None


def publish(functions: ModuleType) -> None:
    """Make the functions of a module available."""
    global _functions
    _functions = functions


def __getattr__(name: str) -> Callable[..., Any]:
    if _functions is None or name.startswith("__"):
        raise AttributeError(f"there is no operator {name!r} (or the package is not put together yet)")
    value = getattr(_functions, name)
    globals()[name] = value
    return value
