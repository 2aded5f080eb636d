"""Child processes of `multiprocessing` that start from nothing (spawn, forkserver) get the proxy too.

Such a child unpickles its preparation data before it runs the main module of its parent, which may say `import torch`.
An object in that data whose unpickling installs the proxy therefore comes in time. The child has not set its `sys.path`
by then, so the object brings the folder of mindtorch_v2 with it.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import mindtorch_v2

WATCHED = "multiprocessing.spawn"
"""The module that makes the data; it is changed when somebody imports it."""

_changed: tuple[ModuleType, Any] | None = None

_IN_THE_CHILD = """
import importlib.util, sys
if importlib.util.find_spec("mindtorch_v2") is None:
    sys.path.append({folder!r})
from mindtorch_v2._torch_proxy import install
install()
"""


class InstallOnUnpickle:
    """Installs the proxy where it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        folder = os.path.dirname(os.path.abspath(mindtorch_v2.__path__[0]))
        return exec, (_IN_THE_CHILD.format(folder=folder), {})


def _change(module: ModuleType) -> None:
    """Add the object to the preparation data of every child."""
    global _changed
    former = module.get_preparation_data
    _changed = module, former

    def get_preparation_data(name: str) -> dict[str, Any]:
        data = former(name)
        data["mindtorch_v2_proxy"] = InstallOnUnpickle()
        return data

    module.get_preparation_data = get_preparation_data


class _ChangingLoader:
    """Loads the module as its loader does, and changes it."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.inner.exec_module(module)
        _change(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def find_spec(fullname: str, path: Any, finder: Any) -> ModuleSpec | None:
    """What the finders behind `finder` find, with a loader that changes the module."""
    others = [other for other in sys.meta_path if other is not finder]
    spec = next((found for other in others if (found := other.find_spec(fullname, path)) is not None), None)
    if spec is not None and spec.loader is not None:
        spec.loader = _ChangingLoader(spec.loader)
    return spec


def attach() -> None:
    """Change the module if it is there; else the finder does when it is imported."""
    if WATCHED in sys.modules:
        _change(sys.modules[WATCHED])


def detach() -> None:
    """Restore what was changed."""
    global _changed
    if _changed is not None:
        module, former = _changed
        module.get_preparation_data = former
        _changed = None
