"""Stub modules made of the table that the generator writes of `schema/torch_proxy.yaml`: nothing but names, each of one of a few kinds."""

from __future__ import annotations

import builtins
import enum
import functools
import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from mindtorch_v2._generated.proxy import index

from .placeholders import (
    ImportOnly,
    NoOpContext,
    identity,
    import_only_function,
    late_names,
    lazy_children,
    operators,
    returning,
)

_KINDS = {2: "functional stub", 3: "import-only stub"}


def _table() -> Mapping[str, Mapping[str, Any]]:
    """The rows by the name below torch; imported with the first stub."""
    from mindtorch_v2._generated.proxy import table

    return table.ROWS


@functools.cache
def root() -> ModuleType:
    """The names that torch itself has beyond what mindtorch_v2 defines."""
    module = ModuleType("torch", document(""))
    fill("", vars(module))
    return module


def document(name: str) -> str:
    """The docstring of a stub."""
    row = _table()[name]
    more = f": {row['doc']}" if "doc" in row else ""
    return f"{_full(name)}, {_KINDS[row['tier']]}{more}."


def _full(name: str) -> str:
    if name in index.BESIDE:
        return name
    return f"torch.{name}" if name else "torch"


def fill(name: str, namespace: dict[str, Any]) -> None:
    """Put what the table says of `torch.<name>` into a namespace."""
    row, full = _table()[name], _full(name)
    because, error = row.get("because", ""), getattr(builtins, row.get("error", "NotImplementedError"))
    namespace["__doc__"] = document(name)
    for source, names in row.get("from", {}).items():
        module = importlib.import_module(source)
        namespace.update({n: getattr(module, n) for n in names.split()})
    namespace.update(row.get("constants", {}))
    for n, value in row.get("returns", {}).items():
        namespace[n] = returning(n, full, value)
    for n in row.get("identity", "").split():
        namespace[n] = identity(n, full)
    for n in row.get("functions", "").split():
        namespace[n] = import_only_function(n, full, because, error)
    if name in index.PACKAGES:
        namespace["__getattr__"] = lazy_children(full)
    if "operators" in row:
        namespace["__getattr__"] = operators(row["operators"], full)
    if "late" in row:
        namespace["__getattr__"] = late_names(row["late"], namespace, full)
    for n, members in row.get("enums", {}).items():
        namespace[n] = enum.Enum(n, members, module=full, qualname=n)
        namespace[n].__doc__ = f"An enumeration of {full}."
    for n in row.get("exceptions", "").split():
        words = f"An error of {full}, which mindtorch_v2 never raises."
        namespace[n] = type(n, (RuntimeError,), {"__module__": full, "__doc__": words})
    for n in row.get("contexts", "").split():
        namespace[n] = type(n, (NoOpContext,), {"__module__": full, "__doc__": "Changes nothing."})
    for n in row.get("classes", "").split():
        members = {"__module__": full, "__doc__": "Import only.", "_because": because, "_error": error}
        namespace[n] = ImportOnly(n, (), members)
