"""Whether one object alone holds an array, by Python's own count of references."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy import ndarray

from ..._dtype import DTYPES
from ..._pending import settled
from ..._tensor import wrap


def is_sole(payload: Any) -> bool:
    """Whether nothing but the slot that the caller reads a payload from can see its memory: no view, no other tensor, no variable."""
    if payload.__class__ is not ndarray or payload.base is not None or not payload.flags.writeable:
        return False
    return _references(payload) <= _SOLE


def _references(payload: Any) -> int:
    return sys.getrefcount(payload)


def _references_of_sole() -> int:
    """What `is_sole` counts for an array that one slot holds: that reference, and what Python's calls add, which depends on its version."""

    def counted(payload: Any) -> int:
        return _references(payload)

    alone = wrap(np.empty(1), DTYPES["float64"])
    return counted(settled(alone))


_SOLE = _references_of_sole()
