"""Rules of Fourier transforms.

Note [Strides of a transform]. PyTorch brings the transformed dimensions to the end, in the order of their strides (of a real side the last
one stays last), and the others before them, likewise; the result is contiguous in that order. At most three dimensions are transformed at a
time, the fastest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _dtype as _d
from .geometry import Shape
from .spec import Spec, rule

_AT_ONCE = 3


def _falling(dims: Sequence[int], stride: Sequence[int]) -> list[int]:
    return sorted(dims, key=lambda dim: -stride[dim])


def _strides(shape: Sequence[int], stride: Sequence[int], dims: Sequence[int]) -> Shape:
    """The strides of a result of `shape`: `dims` last in this order, the others by the input's strides."""
    others = _falling([dim for dim in range(len(shape)) if dim not in dims], stride)
    result = [0] * len(shape)
    step = 1
    for dim in reversed([*others, *dims]):
        result[dim] = step
        step *= max(shape[dim], 1)
    return tuple(result)


def _c2c_strides(shape: Sequence[int], stride: Sequence[int], dims: Sequence[int]) -> Shape:
    left = list(dims)
    strides = tuple(stride)
    while left:
        left = _falling(left, strides)
        now, left = left[-_AT_ONCE:], left[:-_AT_ONCE]
        strides = _strides(shape, strides, now)
    return strides


@rule(flops="fourier(self, dim)", batch="along")
def fft_c2c(self: Any, dim: Sequence[int]) -> Spec:
    """Complex to complex, of self's shape."""
    if not self.dtype.is_complex:
        raise RuntimeError(f"Only supports complex dtypes, but found: {self.dtype.cpp}")
    shape = tuple(self.shape)
    return Spec(shape, self.dtype, _c2c_strides(shape, self.stride(), list(dim)))


@rule(flops="fourier(self, dim) // 2", batch="along")
def fft_r2c(self: Any, dim: Sequence[int], onesided: bool = True) -> Spec:
    """Real to complex; onesided keeps the first half of the last of `dim`."""
    if not self.dtype.is_floating_point:
        raise RuntimeError(f"Only supports floating-point dtypes, but found: {self.dtype.cpp}")
    if self.dtype not in (_d.float32, _d.float64):
        raise RuntimeError(f"Unsupported dtype {self.dtype.cpp}")
    shape = list(self.shape)
    last = dim[-1]
    if onesided:
        shape[last] = shape[last] // 2 + 1
    order = [*_falling(dim[:-1], self.stride()), last]
    if len(order) <= _AT_ONCE:
        strides = _strides(shape, self.stride(), order)
    else:
        strides = _c2c_strides(shape, _strides(shape, self.stride(), [last]), order[:-1])
    return Spec(tuple(shape), self.dtype.to_complex(), strides)


@rule(flops="fourier(out, dim) // 2", batch="along")
def fft_c2r(self: Any, dim: Sequence[int], last_dim_size: int) -> Spec:
    """Complex, of which the last of `dim` holds the first half, to real."""
    if not self.dtype.is_complex:
        raise RuntimeError(f"Only supports complex dtypes, but found: {self.dtype.cpp}")
    strides = _c2c_strides(tuple(self.shape), self.stride(), dim[:-1])
    shape = list(self.shape)
    shape[dim[-1]] = int(last_dim_size)
    return Spec(tuple(shape), self.dtype.to_real(), _strides(shape, strides, [dim[-1]]))
