"""Named results of operators with several: `torch.return_types.max`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from operator import itemgetter
from typing import Any

from . import operator
from .operator import Operator


@functools.cache
def named(name: str, fields: tuple[str, ...]) -> type:
    """The class of one operator's results: a tuple with named items. Like PyTorch's it is no namedtuple (it has no `_fields`)."""

    def construct(cls: type, values: Any) -> Any:
        values = tuple(values)
        if len(values) != len(fields):
            raise TypeError(
                f"torch.return_types.{name}() takes a {len(fields)}-sequence ({len(values)}-sequence given)"
            )
        return tuple.__new__(cls, values)

    def show(self: Any) -> str:
        parts = ",\n".join(f"{field}={value!r}" for field, value in zip(fields, self))
        return f"torch.return_types.{name}(\n{parts})"

    def reduce(self: Any) -> tuple:
        return (type(self), (tuple(self),))

    space: dict[str, Any] = {
        "__slots__": (),
        "__new__": construct,
        "__repr__": show,
        "__reduce__": reduce,
        "__module__": "torch.return_types",
        "n_fields": len(fields),
        "n_sequence_fields": len(fields),
        "n_unnamed_fields": 0,
    }
    space.update({field: property(itemgetter(i)) for i, field in enumerate(fields)})
    return type(name, (tuple,), space)


def return_type(op: Operator, values: list, out: bool = False) -> tuple:
    """Results, or the buffers that were given for them, as the tuple that the operator's signature names."""
    fields = op.returns
    if len(fields) > 1 and all(fields):
        return tuple.__new__(named(f"{op.name}_out" if out else op.name, fields), values)
    return tuple(values)


def _with_names(op: Operator, function: Callable) -> Callable:
    """A composite's function, whose results are named."""

    def composite(*args: Any, **buffers: Any) -> Any:
        result = function(*args, **buffers)
        return return_type(op, list(result)) if result.__class__ is tuple and not buffers else result

    return composite


operator.with_names = _with_names
