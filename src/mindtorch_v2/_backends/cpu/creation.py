"""Uninitialised CPU memory."""

from __future__ import annotations

from numpy import ndarray

from ... import _memory
from ..._device import device
from ..._dtype import dtype, unsupported


def empty(shape: tuple, stride: tuple | None, dtype: dtype, where: device | None = None) -> ndarray:
    """An uninitialised array; `stride` in elements, None for contiguous. RuntimeError for dtypes without CPU storage."""
    if dtype.np is None:
        raise RuntimeError(f"empty(): {unsupported(dtype)}")
    try:
        if stride is None:
            return _memory.allocate(shape, dtype.np)
        return _memory.empty_strided(shape, stride, dtype.np)
    except (MemoryError, ValueError) as error:
        refused = _memory.refusal(error, shape, dtype.itemsize)
        if refused is None:
            raise
        raise refused from error
