"""`torch._refs`: what each operator gives, by its name.

PyTorch writes its operators a second time here, in Python, as what the first ones are compared with. The schema says here what an operator is, so a
name stands for the operator itself: a function of `torch`, or a method of Tensor where there is no function.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import mindtorch_v2

from .._tensor import Tensor
from . import _conversions as _conversions

_PARTS = ("fft", "linalg", "nn", "special")


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        if name in _PARTS:
            return getattr(mindtorch_v2, name)
        for owner in (mindtorch_v2, Tensor, mindtorch_v2.nn.functional):
            found = getattr(owner, name, None)
            if callable(found) and not isinstance(found, (type, ModuleType)):
                return found
    raise AttributeError(f"module 'torch._refs' has no attribute {name!r}")
