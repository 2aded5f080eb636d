"""`torch.return_types`: the classes of named results, made when they are asked for."""

from __future__ import annotations

from ._dispatch.return_types import named
from ._generated.tables import operators


def __getattr__(name: str) -> type:
    for op in operators():
        if op.name == name and len(op.returns) > 1 and all(op.returns):
            return named(op.name, op.returns)
    raise AttributeError(f"module 'torch.return_types' has no attribute '{name}'")
