"""What chips have: told by the name that CANN gives, as `Ascend910B1`."""

from __future__ import annotations

import re

from .runtime import get_runtime

_names: dict[int, str] = {}


def soc_name() -> str:
    """The chip of this machine, empty when CANN does not know it."""
    runtime = get_runtime()
    found = _names.get(id(runtime))
    if found is None:
        _names.clear()
        found = _names[id(runtime)] = runtime.soc_name()
    return found


def is_training_a2() -> bool:
    """Whether it is an Atlas A2 or later: with bfloat16, and with the functions for transformers."""
    name = soc_name()
    return not name or re.match(r"Ascend(910B\d|910_93|950)", name) is not None
