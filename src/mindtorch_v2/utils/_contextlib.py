"""Context managers that are decorators too, for functions and for generators."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

__all__ = ["context_decorator"]


def _wrap_generator(context: Callable[[], Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Enter the context whenever the generator runs, and leave it while the generator waits."""

    @functools.wraps(function)
    def generator(*args: Any, **kwargs: Any) -> Any:
        inner = function(*args, **kwargs)
        try:
            with context():
                value = inner.send(None)
            while True:
                try:
                    sent = yield value
                except GeneratorExit:
                    with context():
                        inner.close()
                    raise
                except BaseException as error:  # noqa: BLE001  (handed on to the generator)
                    with context():
                        value = inner.throw(error)
                else:
                    with context():
                        value = inner.send(sent)
        except StopIteration as stop:
            return stop.value

    return generator


def context_decorator(context: Any, function: Any) -> Any:
    """Let `function` run inside a context manager.

    Args:
        context: a context manager that may be entered again and again, or a function that makes one.
        function: a function or generator function. A class is accepted with a warning: its `__init__` is wrapped.
    """
    if callable(context) and hasattr(context, "__enter__"):
        raise AssertionError(
            f"Passed in {context} is both callable and also a valid context manager "
            "(has __enter__), making it ambiguous which interface to use."
        )
    make: Callable[[], Any] = context if callable(context) else lambda: context
    if inspect.isclass(function):
        warnings.warn(
            "Decorating classes is deprecated and will be disabled in future versions. "
            "You should only decorate functions or methods.",
            FutureWarning,
            stacklevel=2,
        )
        function.__init__ = context_decorator(make, function.__init__)
        return function
    if inspect.isgeneratorfunction(function):
        return _wrap_generator(make, function)

    @functools.wraps(function)
    def decorate_context(*args: Any, **kwargs: Any) -> Any:
        with make():
            return function(*args, **kwargs)

    return decorate_context


class _DecoratorContextManager:
    """A base of context managers: an instance decorates a function with fresh copies of itself."""

    def __call__(self, orig_func: Any) -> Any:
        return context_decorator(self.clone, orig_func)

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> Any:
        raise NotImplementedError

    def clone(self) -> Any:
        """A new context manager with the same settings."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """The same for a class without settings, which decorates with or without parentheses."""

    def __new__(cls, orig_func: Any = None) -> Any:
        if orig_func is None:
            return super().__new__(cls)
        return cls()(orig_func)
