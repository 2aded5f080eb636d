"""Joining and rearranging: cat, stack, repeat, flip, roll, padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from ...._dispatch.native import kernel
from ...common.convert import wrapped
from .view import PREFIX, diagonal_of

F32 = np.dtype(np.float32)


@kernel
def cat(tensors: list[ndarray], dim: int = 0) -> ndarray:
    """PyTorch ignores 1-D tensors without elements, whatever the others' shapes."""
    kept = [t for t in tensors if t.ndim != 1 or t.size]
    return np.concatenate(kept, axis=dim) if kept else np.empty(0, np.result_type(*tensors))


@kernel
def stack(tensors: list[ndarray], dim: int = 0) -> ndarray:
    first = tensors[0]
    dim %= first.ndim + 1
    result = np.empty((*first.shape[:dim], len(tensors), *first.shape[dim:]), np.result_type(*tensors))
    for place, tensor in enumerate(tensors):
        result[(*PREFIX[dim], place)] = tensor
    return result


@kernel
def repeat(self: ndarray, repeats: Sequence[int]) -> ndarray:
    """Every element is written once into a result that is viewed as (repeat, size) pairs."""
    repeats = tuple(repeats)
    sizes = (1,) * (len(repeats) - self.ndim) + self.shape
    result = np.empty([r * n for r, n in zip(repeats, sizes, strict=True)], self.dtype)
    if result.size:
        pairs = result.reshape([x for pair in zip(repeats, sizes, strict=True) for x in pair])
        pairs[...] = self.reshape([x for n in sizes for x in (1, n)])
    return result


def repeat_interleave_counts(repeats: ndarray, output_size: int | None = None) -> ndarray:
    """Position i as often as `repeats[i]` says."""
    if repeats.size and repeats.min() < 0:
        raise RuntimeError("repeats can not be negative")
    return np.repeat(np.arange(repeats.size, dtype=repeats.dtype), repeats)


@kernel
def flip(self: ndarray, dims: Sequence[int]) -> ndarray:
    return np.flip(self, tuple(dims)).copy() if self.ndim else self.copy()


@kernel
def roll(self: ndarray, shifts: Any, dims: Any = ()) -> ndarray:
    if not dims:
        flat = np.ascontiguousarray(self).reshape(-1)
        return _rolled(flat, shifts if isinstance(shifts, int) else shifts[0], 0).reshape(self.shape)
    if not self.ndim:
        return self.copy()
    for shift, dim in zip(_tuple(shifts), _tuple(dims)):
        self = _rolled(self, shift, dim % self.ndim)
    return self


def _rolled(array: ndarray, shift: int, axis: int) -> ndarray:
    """The elements moved along an axis; those that leave come in at the other end."""
    first = PREFIX[axis]
    at = shift % (array.shape[axis] or 1)
    result = np.empty(array.shape, array.dtype)
    result[(*first, slice(at, None))] = array[(*first, slice(array.shape[axis] - at))]
    result[(*first, slice(at))] = array[(*first, slice(array.shape[axis] - at, None))]
    return result


def _tuple(value: Any) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(value)


# --------------------------------------------------------------------------------------------------------------------- padding


def _pairs(pad: Sequence[int], ndim: int) -> list[tuple[int, int]]:
    """(before, after) of every dimension; PyTorch lists them from the last dimension on."""
    pairs = [(0, 0)] * ndim
    for i in range(len(pad) // 2):
        pairs[ndim - 1 - i] = (pad[2 * i], pad[2 * i + 1])
    return pairs


def _cropped(array: ndarray, pairs: list[tuple[int, int]]) -> ndarray:
    """What negative padding leaves of the array."""
    return array[tuple([slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pairs, array.shape, strict=True)])]


@kernel
def constant_pad_nd(self: ndarray, pad: Sequence[int], value: Any = 0) -> ndarray:
    pairs = _pairs(pad, self.ndim)
    shape = [n + a + b for (a, b), n in zip(pairs, self.shape, strict=True)]
    result = np.empty(shape, self.dtype)
    result[...] = wrapped(value, self.dtype)
    inner = _cropped(self, pairs) if min(pad, default=0) < 0 else self
    places = [slice(max(a, 0), max(a, 0) + n) for (a, _), n in zip(pairs, inner.shape, strict=True)]
    result[tuple(places)] = inner
    return result


def _reflected(size: int, before: int, after: int) -> ndarray:
    places = np.arange(-before, size + after)
    places = np.abs(places)
    return np.where(places >= size, 2 * (size - 1) - places, places)


def _replicated(size: int, before: int, after: int) -> ndarray:
    return np.clip(np.arange(-before, size + after), 0, size - 1)


def _padded(self: ndarray, padding: Sequence[int], places: Any) -> ndarray:
    if not any(padding):
        return self.copy()
    for dim, (before, after) in enumerate(_pairs(padding, self.ndim)):
        if before or after:
            self = self.take(places(self.shape[dim], before, after), dim)
    return self


def _padded_backward(grad: ndarray, shape: tuple[int, ...], padding: Sequence[int], places: Any) -> ndarray:
    if not any(padding):
        return grad.copy()
    for dim, (before, after) in enumerate(_pairs(padding, grad.ndim)):
        if before or after:
            result = np.zeros((*grad.shape[:dim], shape[dim], *grad.shape[dim + 1 :]), grad.dtype)
            np.add.at(np.moveaxis(result, dim, 0), places(shape[dim], before, after), np.moveaxis(grad, dim, 0))
            grad = result
    return grad


@kernel
def reflection_pad(self: ndarray, padding: Sequence[int]) -> ndarray:
    return _padded(self, padding, _reflected)


@kernel
def reflection_pad_backward(grad_output: ndarray, self: ndarray, padding: Sequence[int]) -> ndarray:
    return _padded_backward(grad_output, self.shape, padding, _reflected)


@kernel
def replication_pad(self: ndarray, padding: Sequence[int]) -> ndarray:
    return _padded(self, padding, _replicated)


@kernel
def replication_pad_backward(grad_output: ndarray, self: ndarray, padding: Sequence[int]) -> ndarray:
    return _padded_backward(grad_output, self.shape, padding, _replicated)


# ------------------------------------------------------------------------------------------------------------------- diagonals


@kernel
def diag_embed(self: ndarray, offset: int = 0, dim1: int = -2, dim2: int = -1) -> ndarray:
    ndim = self.ndim + 1
    first, second = sorted((dim1 % ndim, dim2 % ndim))
    if dim1 % ndim > dim2 % ndim:
        offset = -offset
    size = self.shape[-1] + abs(offset)
    shape = list(self.shape[:-1])
    shape.insert(first, size)
    shape.insert(second, size)
    result = np.zeros(shape, self.dtype)
    diagonal_of(result, offset, first, second)[...] = self
    return result


@kernel
def trace(self: ndarray) -> ndarray:
    diagonal = self.diagonal()
    if self.dtype.kind in "biu":
        return np.asarray(diagonal.sum(dtype=np.int64))
    return np.asarray((diagonal.astype(np.float32) if self.dtype.itemsize == 2 else diagonal).sum())


def _fresh(result: ndarray, self: ndarray) -> ndarray:
    """A copy where nothing had to move."""
    return result.copy() if np.may_share_memory(result, self) else result


def pixel_shuffle(self: ndarray, upscale_factor: int) -> ndarray:
    r = upscale_factor
    *lead, channels, height, width = self.shape
    split = self.reshape(*lead, channels // (r * r), r, r, height, width)
    n = len(lead)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return _fresh(split.transpose(order).reshape(*lead, channels // (r * r), height * r, width * r), self)


def pixel_unshuffle(self: ndarray, downscale_factor: int) -> ndarray:
    r = downscale_factor
    *lead, channels, height, width = self.shape
    split = self.reshape(*lead, channels, height // r, r, width // r, r)
    n = len(lead)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return _fresh(split.transpose(order).reshape(*lead, channels * r * r, height // r, width // r), self)
