"""Normalization layers as functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import mindtorch_v2 as torch

from ..._generated import functions as _f
from ..._tensor import Tensor
from .vision import pad

_CUDNN = False  # An argument of the operators that has no meaning here.


def _verify_batch_size(size: Sequence[int]) -> None:
    if size[0] * math.prod(size[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def _verify_spatial_size(size: Sequence[int]) -> None:
    if math.prod(size[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {size}")


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize each channel of ``(N, C, ...)`` over the batch; in training the running statistics are updated.

    Raises ValueError for one value per channel in training and for ``eps`` that is not positive.
    """
    if training:
        _verify_batch_size(input.size())
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return _f.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, _CUDNN)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize each channel of each sample of ``(N, C, ...)``."""
    if use_input_stats:
        _verify_spatial_size(input.size())
    return _f.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, _CUDNN)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize over the last dimensions, which are ``normalized_shape``."""
    return _f.layer_norm(input, normalized_shape, weight, bias, eps, _CUDNN)


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divide by the root mean square over the last dimensions."""
    return _f.rms_norm(input, normalized_shape, weight, eps)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalize groups of channels of each sample of ``(N, C, ...)``."""
    size = input.size()
    if len(size) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    _verify_batch_size((size[0] * size[1] // num_groups, num_groups, *size[2:]))
    return _f.group_norm(input, num_groups, weight, bias, eps, _CUDNN)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Divide by ``(k + alpha * mean of squares of size neighbouring channels) ** beta``."""
    ndim = input.dim()
    if ndim < 3:
        # The blanks are in the sentence that programs compare with.
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {ndim} dimensions)")
    if input.numel() == 0:
        return input
    squares = input.mul(input)
    if ndim == 3:
        squares = pad(squares.unsqueeze(1), (0, 0, size // 2, (size - 1) // 2))
        mean = _f.avg_pool2d(squares, (size, 1), stride=1).squeeze(1)
    else:
        shape = input.size()
        squares = squares.view(shape[0], 1, shape[1], shape[2], -1)
        squares = pad(squares, (0, 0, 0, 0, size // 2, (size - 1) // 2))
        mean = _f.avg_pool3d(squares, (size, 1, 1), stride=1).squeeze(1).view(shape)
    return input / mean.mul(alpha).add(k).pow(beta)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """Divide by the p-norm along ``dim``, which is at least ``eps``."""
    norm = input.norm(p, dim, keepdim=True)
    if out is None:
        return input / norm.clamp_min(eps).expand_as(input)
    return torch.div(input, norm.clamp_min_(eps).expand_as(input), out=out)
