"""`torch.compile` and its relatives: a function that should be compiled is returned as it is, a module in a module that calls it."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from mindtorch_v2._torch_proxy.placeholders import NoOpContext
from mindtorch_v2.nn.modules.module import Module


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Return a function as it is, and a module in an `OptimizedModule` (unless `disable`); a decorator that does when no model is given.

    Raises:
        RuntimeError: if both `mode` and `options` are given.
        AssertionError: if `model` cannot be called.
    """
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if model is None:
        return functools.partial(compile, backend=backend, disable=disable)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if isinstance(model, Module) and not disable:
        from .optimized import OptimizedModule

        return OptimizedModule(model)
    return model


def disable(
    fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None, wrapping: bool = True
) -> Any:
    """Return `fn`, which no compiler touches anyway, or a decorator that does."""
    return (lambda inner: inner) if fn is None else fn


def _disable_dynamo(fn: Callable[..., Any] | None = None, recursive: bool = True) -> Any:
    """Return `fn`, or a decorator that does."""
    return disable(fn, recursive)


def substitute_in_graph(original_fn: Callable[..., Any], **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that returns its function: there is no graph in which `original_fn` could be replaced."""
    return lambda traceable_fn: traceable_fn


class set_stance(NoOpContext):
    """Accepts every stance of the compiler, as a call, a context or a decorator; nothing is compiled anyway."""

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend: str | Callable[..., Any] | None = None,
    ) -> None:
        self.stance = stance


def check_compiler_ok_for_platform(compiler: str) -> bool:
    """Whether a compiler of C++ is there and is one of those that wheels of PyTorch are made with here: gcc, or clang on a Mac."""
    path = shutil.which(compiler)
    if path is None:
        return False
    names = ("clang++", "clang") if sys.platform == "darwin" else ("g++", "gcc", "gnu-c++", "gnu-cc")
    if any(name in os.path.realpath(path) for name in names):
        return True
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)  # ccache and its like
    return said.returncode == 0 and any(name in said.stdout.lower() for name in (*names, "free software foundation"))


_backend: Any = "inductor"


def set_default_backend(backend: Any) -> None:
    """Remember the backend that `compile` would take; it compiles nothing."""
    global _backend
    _backend = backend


def get_default_backend() -> Any:
    """The backend that was set, PyTorch's default at first."""
    return _backend
