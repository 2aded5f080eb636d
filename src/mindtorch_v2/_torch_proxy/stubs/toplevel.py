"""Functions of torch itself that describe how it was made."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

import mindtorch_v2
from mindtorch_v2._schemas import parse as parse_schema

torch = mindtorch_v2  # torch.torch is torch
Storage = mindtorch_v2.FloatStorage
legacy_contiguous_format = mindtorch_v2.contiguous_format
__all__ = ["parse_schema"]


class classproperty:
    """A property of a class: the function is called with the class."""

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self.func = func

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self.func(owner if owner is not None else type(instance))


class _ClassNamespace(ModuleType):
    """`torch.classes.x`: the classes of one library of C++, of which there are none."""

    def __init__(self, name: str) -> None:
        super().__init__("torch.classes" + name)
        self.name = name

    def __getattr__(self, attr: str) -> Any:
        raise RuntimeError(f"Class {self.name}.{attr} not registered!")


class _Classes(ModuleType):
    """`torch.classes`: the namespaces of classes that libraries of C++ register."""

    __file__ = "_classes.py"

    def __init__(self) -> None:
        super().__init__("torch.classes")

    def __getattr__(self, name: str) -> _ClassNamespace:
        namespace = _ClassNamespace(name)
        setattr(self, name, namespace)
        return namespace

    @property
    def loaded_libraries(self) -> set[str]:
        """The paths of the libraries with such classes: none."""
        return set()

    def load_library(self, path: str) -> None:
        """See `torch.ops.load_library`."""
        mindtorch_v2.ops.load_library(path)


classes = _Classes()


def get_file_path(*path_components: str) -> str:
    """A path beside the package `torch`."""
    return os.path.join(os.path.dirname(os.path.dirname(mindtorch_v2.__file__)), *path_components)


def init_num_threads() -> None:
    """Nothing: kernels start the threads that they use."""


def _running_with_deploy() -> bool:
    """False."""
    return False


def compiled_with_cxx11_abi() -> bool:
    """True: there is no C++ extension with an older ABI."""
    return True


def get_device_module(device: Any = None) -> ModuleType:
    """The module `torch.<device type>`: of the accelerator, or the CPU where there is none, unless a device is given.

    Raises:
        RuntimeError: if there is no such module.
    """
    accelerator = torch.accelerator.current_accelerator() if device is None else None
    kind = "cpu" if device is None and accelerator is None else torch.device(accelerator or device).type
    module = getattr(torch, kind, None)
    if not isinstance(module, ModuleType):
        raise RuntimeError(f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'.")
    return module
