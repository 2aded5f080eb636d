"""`torch.return_types`: the classes of named results, made when they are asked for."""

from __future__ import annotations

from ._dispatch.return_types import named
from ._generated import tables


def __getattr__(name: str) -> type:
    for family in vars(tables).values():
        operator = getattr(family, "__all__", None)
        for identifier in operator or ():
            op = getattr(family, identifier)
            if op.name == name and len(op.returns) > 1 and all(op.returns):
                return named(op.name, op.returns)
    raise AttributeError(f"module 'torch.return_types' has no attribute '{name}'")
