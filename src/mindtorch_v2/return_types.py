"""`torch.return_types`: the classes of named results, made when they are asked for; `max_out` is that of buffers for the results of `max`."""

from __future__ import annotations

from collections.abc import Iterator

from ._dispatch.return_types import named
from ._generated.tables import operators

_PYTHON = {"histogramdd": ("hist", "bin_edges")}  # of functions that are no operators


def _fields() -> Iterator[tuple[str, tuple[str, ...]]]:
    """(name, names of the results) of every class."""
    yield from _PYTHON.items()
    for op in operators():
        if len(op.returns) > 1 and all(op.returns):
            yield op.name, op.returns
            if "out" in op.variants:
                yield f"{op.name}_out", op.returns


def __getattr__(name: str) -> object:
    if name == "all_return_types":
        return [named(*found) for found in dict(_fields()).items()]
    found = dict(_fields()).get(name)
    if found is None:
        raise AttributeError(f"module 'torch.return_types' has no attribute '{name}'")
    return named(name, found)


def pytree_register_structseq(cls: type) -> None:
    """Let trees know a class of named results; those here are known."""


def __dir__() -> list[str]:
    return sorted({*globals(), "all_return_types", *dict(_fields())})
