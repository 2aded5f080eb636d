"""Functions of torch itself that describe how it was made."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import mindtorch_v2

torch = mindtorch_v2  # torch.torch is torch


def _running_with_deploy() -> bool:
    """False."""
    return False


def compiled_with_cxx11_abi() -> bool:
    """True: there is no C++ extension with an older ABI."""
    return True


def get_device_module(device: Any = None) -> ModuleType:
    """The module `torch.<device type>`.

    Raises:
        RuntimeError: if there is no such module.
    """
    kind = "cpu" if device is None else torch.device(device).type
    module = getattr(torch, kind, None)
    if not isinstance(module, ModuleType):
        raise RuntimeError(f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'.")
    return module
