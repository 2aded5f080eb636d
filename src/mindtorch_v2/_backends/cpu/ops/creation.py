"""New arrays: constants, ranges, identity matrices, triangles, windows; and filling in place.

The rule has settled the dtype of the result, and the dispatcher casts to it; a kernel takes the dtype that it is given
only to spare that cast. `layout`, `device` and `pin_memory` are for the dispatcher.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .... import _memory
from ...._dispatch.native import kernel
from ...._dtype import dtype as DType, get_default_dtype, int64, unsupported
from ...._random.arithmetic import fma64
from .view import FEW

Array = np.ndarray
Number = int | float | complex | bool


def _np(dtype: DType | None) -> Any:
    """numpy's dtype of the one asked for, or of the default."""
    found = (dtype or get_default_dtype()).np
    if found is None and dtype is not None:
        raise RuntimeError(unsupported(dtype))
    return found


def _like(self: Array, dtype: DType | None) -> Any:
    return self.dtype if dtype is None else dtype.np


def _filled(shape: Sequence[int], value: Any, dtype: Any) -> Array:
    # astype wraps integers out of range around, as PyTorch does, where numpy.full would raise.
    return np.full(tuple(shape), np.asarray(value).astype(dtype), dtype)


# --- constants ----------------------------------------------------------------------------------------------------


@kernel
def empty(
    size: Sequence[int],
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Array:
    """Uninitialised."""
    return _memory.allocate(tuple(size), _np(dtype))


@kernel
def zeros(
    size: Sequence[int], dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> Array:
    """Zeros."""
    return np.zeros(tuple(size), _np(dtype))


@kernel
def ones(
    size: Sequence[int], dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> Array:
    """Ones."""
    return np.ones(tuple(size), _np(dtype))


@kernel
def full(
    size: Sequence[int],
    fill_value: Number,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """All of one value; where no dtype is given, in the value's own type, the default one for floats."""
    kind = np.asarray(fill_value).dtype if dtype is None else dtype.np
    return _filled(size, fill_value, _np(None) if dtype is None and isinstance(fill_value, float) else kind)


def empty_strided(size: Sequence[int], stride: Sequence[int], dtype: Any = None, *_: Any) -> Array:
    """Uninitialised; the dispatcher lays it out."""
    return _memory.allocate(tuple(size), _np(dtype))


@kernel
def empty_like(
    self: Array,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Array:
    """Uninitialised, of self's shape."""
    return np.empty_like(self, _like(self, dtype))


@kernel
def zeros_like(
    self: Array,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Array:
    """Zeros of self's shape."""
    return np.zeros_like(self, _like(self, dtype))


@kernel
def ones_like(
    self: Array,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Array:
    """Ones of self's shape."""
    return np.ones_like(self, _like(self, dtype))


@kernel
def full_like(
    self: Array,
    fill_value: Number,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Array:
    """All of one value, of self's shape."""
    kind = _like(self, dtype)
    return np.full_like(self, np.asarray(fill_value).astype(kind), kind)


@kernel
def new_empty(
    self: Array, size: Sequence[int], dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> Array:
    """Uninitialised, of self's dtype."""
    return _memory.allocate(tuple(size), _like(self, dtype))


def new_empty_strided(self: Array, size: Sequence[int], stride: Sequence[int], dtype: Any = None, *_: Any) -> Array:
    """Uninitialised, of self's dtype; the dispatcher lays it out."""
    return _memory.allocate(tuple(size), _like(self, dtype))


@kernel
def new_zeros(
    self: Array, size: Sequence[int], dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> Array:
    """Zeros of self's dtype."""
    return np.zeros(tuple(size), _like(self, dtype))


@kernel
def new_ones(
    self: Array, size: Sequence[int], dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> Array:
    """Ones of self's dtype."""
    return np.ones(tuple(size), _like(self, dtype))


@kernel
def new_full(
    self: Array,
    size: Sequence[int],
    fill_value: Number,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """All of one value, of self's dtype."""
    return _filled(size, fill_value, _like(self, dtype))


@kernel
def scalar_tensor(
    s: Number, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> Array:
    """One number, without dimensions."""
    return np.asarray(s).astype(_np(dtype))


# --- ranges -------------------------------------------------------------------------------------------------------


def _steps(start: Number, step: Number, count: int, integral: bool) -> Array:
    """start + i * step, in int64 or float64: the products do not add up errors."""
    if integral:
        return np.arange(count, dtype=np.int64) * int(step) + int(start)
    return np.arange(count, dtype=np.float64) * float(step) + float(start)


@kernel
def arange_step(
    start: Number,
    end: Number,
    step: Number = 1,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """start, start + step, ... below end."""
    whole = all(isinstance(x, int) for x in (start, end, step))
    integral = whole if dtype is None else whole or not (dtype.is_floating_point or dtype.is_complex)
    if integral and dtype is int64:
        # int64 truncates the three numbers first, the narrower integers after counting.
        start, end, step = int(start), int(end), int(step)
        whole = True
    if whole:
        count = -((start - end) // step)  # rounded up, exactly
    else:
        count = math.ceil((end - start) / step)
    kind = int64 if dtype is None and integral else dtype
    return _steps(start, step, max(count, 0), integral).astype(_np(kind), copy=False)


@kernel
def arange(end: Number, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None) -> Array:
    """0, 1, ... below end."""
    return arange_step(0, end, 1, dtype)


@kernel
def arange_start(
    start: Number, end: Number, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> Array:
    """start, start + 1, ... below end."""
    return arange_step(start, end, 1, dtype)


def range_step(start: Number, end: Number, step: Number = 1, dtype: Any = None, *_: Any) -> Array:
    """start, start + step, ... up to end, which is included."""
    kind = dtype or get_default_dtype()
    if not kind.is_floating_point:
        start, end, step = int(start), int(end), int(step)
    count = math.floor((end - start) / step) + 1
    return _steps(start, step, max(count, 0), not kind.is_floating_point)


def range_(start: Number, end: Number, dtype: Any = None, *_: Any) -> Array:
    """start, start + 1, ... up to end, which is included."""
    return range_step(start, end, 1, dtype)


def _spaced(start: Number, end: Number, steps: int, dtype: Any) -> Array:
    """Equal steps, from both ends to the middle so that both ends are exact; in the dtype's own precision."""
    kind = dtype.np if dtype.is_complex or dtype.name in ("float32", "float64") else np.float64
    if dtype.itemsize == 2 and dtype.is_floating_point:
        kind = np.float32
    if steps == 1:
        return np.full(1, start, kind)
    if not (dtype.is_floating_point or dtype.is_complex):
        start, end = int(start), int(end)
    first, last = np.asarray(start, kind), np.asarray(end, kind)
    step = (last - first) / np.asarray(steps - 1, kind)
    index = np.arange(steps)
    low = index < steps // 2
    base, factor = np.where(low, first, last), np.where(low, index, index - (steps - 1))
    if kind == np.float32:
        # One rounding of the sum and product, which double precision holds exactly.
        return (factor * float(step) + base).astype(np.float32)
    if kind == np.float64:
        rising, falling = (fma64(factor.astype(kind), float(step), float(end)) for end in (first, last))
        return np.where(low, rising, falling)
    return factor * step + base


def _number(value: Any) -> Number:
    return value.item() if isinstance(value, np.ndarray) else value


@kernel
def linspace(
    start: Any, end: Any, steps: int, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> Array:
    """`steps` numbers from start to end, both included; these are numbers or 0-dim arrays."""
    start, end = _number(start), _number(end)
    kind = dtype or _range_dtype(start, end)
    return _truncated(_spaced(start, end, steps, kind), kind)


def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    dtype: Any = None,
    *_: Any,
) -> Array:
    """base to the powers of a linspace."""
    start, end = _number(start), _number(end)
    kind = dtype or _range_dtype(start, end)
    powers = _spaced(start, end, steps, kind)
    return _truncated(np.power(powers.dtype.type(base), powers), kind)


def _range_dtype(start: Number, end: Number) -> DType:
    kind = get_default_dtype()
    return kind.to_complex() if isinstance(start, complex) or isinstance(end, complex) else kind


def _truncated(values: Array, kind: DType) -> Array:
    return values.astype(kind.np) if not (kind.is_floating_point or kind.is_complex) else values


# --- matrices -----------------------------------------------------------------------------------------------------


@kernel
def eye(n: int, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None) -> Array:
    """The identity matrix."""
    return eye_m(n, n, dtype)


@kernel
def eye_m(n: int, m: int, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None) -> Array:
    """Ones on the diagonal of an n by m matrix."""
    result = np.zeros((n, m), _np(dtype))
    result.reshape(-1)[: min(n, m) * m : m + 1] = 1
    return result


def _triangle(self: Array, diagonal: int, upper: bool) -> Array:
    """The matrices with zeros above a diagonal, or below and on it."""
    rows, columns = self.shape[-2:]
    mask = (_beyond if rows * columns <= FEW else _beyond.__wrapped__)(rows, columns, diagonal, upper)
    result = self.copy()
    np.copyto(result, False, where=mask)
    return result


@functools.lru_cache(64)
def _beyond(rows: int, columns: int, diagonal: int, upper: bool) -> Array:
    """Where a matrix lies above a diagonal, or below and on it."""
    lower = np.arange(rows)[:, None] >= np.arange(-diagonal, columns - diagonal)
    return lower if upper else ~lower


@kernel
def tril(self: Array, diagonal: int = 0) -> Array:
    """The lower triangle of each matrix; zeros elsewhere."""
    return _triangle(self, diagonal, False)


@kernel
def triu(self: Array, diagonal: int = 0) -> Array:
    """The upper triangle of each matrix; zeros elsewhere."""
    return _triangle(self, diagonal - 1, True)


@kernel
def tril_indices(
    row: int,
    col: int,
    offset: int = 0,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """Rows and columns of the lower triangle, row by row."""
    return np.stack(np.tril_indices(row, offset, col))


@kernel
def triu_indices(
    row: int,
    col: int,
    offset: int = 0,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """Rows and columns of the upper triangle, row by row."""
    return np.stack(np.triu_indices(row, offset, col))


# --- filling in place ---------------------------------------------------------------------------------------------


@kernel
def fill(self: Array, value: Any) -> Array:
    """One value in every element."""
    self[...] = np.asarray(value).astype(self.dtype)
    return self


@kernel
def zero_(self: Array) -> Array:
    """Zero in every element."""
    self[...] = 0
    return self


# --- windows ------------------------------------------------------------------------------------------------------


def _window_points(window_length: int, periodic: bool) -> tuple[Array, int]:
    """Positions and the period, of which a periodic window shows all but the last point."""
    return np.arange(window_length, dtype=np.float64), window_length if periodic else window_length - 1


def _cosine_window(window_length: int, periodic: bool, *weights: float) -> Array:
    if window_length <= 1:
        return np.ones(window_length)
    points, period = _window_points(window_length, periodic)
    angle = points * (2.0 * math.pi / period)
    return sum((w * np.cos(k * angle) for k, w in enumerate(weights)), np.zeros(window_length))


def hann_window(window_length: int, *_: Any) -> Array:
    """Hann's window, periodic."""
    return _cosine_window(window_length, True, 0.5, -0.5)


def hann_window_periodic(window_length: int, periodic: bool, *_: Any) -> Array:
    """Hann's window."""
    return _cosine_window(window_length, periodic, 0.5, -0.5)


def hamming_window(window_length: int, *_: Any) -> Array:
    """Hamming's window, periodic."""
    return _cosine_window(window_length, True, 0.54, -0.46)


def hamming_window_periodic(window_length: int, periodic: bool, *_: Any) -> Array:
    """Hamming's window."""
    return _cosine_window(window_length, periodic, 0.54, -0.46)


def hamming_window_alpha(window_length: int, periodic: bool, alpha: float, *_: Any) -> Array:
    """Hamming's window with a constant of one's own."""
    return _cosine_window(window_length, periodic, alpha, -0.46)


def hamming_window_alpha_beta(window_length: int, periodic: bool, alpha: float, beta: float, *_: Any) -> Array:
    """Hamming's window with constants of one's own."""
    return _cosine_window(window_length, periodic, alpha, -beta)


def blackman_window(window_length: int, *_: Any) -> Array:
    """Blackman's window, periodic."""
    return _cosine_window(window_length, True, 0.42, -0.5, 0.08)


def blackman_window_periodic(window_length: int, periodic: bool, *_: Any) -> Array:
    """Blackman's window."""
    return _cosine_window(window_length, periodic, 0.42, -0.5, 0.08)


def bartlett_window(window_length: int, *_: Any) -> Array:
    """The triangular window, periodic."""
    return bartlett_window_periodic(window_length, True)


def bartlett_window_periodic(window_length: int, periodic: bool, *_: Any) -> Array:
    """The triangular window."""
    if window_length <= 1:
        return np.ones(window_length)
    points, period = _window_points(window_length, periodic)
    return 1.0 - np.abs(2.0 * points / period - 1.0)


def kaiser_window(window_length: int, *_: Any) -> Array:
    """Kaiser's window, periodic, beta 12."""
    return kaiser_window_beta(window_length, True, 12.0)


def kaiser_window_periodic(window_length: int, periodic: bool, *_: Any) -> Array:
    """Kaiser's window, beta 12."""
    return kaiser_window_beta(window_length, periodic, 12.0)


def kaiser_window_beta(window_length: int, periodic: bool, beta: float, *_: Any) -> Array:
    """Kaiser's window."""
    if window_length <= 1:
        return np.ones(window_length)
    points, period = _window_points(window_length, periodic)
    place = 2.0 * points / period - 1.0
    return np.i0(beta * np.sqrt(np.maximum(1.0 - place * place, 0.0))) / np.i0(beta)
