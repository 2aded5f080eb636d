"""`torch.compile`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ..nn.modules.module import Module
from .functions import check, function
from .modules import OptimizedModule


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
    """A function, or an `OptimizedModule` around a module, that gives what `model` gives, bit for bit, and in less time where pointwise operators and those that
    work row by row follow each other on large tensors. Nothing is translated: Python runs each time, so that side effects, branches on values, exceptions, histories and changes in place
    are those of `model`. See Note [Choosing] in choice.py.

    A decorator when no model is given; `model` itself with `disable`, and unchanged in what it does with the backend "eager". A class is returned, with its calls
    compiled. The other arguments are accepted: there are no graphs that could break, be dynamic or be handed to a backend.

    Raises:
        RuntimeError: if both `mode` and `options` are given, or for an unknown mode.
        AssertionError: if `model` cannot be called.
    """
    check(backend, mode, options)
    if model is None:
        return functools.partial(compile, backend=backend, mode=mode, options=options, disable=disable)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if disable:
        return model
    if isinstance(model, Module):
        return OptimizedModule(model)
    if inspect.isclass(model):
        name = "_call_impl" if issubclass(model, Module) else "__call__"
        setattr(model, name, compile(getattr(model, name), backend=backend))
        return model
    return function(model, backend)
