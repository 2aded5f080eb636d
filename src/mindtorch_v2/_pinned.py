"""Pinned host memory: what it is, and whether an array lies in it. `_backends/npu/pinned.py` makes it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from ._memory import owner

__all__ = ["PinnedMemory", "is_pinned", "pinned_root"]


class PinnedMemory:
    """Host memory that copies to and from a device use directly, lent to numpy by its array interface.

    address, nbytes: where it lies. keep: what it belongs to. release: called with the address when nobody holds it any more.
    """

    __slots__ = ("address", "nbytes", "keep", "release", "__array_interface__", "__weakref__")

    def __init__(
        self, address: int, nbytes: int, keep: Any = None, release: Callable[[int], None] | None = None
    ) -> None:
        self.address = address
        self.nbytes = nbytes
        self.keep = keep
        self.release = release
        self.__array_interface__ = {"data": (address, False), "shape": (nbytes,), "typestr": "|u1", "version": 3}

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if self.release is not None and not ending():  # the end of the process gives everything back
            self.release(self.address)


def is_pinned(array: ndarray) -> bool:
    """Whether the root of an array is pinned memory."""
    return owner(array).base.__class__ is PinnedMemory


def pinned_root(memory: PinnedMemory) -> ndarray:
    """Pinned memory as the root of a storage: a 1-D uint8 array."""
    return np.asarray(memory)
