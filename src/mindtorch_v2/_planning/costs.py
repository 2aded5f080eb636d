"""What the formulas of floating-point operations are written with (`flops:` of the schema).

A multiplication and an addition are one operation each, any function of one element (exp, tanh, a comparison) is one, and moving elements is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


def numel(value: Any) -> int:
    """The number of elements: of a tensor, of the first of several results, 1 of a number."""
    if isinstance(value, (tuple, list)):
        return numel(value[0]) if value else 0
    return value.numel() if hasattr(value, "numel") else 1


def size(tensor: Any, dim: int) -> int:
    """The size of a dimension; 1 of a 0-dim tensor."""
    shape = tensor.shape
    return shape[dim] if shape else 1


def prod(sizes: Any, ndim: int = 1) -> int:
    """The number of elements of a window: the product of its sizes, or of one size for `ndim` dimensions."""
    if isinstance(sizes, int):
        return sizes**ndim
    return math.prod(sizes) if len(sizes) > 1 else sizes[0] ** ndim


def convolution(input: Any, weight: Any, out: Any, transposed: bool) -> int:
    """2 operations for every weight that meets an element: of the output, or of the input of a transposed convolution."""
    moved = input if transposed else out
    filters = max(size(weight, 0), 1)
    return 2 * numel(moved) * (numel(weight) // filters)


def antialiasing(image: Any, output_size: Sequence[int], reach: int) -> int:
    """The elements of windows that grow with the image: `reach` of them where it does not shrink, a sum for each dimension."""
    return sum(max(reach, -(-reach * n // max(out, 1))) for n, out in zip(image.shape[2:], output_size))


def attention(query: Any, key: Any, value: Any) -> int:
    """Scores (query by key) and their product with the values, without the softmax: as many products as `matmul` would take."""
    rows = numel(query) // max(size(query, -1), 1)
    return 2 * rows * size(key, -2) * (size(query, -1) + size(value, -1))


def grouped(x: Sequence[Any], weight: Sequence[Any]) -> int:
    """Products of groups: 2 operations for every element of x and column of its weight."""
    return sum(2 * numel(item) for item in x) * size(weight[0], -1)


def fourier(tensor: Any, dims: Sequence[int]) -> int:
    """5 n log2 n for each transform of length n, as is usual (Van Loan, Computational Frameworks for the Fast Fourier Transform)."""
    return sum(round(5 * numel(tensor) * math.log2(max(size(tensor, dim), 2))) for dim in dims)


def batches(matrices: Any) -> int:
    """How many matrices a tensor holds."""
    return math.prod(matrices.shape[:-2])


def rows(matrices: Any) -> int:
    """The rows of each matrix."""
    return matrices.shape[-2]


def columns(matrices: Any) -> int:
    """The columns of each matrix."""
    return matrices.shape[-1]


def long_side(matrices: Any) -> int:
    """The larger of rows and columns."""
    return max(matrices.shape[-2:])


def short_side(matrices: Any) -> int:
    """The smaller of rows and columns."""
    return min(matrices.shape[-2:])
