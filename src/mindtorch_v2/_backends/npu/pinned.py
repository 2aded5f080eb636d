"""Pinned host memory for copies to and from NPUs, which such memory makes asynchronous.

With an NPU it comes from CANN. Without one there is nothing to pin it for, and it is ordinary memory that says that it is pinned, so that programs which
pin behave alike.
"""

from __future__ import annotations

import numpy as np
from numpy import ndarray

from ..._memory import address, view_of_root
from ..._pinned import PinnedMemory, is_pinned, pinned_root
from . import is_available

__all__ = ["empty_root", "is_pinned", "pin_array"]


def empty_root(nbytes: int) -> ndarray:
    """`nbytes` bytes of pinned memory, uninitialised, as a 1-D uint8 array. NpuOutOfMemory when there is not enough."""
    if nbytes and is_available():
        return pinned_root(_from_cann(nbytes))
    plain = np.empty((nbytes,), np.uint8)
    return pinned_root(PinnedMemory(address(plain), nbytes, keep=plain))


def pin_array(array: ndarray) -> ndarray:
    """The array itself when it lies in pinned memory, else a copy there, with the same strides if they leave no gaps (else contiguous)."""
    if is_pinned(array):
        return array
    root = empty_root(array.nbytes)
    order = sorted(range(array.ndim), key=lambda d: -array.strides[d])
    dense = array.transpose(order).flags.c_contiguous and min(array.strides, default=0) >= 0
    shape = array.shape
    if dense and array.size:
        strides = [s // array.itemsize for s in array.strides]
    else:
        strides = [int(np.prod(shape[d + 1 :], dtype=np.int64)) for d in range(array.ndim)]
    made = view_of_root(root, shape, strides, 0, array.dtype)
    made[...] = array
    return made


def _from_cann(nbytes: int) -> PinnedMemory:
    from ._host_statistics import HOST
    from .runtime import get_runtime

    runtime = get_runtime()

    def release(where: int) -> None:
        HOST.timed("host_free_time", lambda: runtime.free_host(where))
        HOST.change(-1, -nbytes)

    found = HOST.timed("host_alloc_time", lambda: runtime.malloc_host(nbytes))
    HOST.change(1, nbytes)
    return PinnedMemory(found, nbytes, release=release)
