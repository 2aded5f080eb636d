"""The names that modules, classes and functions bear while the proxy serves them: torch's.

Note [Names under the proxy]
Programs look at `type(module).__module__`, at `torch.__name__` and at what pickles say, and expect `torch.nn.modules.linear` and `torch`.
So a module of mindtorch_v2 that is torch.X too is run with `__name__` torch.X, which its classes and functions take over, as does whatever
it makes later. `__spec__` and `__package__` stay as they are, so relative imports, reloading and `python -m` work as ever.
It is in `sys.modules` under both names before it runs, for dataclasses and circular imports look for `sys.modules[__name__]`.

What PyTorch has at a place that is private here (`homes` in `schema/torch_proxy.yaml`) is told after its module has run where it is at home.
The schema's functions say the places of PyTorch's builtin ones, `torch` and `torch._C._nn`.
Modules that were imported before `install()` are told so, too, and `uninstall()` gives everything its former name back.
"""

from __future__ import annotations

import functools
import sys
from contextlib import ExitStack
from importlib.machinery import ModuleSpec, PathFinder
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from mindtorch_v2._dispatch.native import Unbound
from mindtorch_v2._generated.proxy import index
from mindtorch_v2._imports import entered, once, present

from . import attributes

PACKAGE = attributes.PACKAGE
_BELOW = f"{PACKAGE}."
_EXTENSION = f"{PACKAGE}._native"
_FUNCTIONS = f"{PACKAGE}._generated.functions."


def public_name(real: str) -> str | None:
    """The name under torch of a module of mindtorch_v2, or None for one that torch does not have at that place."""
    if real == PACKAGE:
        return "torch"
    if not real.startswith(_BELOW):
        return None
    name = real.removeprefix(_BELOW)
    if name in index.STUBS:
        return None
    if name.partition(".")[0] == "_torch_npu":
        return name.removeprefix("_")
    if name.partition(".")[0] in index.TREES or index.ALIASES.get(name) == name:
        return f"torch.{name}"
    return None


_HOMELESS = frozenset(index.HOMES) | {name.rpartition(".")[0] for name in index.HOMES}
"""Modules that define something that PyTorch has elsewhere; names of classes and functions are among them, which does no harm."""

_told: list[tuple[Any, str]] = []
"""What was told another name than it was made with, and that name."""


def _public_place(module: str, name: str) -> str | None:
    """Where PyTorch has `name` of a module of mindtorch_v2 (by either of its names); None where PyTorch has nothing like it."""
    short = module.removeprefix(_BELOW).removeprefix("torch.")
    home = index.HOMES.get(f"{short}.{name}", index.HOMES.get(short))
    return public_name(f"{_BELOW}{short}") if home is None else f"torch.{home}".rstrip(".")


class NamingLoader:
    """Runs a module under its name of torch; see Note [Names under the proxy]."""

    def __init__(self, inner: Any, real: str) -> None:
        self.inner = inner
        self.real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """What the loader of the file makes."""
        return present(spec) or self.inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code."""
        once(module, self._exec)

    def _exec(self, module: ModuleType) -> None:
        self._run(module, public_name(self.real))
        if self.real.startswith(_FUNCTIONS):
            _tell_operators(module)
        elif self.real.removeprefix(_BELOW) in _HOMELESS:
            for value in list(vars(module).values()):
                _tell(value)
        attributes.attach_to(module, self.real)

    def _run(self, module: ModuleType, public: str | None) -> None:
        if public is None:
            self.inner.exec_module(module)
            return
        before = sys.modules.get(public)
        module.__name__ = public
        sys.modules[public] = module
        with ExitStack() as undo:
            undo.callback(_put_back, public, before)
            exec(self.inner.get_code(self.real), vars(module))
            undo.pop_all()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)  # sources and data, for `inspect`, tracebacks and `importlib.resources`


def _put_back(name: str, module: ModuleType | None) -> None:
    if module is None:
        sys.modules.pop(name, None)
    else:
        sys.modules[name] = module


def find_spec(fullname: str, path: Any) -> ModuleSpec | None:
    """The spec of a module of mindtorch_v2 whose name the proxy changes, or None."""
    short = fullname.removeprefix(_BELOW)
    if public_name(fullname) is None and short not in _HOMELESS and not fullname.startswith(_FUNCTIONS):
        return None
    spec = PathFinder.find_spec(fullname, path)
    if spec is None or spec.loader is None or not hasattr(spec.loader, "get_code"):
        return None
    spec.loader = NamingLoader(spec.loader, fullname)
    return entered(spec)


def _is_named(value: Any) -> bool:
    return (
        isinstance(value, type | FunctionType | BuiltinFunctionType | Unbound) or type(value).__module__ == _EXTENSION
    )


def _tell(value: Any) -> None:
    """Let a class (with what it has) or a function of mindtorch_v2 say where PyTorch has it."""
    if not _is_named(value):
        return
    former = value.__dict__.get("__module__") if isinstance(value, type) else getattr(value, "__module__", None)
    if not isinstance(former, str) or not former.startswith((_BELOW, "torch.")):
        return
    place = _public_place(former, value.__qualname__)
    if place is None or place == former:
        return
    _told.append((value, former))
    value.__module__ = place
    if isinstance(value, type):
        for inner in list(vars(value).values()):
            _tell(inner.__func__ if isinstance(inner, classmethod | staticmethod) else inner)


@functools.cache
def _operators() -> dict[str, str]:
    """Where PyTorch has the schema's functions, by their names in the schema."""
    from mindtorch_v2._generated.functions import NAMESPACES

    found: dict[str, str] = {}
    for namespace, place in index.OPERATORS.items():
        names = NAMESPACES[namespace].values()
        found |= dict.fromkeys(names, "torch" if namespace == "torch" else f"torch.{place}")
    return found


def _tell_operators(module: ModuleType) -> None:
    """Let the functions of a family of operators say where PyTorch has them."""
    for name, value in list(vars(module).items()):
        place = _operators().get(name)
        if place is not None and getattr(value, "__module__", None) == module.__name__:
            _told.append((value, module.__name__))
            value.__module__ = place


def _loaded() -> list[tuple[str, ModuleType]]:
    loaded = [(name, module) for name, module in sys.modules.items() if name == PACKAGE or name.startswith(_BELOW)]
    return [(name, module) for name, module in loaded if module is not None]  # which blocks an import


def attach() -> None:
    """Give every module that is there, and what it has, the names of torch."""
    for real, module in _loaded():
        public = public_name(real)
        if public is not None:
            module.__name__ = public
            sys.modules[public] = module
        if real.startswith(_FUNCTIONS):
            _tell_operators(module)
            continue
        for value in list(vars(module).values()):
            _tell(value)


def detach() -> None:
    """Give everything its own name back."""
    for value, former in reversed(_told):
        value.__module__ = former
    _told.clear()
    for real, module in _loaded():
        public = module.__name__
        if public != real and public == public_name(real):
            module.__name__ = real
            for value in list(vars(module).values()):
                _give_back(value, public, real)


def _give_back(value: Any, public: str, real: str) -> None:
    if not _is_named(value) or getattr(value, "__module__", None) != public:
        return
    value.__module__ = real
    if isinstance(value, type):
        for inner in list(vars(value).values()):
            _give_back(inner.__func__ if isinstance(inner, classmethod | staticmethod) else inner, public, real)
