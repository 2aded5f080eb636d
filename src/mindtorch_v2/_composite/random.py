"""Dropout in its forms, made of other operators."""

from __future__ import annotations

import math

from mindtorch_v2 import _dtype
from mindtorch_v2._generated import functions as F
from mindtorch_v2._tensor import Tensor

# Minus the limit of selu at minus infinity: scale * alpha.
_SELU_LIMIT = 1.7580993408473766


def _check(p: float) -> None:
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")


def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """The gradient of native_dropout's input."""
    return F.mul(F.mul(grad_output, mask), scale)


def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Zeros with probability p, the rest divided by 1 - p; `input` itself outside of training.

    Raises RuntimeError for p outside of 0 to 1.
    """
    _check(p)
    if p == 0 or not train or not input.numel():
        return input
    if p == 1:
        return F.mul(input, F.zeros_like(input))
    if input.device.type == "npu" and input.dtype.is_floating_point and input.dtype is not _dtype.float64:
        return F._npu_dropout(input, p)[0]  # one launch, and a mask of bits
    return F.native_dropout(input, p, True)[0]


def _channels(input: Tensor) -> Tensor:
    """Room for one number per sample and channel."""
    if input.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return F.new_empty(input, [input.shape[0], input.shape[1]] + [1] * (input.dim() - 2))


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropout of whole channels. Raises RuntimeError below two dimensions."""
    _check(p)
    if p == 0 or not train or not input.numel():
        return input
    if p == 1:
        return F.mul(input, F.zeros_like(input))
    noise = _channels(input)
    _check_scalable(input, shifted=False)
    F.bernoulli_(noise, 1 - p)
    return F.mul(input, F.div(noise, 1 - p))


def _alpha(input: Tensor, noise: Tensor, p: float) -> Tensor:
    """Dropped elements take the limit of selu; mean and variance stay."""
    a = 1.0 / math.sqrt((_SELU_LIMIT * _SELU_LIMIT * p + 1) * (1 - p))
    shift = F.add(F.mul(F.sub(noise, 1), _SELU_LIMIT * a), _SELU_LIMIT * a * p)
    return F.add(F.mul(input, F.mul(noise, a)), shift)


def _check_scalable(input: Tensor, shifted: bool = True) -> None:
    if input.dtype.category < _dtype.CATEGORY_FLOATING:
        # What dropped elements take is computed first, from the mask in int64 where that is bool.
        name = "Long" if shifted and input.dtype is _dtype.bool else input.dtype.cpp
        raise RuntimeError(f"result type Float can't be cast to the desired output type {name}")


def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropout for self-normalising networks."""
    _check(p)
    if p == 0 or not train or not input.numel():
        return input
    if p == 1:
        return F.mul(input, F.zeros_like(input))
    _check_scalable(input)
    return _alpha(input, F.bernoulli_(F.empty_like(input), 1 - p), p)


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`alpha_dropout` of whole channels. Raises RuntimeError below two dimensions."""
    _check(p)
    if p == 0 or not train or not input.numel():
        return input
    if p == 1:
        return F.mul(input, F.zeros_like(input))
    noise = _channels(input)
    _check_scalable(input)
    return _alpha(input, F.bernoulli_(noise, 1 - p), p)


def dropout_(self: Tensor, p: float, train: bool) -> Tensor:
    """`dropout` in place."""
    _check(p)
    return self.copy_(dropout(self, p, train)) if train and p else self


def feature_dropout_(self: Tensor, p: float, train: bool) -> Tensor:
    """`feature_dropout` in place."""
    _check(p)
    return self.copy_(feature_dropout(self, p, train)) if train and p else self


def alpha_dropout_(self: Tensor, p: float, train: bool) -> Tensor:
    """`alpha_dropout` in place."""
    _check(p)
    return self.copy_(alpha_dropout(self, p, train)) if train and p else self


def feature_alpha_dropout_(self: Tensor, p: float, train: bool) -> Tensor:
    """`feature_alpha_dropout` in place."""
    _check(p)
    return self.copy_(feature_alpha_dropout(self, p, train)) if train and p else self
