"""Taking the hooks of normalizations off again."""

from __future__ import annotations

from typing import Any, cast

from ..modules.module import Module


def remove(module: Module, kind: type, name: str, what: str) -> Module:
    """Let the forward pre-hook of a class that makes the parameter ``name`` undo itself. ValueError when there is none."""
    hooks = cast("dict[int, Any]", module._forward_pre_hooks)
    for key, hook in hooks.items():
        if isinstance(hook, kind) and cast(Any, hook).name == name:
            cast(Any, hook).remove(module)
            del hooks[key]
            return module
    raise ValueError(f"{what} of '{name}' not found in {module}")
