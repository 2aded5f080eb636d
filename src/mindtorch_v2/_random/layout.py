"""Where the numbers go: PyTorch fills memory, not indices.

An in-place fill of a tensor that is dense but transposed draws in the order of its memory: `empty(3, 4).t().uniform_()`
has the numbers of `empty(3, 4).uniform_()`, transposed. Dropout of a transposed input likewise.
"""

from __future__ import annotations

from typing import Callable, Sequence

import numpy as np


def draw_order(strides: Sequence[int]) -> tuple[int, ...]:
    """The axes from the slowest to the quickest in memory, for strides of elements or bytes."""
    return tuple(sorted(range(len(strides)), key=lambda axis: -abs(strides[axis])))


def fill(out: np.ndarray, draw: Callable[[tuple[int, ...]], np.ndarray]) -> np.ndarray:
    """Fill `out` with `draw(shape)`, in the order of its memory. Returns `out`."""
    axes = draw_order(out.strides)
    target = out.transpose(axes)
    target[...] = draw(target.shape)
    return out
