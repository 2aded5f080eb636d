"""Hand-written members of Tensor, by meaning. Each module's functions are attached under their own names."""

from __future__ import annotations

from typing import Any


def members(module: Any) -> dict[str, Any]:
    """What a module of this package gives the class: its `MEMBERS`."""
    return dict(module.MEMBERS)


def install(tensor: type) -> None:
    """Attach the members of every module."""
    from . import attributes, conversion, gradient, indexing, protocols, shapes

    for module in (attributes, conversion, gradient, indexing, protocols, shapes):
        for name, value in members(module).items():
            setattr(tensor, name, value)
