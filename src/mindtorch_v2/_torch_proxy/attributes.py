"""Attributes that the stubs add to real packages.

`torch.jit` must answer after `import torch` alone, and `torch.nn.parallel` too. As `torch` is the module mindtorch_v2
and `torch.nn` is mindtorch_v2.nn, a module `__getattr__` (PEP 562) is put in front of what such a package has: it is
asked only for names that the package lacks, so what is real wins. A package that is not there yet gets it when it is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from mindtorch_v2._generated.proxy import index

from .children import child

PACKAGE = "mindtorch_v2"

_attached: list[tuple[ModuleType, Callable[[str], Any] | None]] = []


def _parents() -> dict[str, list[str]]:
    """The names below torch of real packages that have stubs below them, by the module of mindtorch_v2."""
    found: dict[str, list[str]] = {}
    for parent in index.REAL_PARENTS:
        real = index.ALIASES.get(parent, parent)
        found.setdefault(f"{PACKAGE}.{real}" if real else PACKAGE, []).append(parent)
    return found


_PARENTS = _parents()


def _hook(parent: str, module: ModuleType, former: Callable[[str], Any] | None) -> Callable[[str], Any]:
    def __getattr__(name: str) -> Any:
        if former is not None:
            try:
                return former(name)
            except AttributeError:
                pass  # the stubs are asked next, and raise an AttributeError of their own
        if parent == "" and name in index.ROOT_NAMES:
            from .making import root

            return getattr(root(), name)
        return child(parent, name, module.__name__)

    return __getattr__


def attach_to(module: ModuleType, real: str) -> None:
    """Let a module of mindtorch_v2 answer for the stubs below it, if there are any."""
    for parent in _PARENTS.get(real, ()):
        former = module.__dict__.get("__getattr__")
        _attached.append((module, former))
        module.__getattr__ = _hook(parent, module, former)


def attach() -> None:
    """Let every real package that is there and has stubs below it answer for them."""
    for real in _PARENTS:
        if real in sys.modules:
            attach_to(sys.modules[real], real)


def detach() -> None:
    """Give the packages back what they had, and take away the stubs that imports have put on them."""
    stubs = {id(module): name for name, module in sys.modules.items() if name.startswith("torch.")}
    for module, former in reversed(_attached):
        if former is None:
            del module.__getattr__
        else:
            module.__getattr__ = former
        for name, value in list(vars(module).items()):
            if isinstance(value, ModuleType) and value.__name__.startswith("torch.") and id(value) in stubs:
                delattr(module, name)
    _attached.clear()
