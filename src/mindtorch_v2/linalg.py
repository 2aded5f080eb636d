"""`torch.linalg`: the schema's operators of that namespace."""

from __future__ import annotations

from typing import Any

from ._backends.common.errors import LinAlgError
from ._generated import functions as _functions

__all__ = ["LinAlgError"]
_OPERATORS = _functions.NAMESPACES.get("linalg", {})


def __getattr__(name: str) -> Any:
    if name not in _OPERATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_functions, _OPERATORS[name])
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_OPERATORS})
