"""Helpers: data loading, checkpointing, trees of values, hooks. Modules are imported when they are first used."""

from __future__ import annotations

import importlib
from typing import Any

_SUBMODULES = frozenset(
    (
        "_contextlib",
        "_device",
        "_python_dispatch",
        "_pytree",
        "checkpoint",
        "collect_env",
        "data",
        "deterministic",
        "dlpack",
        "file_baton",
        "hooks",
        "model_zoo",
        "module_tracker",
        "weak",
    )
)


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "swap_tensors":
        return importlib.import_module(f"{__name__}._swap").swap_tensors
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def rename_privateuse1_backend(backend_name: str) -> None:
    """Accept the name `npu`, which the private device has anyway.

    Raises:
        RuntimeError: for any other name.
    """
    if backend_name != "npu":
        raise RuntimeError(f"the private device is named 'npu' and cannot be renamed to {backend_name!r}")


def set_module(obj: Any, mod: str) -> None:
    """Set the module that an object shows as its own."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod
