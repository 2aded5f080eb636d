"""Gradients of convolutions with respect to their inputs and weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindtorch_v2 as torch

from .._generated import functions as _f
from .._tensor import Tensor


def _tuple(value: Any, n: int) -> tuple[int, ...]:
    return (value,) * n if isinstance(value, int) else tuple(value)


def _input(
    n: int, size: Sequence[int], weight: Tensor, grad: Tensor, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    # The operator wants an input, of which only the shape matters.
    input = torch.empty(1, dtype=grad.dtype, device=grad.device).expand(list(size))
    return _f.convolution_backward(
        grad,
        input,
        weight,
        None,
        _tuple(stride, n),
        _tuple(padding, n),
        _tuple(dilation, n),
        False,
        [0],
        groups,
        (True, False, False),
    )[0]


def _weight(
    n: int, input: Tensor, size: Sequence[int], grad: Tensor, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    weight = torch.empty(1, dtype=grad.dtype, device=grad.device).expand(list(size))
    return _f.convolution_backward(
        grad,
        input,
        weight,
        None,
        _tuple(stride, n),
        _tuple(padding, n),
        _tuple(dilation, n),
        False,
        [0],
        groups,
        (False, True, False),
    )[1]


def conv1d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of ``conv1d`` with respect to an input of ``input_size``."""
    return _input(1, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of ``conv1d`` with respect to a weight of ``weight_size``."""
    return _weight(1, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of ``conv2d`` with respect to an input of ``input_size``."""
    return _input(2, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of ``conv2d`` with respect to a weight of ``weight_size``."""
    return _weight(2, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of ``conv3d`` with respect to an input of ``input_size``."""
    return _input(3, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of ``conv3d`` with respect to a weight of ``weight_size``."""
    return _weight(3, input, weight_size, grad_output, stride, padding, dilation, groups)
