"""Modules that have the schema's operators of a namespace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._generated import functions


def operators_of(namespace: str, module: dict[str, Any]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module, given its globals: an operator is found, and kept there, when it is asked for."""
    operators = functions.NAMESPACES.get(namespace, {})

    def find(name: str) -> Any:
        if name not in operators:
            raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}")
        value = getattr(functions, operators[name])
        module[name] = value
        return value

    def names() -> list[str]:
        return sorted({*module, *operators})

    return find, names
