"""Factories of windows, of numbers in steps between tensors, and of the indices of triangles."""

from __future__ import annotations

import math
from typing import Any

from ...._dispatch import ops
from ...._dtype import DTYPES
from ...._tensor import Tensor


def _window(out: Any, length: int, periodic: bool, shape: Any) -> Any:
    """`shape(n, last)`: the window at the positions n of 0 to last."""
    result = out[0]
    if length <= 1:
        return ops.ones((length,), dtype=result.dtype, device=result.device)
    kind = result.dtype if result.dtype.itemsize >= 4 else DTYPES["float32"]
    count = length + 1 if periodic else length
    made = shape(ops.arange(0, count, dtype=kind, device=result.device), count - 1)
    return ops.narrow(made, 0, 0, length)


def _cosines(n: Any, last: int, *factors: float) -> Any:
    """A sum of cosines of 0, 1, ... periods."""
    made = ops.full_like(n, factors[0])
    for periods, factor in enumerate(factors[1:], 1):
        made = ops.add(made, ops.cos(ops.mul(n, 2 * math.pi * periods / last)), alpha=factor)
    return made


def hann(out: Any, window_length: int, *args: Any) -> Any:
    return hann_periodic(out, window_length, True)


def hann_periodic(out: Any, window_length: int, periodic: bool, *args: Any) -> Any:
    return _window(out, window_length, periodic, lambda n, last: _cosines(n, last, 0.5, -0.5))


def hamming(out: Any, window_length: int, *args: Any) -> Any:
    return hamming_full(out, window_length, True, 0.54, 0.46)


def hamming_periodic(out: Any, window_length: int, periodic: bool, *args: Any) -> Any:
    return hamming_full(out, window_length, periodic, 0.54, 0.46)


def hamming_alpha(out: Any, window_length: int, periodic: bool, alpha: float, *args: Any) -> Any:
    return hamming_full(out, window_length, periodic, alpha, 0.46)


def hamming_full(out: Any, window_length: int, periodic: bool, alpha: float, beta: float, *args: Any) -> Any:
    return _window(out, window_length, periodic, lambda n, last: _cosines(n, last, alpha, -beta))


def blackman(out: Any, window_length: int, *args: Any) -> Any:
    return blackman_periodic(out, window_length, True)


def blackman_periodic(out: Any, window_length: int, periodic: bool, *args: Any) -> Any:
    return _window(out, window_length, periodic, lambda n, last: _cosines(n, last, 0.42, -0.5, 0.08))


def bartlett(out: Any, window_length: int, *args: Any) -> Any:
    return bartlett_periodic(out, window_length, True)


def bartlett_periodic(out: Any, window_length: int, periodic: bool, *args: Any) -> Any:
    def shape(n: Any, last: int) -> Any:
        return ops.rsub(ops.abs(ops.sub(ops.mul(n, 2 / last), 1)), 1)

    return _window(out, window_length, periodic, shape)


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value


def linspace(out: Any, start: Any, end: Any, steps: int, *args: Any) -> Any:
    """The host asks tensors for their numbers, and waits for them."""
    return ops.linspace(_number(start), _number(end), steps, dtype=out[0].dtype, device=out[0].device)


def logspace(out: Any, start: Any, end: Any, steps: int, base: float, *args: Any) -> Any:
    kind = out[0].dtype
    if kind.is_complex:
        return NotImplemented
    exact = kind if kind.is_floating_point and kind.itemsize >= 4 else DTYPES["float64"]
    ends = [_number(start), _number(end)]
    if not kind.is_floating_point and steps != 1:
        ends = [int(number) for number in ends]  # as PyTorch reads them
    exponents = ops.linspace(*ends, steps, dtype=exact, device=out[0].device)
    return ops._to_copy(ops.pow(base, exponents), dtype=kind)


def _triangle(out: Any, row: int, col: int, keep: Any) -> Any:
    ones = ops.ones((row, col), dtype=DTYPES["uint8"], device=out[0].device)
    return ops._to_copy(ops.t(ops.nonzero(keep(ones))), dtype=out[0].dtype)


def tril_indices(out: Any, row: int, col: int, offset: int, *args: Any) -> Any:
    return _triangle(out, row, col, lambda ones: ops.tril(ones, offset))


def triu_indices(out: Any, row: int, col: int, offset: int, *args: Any) -> Any:
    return _triangle(out, row, col, lambda ones: ops.triu(ones, offset))
