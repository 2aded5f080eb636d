"""Fourier transforms over numpy's. normalization: 0 none, 1 by the root of the number of points, 2 by that number."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.fft  # numpy itself would import it when a function asks for it, see Note [Imports on first use]
from numpy import ndarray

from ...._dispatch.native import kernel


def _scaled(result: ndarray, count: int, normalization: int) -> ndarray:
    if normalization:
        scale = 1 / math.sqrt(count) if normalization == 1 else 1 / count
        result *= result.real.dtype.type(scale)
    return result


def _count(shape: Sequence[int], dim: Sequence[int]) -> int:
    return max(math.prod(shape[d] for d in dim), 1)


@kernel
def fft_c2c(self: ndarray, dim: Sequence[int], normalization: int, forward: bool) -> ndarray:
    if not dim or not self.size:
        return self.copy()
    # numpy's norm says which direction is scaled: ask for none here. Its functions of several dimensions take longer to read their arguments.
    if len(dim) == 1:
        result = np.fft.fft(self, None, dim[0]) if forward else np.fft.ifft(self, None, dim[0], "forward")
    else:
        result = np.fft.fftn(self, axes=dim) if forward else np.fft.ifftn(self, axes=dim, norm="forward")
    return _scaled(result, _count(self.shape, dim), normalization)


@kernel
def fft_r2c(self: ndarray, dim: Sequence[int], normalization: int, onesided: bool) -> ndarray:
    if not self.size:
        shape = list(self.shape)
        if onesided:
            shape[dim[-1]] = shape[dim[-1]] // 2 + 1
        return np.zeros(shape, np.result_type(self.dtype, np.complex64))
    if len(dim) == 1:
        result = np.fft.rfft(self, None, dim[0]) if onesided else np.fft.fft(self, None, dim[0])
    else:
        result = np.fft.rfftn(self, axes=dim) if onesided else np.fft.fftn(self, axes=dim)
    return _scaled(result, _count(self.shape, dim), normalization)


@kernel
def fft_c2r(self: ndarray, dim: Sequence[int], normalization: int, last_dim_size: int) -> ndarray:
    sizes = [self.shape[d] for d in dim]
    sizes[-1] = last_dim_size
    if not self.size:
        shape = list(self.shape)
        shape[dim[-1]] = last_dim_size
        return np.zeros(shape, self.real.dtype)
    if len(dim) == 1:
        result = np.fft.irfft(self, last_dim_size, dim[0], "forward")
    else:
        result = np.fft.irfftn(self, sizes, axes=dim, norm="forward")
    return _scaled(result, max(math.prod(sizes), 1), normalization)
