"""Derivatives of Fourier transforms: transforms the other way."""

from __future__ import annotations

from collections.abc import Sequence

from ..._dispatch import ops
from ..._tensor import Tensor


def fft_r2c_gradient(
    grad: Tensor, dim: Sequence[int], normalization: int, onesided: bool, shape: Sequence[int]
) -> Tensor:
    """The gradient of the real input."""
    last = dim[-1]
    missing = shape[last] - grad.shape[last]
    if onesided and missing:
        padding = [0, 0] * (grad.dim() - 1 - last % grad.dim()) + [0, missing]
        grad = ops.constant_pad_nd(grad, padding, 0)
    return ops.real(ops._fft_c2c(grad, dim, normalization, False))


def fft_c2r_gradient(grad: Tensor, dim: Sequence[int], normalization: int) -> Tensor:
    """The gradient of the half that stands for the whole: what stands for two counts twice."""
    half = ops._fft_r2c(grad, dim, normalization, True)
    last = dim[-1]
    doubled = grad.shape[last] - half.shape[last]
    if doubled <= 0:
        return half
    first = ops.narrow(half, last, 0, 1)
    rest = ops.narrow(half, last, 1 + doubled, half.shape[last] - 1 - doubled)
    return ops.cat([first, ops.narrow(half, last, 1, doubled) * 2, rest], last)


__all__ = ["fft_c2r_gradient", "fft_r2c_gradient"]
