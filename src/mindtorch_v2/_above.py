"""What a floor asks of the floors above it.

Note [Asking upwards]
Imports point downwards (docs/architecture.md). A lower floor that needs something of an upper one asks for it by a name, and the package's
`__init__`, which puts the floors together, says where each name is. It is imported when it is asked for: a backend with the first tensor on
its device, derivatives with the first operation that is recorded.
"""

from __future__ import annotations

import importlib
from typing import Any

PLACES: dict[str, str] = {}
"""By name: a package, a module, or `module:attribute`."""


def above(name: str) -> Any:
    """What has this name."""
    module, _, attribute = PLACES[name].partition(":")
    found = importlib.import_module(module)
    return getattr(found, attribute) if attribute else found


def module_above(name: str, module: str) -> Any:
    """A module of the package that has this name."""
    return importlib.import_module(f"{PLACES[name]}.{module}")
