"""Handles of hooks, and hooks that are not saved."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from .._handles import RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


def unserializable_hook(f: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function as a hook that saving a tensor should warn of."""

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        return f(*args, **kwargs)

    marked: Any = call
    marked.__torch_unserializable__ = True
    return marked


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn of backward hooks of `tensor` that saving it would lose."""
    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized. If this is expected, "
                "you can decorate the function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )
