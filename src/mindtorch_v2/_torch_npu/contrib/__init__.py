"""What torch_npu has beside its operators: `transfer_to_npu`, functions and modules.

Of its names, those whose operators have no documented prototype can be imported, and say so when they are called.
"""

from __future__ import annotations

import importlib
from typing import Any

from ._missing import NAMES as _NAMES

_HOMES = {
    "function": "fuse_add_softmax_dropout matmul_transpose roll",
    "module": "BiLSTM ChannelShuffle Focus LabelSmoothingCrossEntropy Mish NpuDropPath Prefetcher SiLU Swish",
}
_WHERE = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [*_WHERE, *_NAMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return importlib.import_module(f".{name}", __spec__.name)
    if name in _WHERE:
        value: Any = getattr(importlib.import_module(f".{_WHERE[name]}", __spec__.name), name)
    elif name in _NAMES:
        value = _NAMES[name]
    else:
        raise AttributeError(f"module 'torch_npu.contrib' has no attribute {name!r}")
    globals()[name] = value
    return value
