"""Named tuples for operators with several named results: `torch.return_types.max`."""

from __future__ import annotations

import functools
from collections import namedtuple
from typing import Any

from .operator import Operator


@functools.lru_cache(maxsize=None)
def named(name: str, fields: tuple[str, ...]) -> type:
    """The class of one operator's results; prints as PyTorch's does."""
    base = namedtuple(name, fields)

    def show(self: Any) -> str:
        parts = ",\n".join(f"{field}={value!r}" for field, value in zip(fields, self))
        return f"torch.return_types.{name}(\n{parts})"

    def construct(cls: type, *values: Any) -> Any:
        if len(values) == 1 and len(fields) != 1:
            values = tuple(values[0])
        return tuple.__new__(cls, values)

    made = type(name, (base,), {"__slots__": (), "__repr__": show, "__new__": construct, "__module__": "torch.return_types"})
    return made


def return_type(op: Operator, values: list) -> tuple:
    """Results as the tuple that the operator's signature names."""
    fields = op.returns
    if len(fields) > 1 and all(fields) and not op.name.startswith("_") and "unnamed" not in op.tags:
        return tuple.__new__(named(op.name, fields), values)
    return tuple(values)
