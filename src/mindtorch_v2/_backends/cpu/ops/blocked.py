"""Kernels of several passes go block by block through the cache when the array is large."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

BLOCK = 8192
"""Elements of a block: the temporaries of a kernel then stay in the second-level cache."""


def blocked(
    kernel: Callable[[np.ndarray, np.ndarray], None],
    x: np.ndarray,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Apply `kernel(x, out)` to `x`, in blocks where that pays. `out` may be `x` itself."""
    if out is None:
        out = np.empty_like(x)
    if x.ndim == 0:  # numpy turns results without dimensions into scalars, which kernels cannot write to
        kernel(x.reshape(1), out.reshape(1))
        return out
    if x.size <= BLOCK or not (x.flags.forc and out.flags.forc and x.strides == out.strides):
        kernel(x, out)
        return out
    order = "C" if x.flags.c_contiguous else "F"
    source, target = x.reshape(-1, order=order), out.reshape(-1, order=order)
    for start in range(0, source.size, BLOCK):
        kernel(source[start : start + BLOCK], target[start : start + BLOCK])
    return out


def alike(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays are contiguous float ones of one dtype and shape, with elements: what fast paths of derivatives take."""
    kind = a.dtype
    if kind is not b.dtype or kind.char not in "fd" or a.shape != b.shape:
        return False
    return a.flags.c_contiguous and b.flags.c_contiguous and a.ndim > 0 and a.size > 0
