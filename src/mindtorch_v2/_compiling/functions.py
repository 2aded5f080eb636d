"""The compiled form of a function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .choice import Compiled

_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


def check(backend: Any, mode: str | None, options: dict[str, Any] | None) -> None:
    """RuntimeError if both `mode` and `options` are given, or for an unknown mode."""
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if backend == "inductor" and mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")


def compiled_call(
    model: Callable[..., Any],
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Callable[..., Any]:
    """`function`, of the arguments of `torch.compile`."""
    check(backend, mode, options)
    return model if disable else function(model, backend)


def function(model: Callable[..., Any], backend: Any = "inductor") -> Callable[..., Any]:
    """The compiled form of what is called."""
    if getattr(model, "_is_torch_compile", False):
        return model
    compiled = Compiled(model) if backend != "eager" else model

    def inner(*args: Any, **kwargs: Any) -> Any:
        return compiled(*args, **kwargs)

    assigned = [name for name in functools.WRAPPER_ASSIGNMENTS if hasattr(model, name)]
    functools.update_wrapper(inner, model, assigned, () if not hasattr(model, "__dict__") else ("__dict__",))
    inner._torchdynamo_orig_callable = model  # type: ignore[attr-defined]
    inner._is_torch_compile = True  # type: ignore[attr-defined]
    return inner
