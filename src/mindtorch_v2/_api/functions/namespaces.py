"""Modules that have the schema's operators of a namespace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._generated import functions


def operators_of(namespace: str, module: dict[str, Any]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module, given its globals: an operator is found, and kept there, when it is asked for.
    Its `__all__` has them too."""
    operators = functions.NAMESPACES.get(namespace, {})
    module["__all__"] = [*module.get("__all__", ()), *operators]

    def find(name: str) -> Any:
        if name not in operators:
            raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}")
        value = getattr(functions, operators[name])
        module[name] = value
        return value

    def names() -> list[str]:
        return sorted({*module, *operators})

    return find, names
