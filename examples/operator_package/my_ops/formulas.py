"""Derivatives that are longer than a line, written with public operators, so that they can be differentiated themselves."""

from __future__ import annotations

from typing import Any


def scaled_tanh_backward(grad: Any, result: Any, scale: float) -> Any:
    """The gradient of scaled_tanh by what it gave."""
    if scale == 0:
        return grad * 0
    return grad * (scale - result * result / scale)


def rms_pair_backward(normed: Any, rms_grad: Any, self: Any, rms: Any, eps: float) -> Any:
    """The gradient of both results of rms_pair."""
    size = self.shape[-1]
    inner = (normed * self).sum(-1, keepdim=True)
    return normed / rms + self * (rms_grad / (rms * size) - inner / (rms**3 * size))
