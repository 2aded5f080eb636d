"""Softmax, its logarithm, and their backward kernels, block of rows by block of rows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from ...._dispatch import native
from .blocked import alike
from .view import FEW

F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)
_BLOCK = 1 << 16


@functools.lru_cache(64)
def _ones(width: int, dtype: np.dtype) -> ndarray:
    return np.ones(width, dtype)


def _largest(x: ndarray, axis: int) -> ndarray:
    """Maxima along `axis`, which stays with size 1. numpy finds the place of a row's maximum faster than the maximum."""
    if axis == 1 and x.ndim == 2 and x.size > 4096:
        places = x.argmax(1)
        places += np.arange(0, x.size, x.shape[1])
        return x.reshape(-1).take(places)[:, None]
    return np.maximum.reduce(x, axis, None, None, True)


def _total(x: ndarray, axis: int) -> ndarray:
    """Sums along `axis`, which stays with size 1; of rows by BLAS."""
    if axis == 1 and x.ndim == 2:
        return x.dot(_ones(x.shape[1], x.dtype))[:, None]
    return np.add.reduce(x, axis, None, None, True)


def _by_rows(kernel: Callable[..., None], dim: int, *arrays: ndarray) -> ndarray:
    """Apply `kernel(out, axis, *arrays)`; where `dim` is the last one of contiguous arrays, to blocks of rows."""
    first = arrays[0]
    out = np.empty(first.shape, first.dtype)
    if not first.size:
        return out
    if not first.ndim:
        kernel(out.reshape(1), 0, *[a.reshape(1) for a in arrays])
        return out
    axis = dim % first.ndim
    if axis != first.ndim - 1 or not all([a.flags.c_contiguous for a in arrays]):
        kernel(out, axis, *arrays)
        return out
    width = first.shape[-1]
    target = out.reshape(-1, width)
    if first.size <= _BLOCK:
        kernel(target, 1, *[a.reshape(-1, width) for a in arrays])
        return out
    flat = [a.reshape(-1, width) for a in arrays]
    step = max(_BLOCK // width, 1)
    for start in range(0, len(target), step):
        kernel(target[start : start + step], 1, *[a[start : start + step] for a in flat])
    return out


def _softmax_block(out: ndarray, axis: int, x: ndarray) -> None:
    np.subtract(x, _largest(x, axis), out)
    np.exp(out, out)
    total = _total(out, axis)
    np.multiply(out, np.reciprocal(total, total), out)


def _log_softmax_block(out: ndarray, axis: int, x: ndarray) -> None:
    np.subtract(x, _largest(x, axis), out)
    total = _total(np.exp(out), axis)
    np.subtract(out, np.log(total, total), out)


def _softmax_backward_block(out: ndarray, axis: int, grad: ndarray, y: ndarray) -> None:
    np.multiply(grad, y, out=out)
    out -= y * _total(out, axis)


def _log_softmax_backward_block(out: ndarray, axis: int, grad: ndarray, y: ndarray) -> None:
    np.exp(y, out=out)
    out *= _total(grad, axis)
    np.subtract(grad, out, out=out)


@native.kernel
def softmax_backward_data(grad_output: ndarray, output: ndarray, dim: int, input_dtype: Any = None) -> ndarray:
    return _by_rows(_softmax_backward_block, dim, grad_output, output)


def fast_softmax_backward_data(grad_output: ndarray, output: ndarray, dim: int, input_dtype: Any) -> ndarray | None:
    """`softmax_backward_data` of contiguous float arrays."""
    if not alike(grad_output, output) or dim.__class__ is not int or not -output.ndim <= dim < output.ndim:
        return None
    return softmax_backward_data(grad_output, output, dim)


@native.kernel
def log_softmax_backward_data(grad_output: ndarray, output: ndarray, dim: int, input_dtype: Any = None) -> ndarray:
    return _by_rows(_log_softmax_backward_block, dim, grad_output, output)


def fast_log_softmax_backward_data(grad_output: ndarray, output: ndarray, dim: int, input_dtype: Any) -> ndarray | None:
    """`log_softmax_backward_data` of contiguous float arrays."""
    if not alike(grad_output, output) or dim.__class__ is not int or not -output.ndim <= dim < output.ndim:
        return None
    return log_softmax_backward_data(grad_output, output, dim)


def safe_softmax(self: ndarray, dim: int, dtype: Any = None) -> ndarray:
    """Softmax in which a row of -inf alone gives zeros."""
    result = softmax(self, dim)
    if self.ndim:
        empty = np.maximum.reduce(self, axis=dim, keepdims=True) == -np.inf if self.size else None
        if empty is not None and empty.any():
            np.copyto(result, 0, where=empty)
    return result


@native.kernel
def softmax(self: ndarray, dim: int, dtype: Any = None) -> ndarray:
    if 0 < self.size <= FEW and self.ndim:
        out = np.subtract(self, np.maximum.reduce(self, dim, None, None, True))
        total = np.add.reduce(np.exp(out, out), dim, None, None, True)
        return np.multiply(out, np.reciprocal(total, total), out)
    return _by_rows(_softmax_block, dim, self)


@native.kernel
def log_softmax(self: ndarray, dim: int, dtype: Any = None) -> ndarray:
    if 0 < self.size <= FEW and self.ndim:
        out = np.subtract(self, np.maximum.reduce(self, dim, None, None, True))
        total = np.add.reduce(np.exp(out), dim, None, None, True)
        return np.subtract(out, np.log(total, total), out)
    return _by_rows(_log_softmax_block, dim, self)


def fast_softmax(self: ndarray, dim: int, dtype: Any = None) -> ndarray | None:
    """`softmax` over a dimension of a contiguous float array."""
    return _fast(_softmax_block, self, dim, dtype)


def fast_log_softmax(self: ndarray, dim: int, dtype: Any = None) -> ndarray | None:
    """`log_softmax` over a dimension of a contiguous float array."""
    return _fast(_log_softmax_block, self, dim, dtype)


def _fast(kernel: Callable[..., None], self: ndarray, dim: int, dtype: Any) -> ndarray | None:
    if dtype is not None or dim.__class__ is not int or not self.flags.c_contiguous or not self.size:
        return None
    if (self.dtype is not F32 and self.dtype is not F64) or not -self.ndim <= dim < self.ndim:
        return None
    return _by_rows(kernel, dim, self)
