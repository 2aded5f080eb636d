"""The relatives of `torch.compile`: what says which functions are compiled, and how."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from mindtorch_v2._compiling import choice


def disable(
    fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None, wrapping: bool = True
) -> Any:
    """Return `fn`, of which no compiler makes anything else anyway, or a decorator that does."""
    return (lambda inner: inner) if fn is None else fn


def _disable_dynamo(fn: Callable[..., Any] | None = None, recursive: bool = True) -> Any:
    """Return `fn`, or a decorator that does."""
    return disable(fn, recursive)


def substitute_in_graph(original_fn: Callable[..., Any], **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that returns its function: there is no graph in which `original_fn` could be replaced."""
    return lambda traceable_fn: traceable_fn


class set_stance:
    """Sets how compiled functions are called from now on, as a context within it, as a decorator in calls: with "force_eager" as they are; otherwise as ever."""

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend: str | Callable[..., Any] | None = None,
    ) -> None:
        self.stance = stance
        self._before = choice.stance
        choice.stance = stance

    def __enter__(self) -> None:
        choice.stance = self.stance

    def __exit__(self, *error: Any) -> None:
        choice.stance = self._before

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        choice.stance = self._before

        @functools.wraps(fn)
        def inner(*args: Any, **kwargs: Any) -> Any:
            before, choice.stance = choice.stance, self.stance
            try:
                return fn(*args, **kwargs)
            finally:
                choice.stance = before

        return inner


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
