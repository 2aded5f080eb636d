"""Pinning what a loader gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mindtorch_v2 as mt


def pin_memory(data: Any, device: Any = None) -> Any:
    """The data with its tensors in pinned memory, also inside of mappings, sequences, and objects that have a method `pin_memory`.

    Containers keep their class where it can be made from their items; otherwise they become dicts and lists. Tuples become lists, as in PyTorch.
    """
    if isinstance(data, mt.Tensor):
        return data.pin_memory()
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return _made_of(data, {key: pin_memory(value, device) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(item, device) for item in data))
    if isinstance(data, tuple):
        return [pin_memory(item, device) for item in data]
    if isinstance(data, Sequence):
        return _made_of(data, [pin_memory(item, device) for item in data])
    return data


def _made_of(original: Any, content: Any) -> Any:
    try:
        return type(original)(content)
    except TypeError:  # the class is made from something else
        return content
