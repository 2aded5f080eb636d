"""glu and embedding. What activations are, their entries' blocks say."""

from __future__ import annotations

import numpy as np
from numpy import ndarray

from ...._dispatch import native
from .elements import sigmoid

# ------------------------------------------------------------------------------------------------------------------------- glu


@native.kernel
def glu(self: ndarray, dim: int = -1) -> ndarray:
    half = self.shape[dim] // 2
    front = (slice(None),) * (dim % self.ndim)
    return self[(*front, slice(half))] * sigmoid(self[(*front, slice(half, None))])


@native.kernel
def glu_backward(grad_output: ndarray, self: ndarray, dim: int) -> ndarray:
    half = self.shape[dim] // 2
    front = (slice(None),) * (dim % self.ndim)
    first, second = (*front, slice(half)), (*front, slice(half, None))
    gate = sigmoid(self[second])
    result = np.empty(self.shape, self.dtype)
    np.multiply(grad_output, gate, out=result[first])
    np.multiply(grad_output, self[first] * gate * (1 - gate), out=result[second])
    return result


# ------------------------------------------------------------------------------------------------------------------- embedding


def _check_rows(indices: ndarray, rows: int) -> None:
    if indices.size and (np.minimum.reduce(indices, axis=None) < 0 or np.maximum.reduce(indices, axis=None) >= rows):
        raise IndexError("index out of range in self")


def embedding(
    weight: ndarray, indices: ndarray, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> ndarray:
    _check_rows(indices, weight.shape[0])
    return weight.take(indices, 0)


def fast_embedding(
    weight: ndarray, indices: ndarray, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> ndarray | None:
    """`embedding` of int64 indices."""
    if indices.dtype.char not in "lqi" or weight.ndim != 2 or not indices.size:
        return None
    try:
        # take itself raises for an index beyond the end, so only negative ones are looked for
        return None if np.minimum.reduce(indices, axis=None) < 0 else weight.take(indices, 0)
    except IndexError:
        return None


@native.kernel
def add_rows(out: ndarray, rows: ndarray, values: ndarray) -> None:
    """`out[rows[i]] += values[i]` with repeated rows adding up; `rows` 1-D and in range, `out` and `values` 2-D.

    Wide rows are added one by one, which costs less than sorting or than element indices; narrow ones go through numpy's indexed loop.
    """
    width = out.shape[1]
    if width >= 64 and rows.size * 64 <= out.size + rows.size * width:
        for row, value in zip(rows.tolist(), values, strict=True):
            target = out[row]
            np.add(target, value, out=target)
    elif width == 1:
        np.add.at(out[:, 0], rows, values[:, 0])
    elif out.flags.c_contiguous:
        places = (rows[:, None] * width + np.arange(width)).reshape(-1)
        np.add.at(out.reshape(-1), places, values.reshape(-1))
    else:
        np.add.at(out, rows, values)


def embedding_dense_backward(
    grad_output: ndarray, indices: ndarray, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> ndarray:
    width = grad_output.shape[-1]
    result = np.zeros((num_weights, width), grad_output.dtype)
    rows = indices.reshape(-1)
    values = grad_output.reshape(rows.size, width)
    if scale_grad_by_freq and rows.size:
        values = values / np.bincount(rows)[rows].astype(values.dtype)[:, None]
    if padding_idx >= 0:
        kept = rows != padding_idx
        if not kept.all():
            rows, values = rows[kept], values[kept]
    add_rows(result, rows.astype(np.intp, copy=False), values)
    return result


def embedding_renorm_(self: ndarray, indices: ndarray, max_norm: float, norm_type: float) -> ndarray:
    """Scale the rows that are looked up and longer than `max_norm` down to it."""
    _check_rows(indices, self.shape[0])
    rows = np.unique(indices)
    chosen = self[rows].astype(np.float64)
    norms = np.linalg.norm(chosen, ord=norm_type, axis=1)
    long = norms > max_norm
    scale = max_norm / (norms[long] + 1e-7)
    self[rows[long]] = (chosen[long] * scale[:, None]).astype(self.dtype)
    return self
