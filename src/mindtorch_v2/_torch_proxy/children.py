"""Modules of torch that a package has not imported itself."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from mindtorch_v2._generated.proxy import index


def child(parent: str, name: str, owner: str) -> ModuleType:
    """Import `torch.<parent>.<name>`, a stub or a real module that the package has not imported itself.

    Raises:
        AttributeError: if the proxy has no such module; the message names the module `owner`.
    """
    full = f"{parent}.{name}" if parent else name
    served = full in index.STUBS or full in index.ALIASES
    if not served and full in index.TREES:
        served = importlib.util.find_spec(f"torch.{full}") is not None
    if not served:
        raise AttributeError(f"module {owner!r} has no attribute {name!r}", name=name)
    return importlib.import_module(f"torch.{full}")
