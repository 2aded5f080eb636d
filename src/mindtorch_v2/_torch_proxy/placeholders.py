"""What stub modules are made of: names without an implementation, and trivial functions.

`making` uses these for what the table of stubs lists; so may stubs written by hand.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NoReturn

from .children import child


def missing(name: str, because: str, error: type[Exception] = NotImplementedError) -> NoReturn:
    """Raise `error` for a call of `name`, which exists for imports only."""
    if error is NotImplementedError:
        raise NotImplementedError(f"{name} can be imported but not called: {because}")
    raise error(because)


class ImportOnly(type):
    """The metaclass of classes that can be imported, subclassed and tested against, and raise when called.

    A subclass with an `__init__` of its own raises as well: what its base would do for it is missing.
    """

    _because: str
    _error: type[Exception]

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        missing(f"{cls.__module__}.{cls.__qualname__}", cls._because, cls._error)


def import_only_function(
    name: str, module: str, because: str, error: type[Exception] = NotImplementedError
) -> Callable[..., NoReturn]:
    """A function `module.name` that raises when it is called."""

    def function(*args: Any, **kwargs: Any) -> NoReturn:
        missing(f"{module}.{name}", because, error)

    named = _named(function, name, module)
    named.__dict__["import_only"] = because
    return named


def reason(value: Any) -> str | None:
    """Why something can only be imported; None for what can be used."""
    if isinstance(value, ImportOnly):
        return value._because
    return getattr(value, "__dict__", {}).get("import_only")


def returning(name: str, module: str, value: Any) -> Callable[..., Any]:
    """A function `module.name` that takes anything and returns `value` (a fresh copy of an empty list, dict or set)."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return type(value)(value) if isinstance(value, list | dict | set) else value

    return _named(function, name, module)


def identity(name: str, module: str) -> Callable[..., Any]:
    """A function `module.name` that returns its first argument; called without one, or with options (bools, words), a decorator that does."""

    def function(fn: Any = None, *args: Any, **kwargs: Any) -> Any:
        if fn is None or isinstance(fn, bool | str):
            return lambda inner: inner
        return fn

    return _named(function, name, module)


def _named(function: Callable[..., Any], name: str, module: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    return function


class NoOpContext:
    """A context manager and decorator that changes nothing and takes any arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> NoOpContext:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper


def lazy_children(module: str) -> Callable[[str], ModuleType]:
    """A module `__getattr__` that imports stubs below `module`."""
    parent = module.removeprefix("torch").removeprefix(".")

    def __getattr__(name: str) -> ModuleType:
        return child(parent, name, module)

    return __getattr__


def late_names(sources: Mapping[str, str], namespace: dict[str, Any], module: str) -> Callable[[str], Any]:
    """A module `__getattr__` that imports names from where they are when they are asked for, before what the module has asks for others."""
    homes = {name: source for source, names in sources.items() for name in names.split()}
    former = namespace.get("__getattr__")

    def __getattr__(name: str) -> Any:
        if name in homes:
            namespace[name] = getattr(importlib.import_module(homes[name]), name)
            return namespace[name]
        if former is not None:
            return former(name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)

    return __getattr__


def operators(namespace: str, module: str) -> Callable[[str], Any]:
    """A module `__getattr__` that finds the schema's functions of a namespace by their names in the schema."""
    from mindtorch_v2._generated import functions

    names = frozenset(functions.NAMESPACES[namespace].values())

    def __getattr__(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)
        return getattr(functions, name)

    return __getattr__
