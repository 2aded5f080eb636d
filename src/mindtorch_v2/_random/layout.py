"""Where the numbers go: PyTorch fills memory, not indices.

An in-place fill of a tensor that is dense but transposed draws in the order of its memory: `empty(3, 4).t().uniform_()`
has the numbers of `empty(3, 4).uniform_()`, transposed. Dropout of a transposed input likewise. A kernel writes

    fill(out, lambda shape: streams.uniform(gen, shape, dtype, low, high))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np


def draw_order(strides: Sequence[int]) -> tuple[int, ...]:
    """The axes from the slowest to the quickest in memory, for strides of elements or bytes.

    An axis of stride 0 (expanded) has no place of its own and stays where it is.
    """
    axes = list(range(len(strides)))
    for i in range(len(axes) - 2, -1, -1):
        here = i
        for there in range(i + 1, len(axes)):
            ours, theirs = abs(strides[axes[here]]), abs(strides[axes[there]])
            if ours == 0 or theirs == 0:
                continue
            if ours >= theirs:
                break
            axes[here], axes[there] = axes[there], axes[here]
            here = there
    return tuple(axes)


def fill(out: np.ndarray, draw: Callable[[tuple[int, ...]], np.ndarray]) -> np.ndarray:
    """Fill `out` with `draw(shape)`, in the order of its memory. Returns `out`."""
    axes = draw_order(out.strides)
    target = out.transpose(axes)
    target[...] = draw(target.shape)
    return out


def fill_like(x: np.ndarray, draw: Callable[[tuple[int, ...]], np.ndarray]) -> np.ndarray:
    """A new dense array of x's shape from `draw(shape)`, drawn and laid out in the order of x's memory.

    It has the strides of PyTorch's `empty_like`. numpy's differs where x is expanded: it makes such axes the quickest.
    """
    axes = draw_order(x.strides)
    values = draw(tuple(x.shape[axis] for axis in axes))
    return values.transpose(sorted(range(x.ndim), key=axes.__getitem__))
