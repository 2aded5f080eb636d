"""Activations, normalisations and distances of networks made of other operators."""

from __future__ import annotations

import math
from typing import Any

from mindtorch_v2._dtype import bool as boolean, float64, uint8
from mindtorch_v2._generated import functions as F
from mindtorch_v2._rules import activations, nn as rules
from mindtorch_v2._rules.geometry import prefers_channels_last
from mindtorch_v2._tensor import Tensor


def prelu(self: Tensor, weight: Tensor) -> Tensor:
    """self where positive, else self times the weight of its channel (dimension 1), or the only weight."""
    activations.prelu(self, weight)
    if self.dim() > 1:
        weight = F.reshape(weight, [1, weight.numel(), *[1] * (self.dim() - 2)])
    elif weight.dim() and not self.dim():
        weight = F.reshape(weight, [])
    return F._prelu_kernel(self, weight)


def rrelu(
    self: Tensor, lower: float = 0.125, upper: float = 1 / 3, training: bool = False, generator: Any = None
) -> Tensor:
    """leaky_relu with a slope drawn from [lower, upper] in training, and their mean otherwise."""
    for name, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound}")
    if not lower <= upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return F.leaky_relu(self, (lower + upper) / 2)
    if not self.dtype.is_floating_point:
        raise NotImplementedError(f"\"rrelu_with_noise_out_cpu\" not implemented for '{self.dtype.cpp}'")
    negative = F.le(self, 0)
    if self.device.type == "meta":
        return F.where(negative, F.mul(self, lower), self)
    # PyTorch draws a double for each element that needs a slope, and for no other.
    drawn = F.rand([int(negative.sum())], dtype=float64, device=self.device, generator=generator)
    drawn = F.add(F.mul(drawn, upper - lower), lower).to(self.dtype)
    slopes = F.masked_scatter(F.ones_like(self), negative, drawn)
    return F.where(negative, F.mul(self, slopes), self)


def special_softmax(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """`softmax`."""
    return F.softmax(self, dim, dtype)


def special_log_softmax(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """`log_softmax`."""
    return F.log_softmax(self, dim, dtype)


def masked_softmax(self: Tensor, mask: Tensor, dim: int | None = None, mask_type: int | None = None) -> Tensor:
    """softmax of what the mask leaves, along `dim` (the last one); what it hides gives 0, and rows without anything NaN.

    mask: bool; of queries and keys (mask_type 0), of batch and keys (1), or of self's shape (2). RuntimeError for other masks.
    """
    if mask.dtype is not boolean:
        raise RuntimeError("Mask should be a boolean tensor")
    if mask_type is None and mask.shape != self.shape:
        raise RuntimeError("Mask Type should be defined")
    if mask_type not in (None, 0, 1, 2):
        raise RuntimeError("Mask Type should be 0 (src_mask) or 1 (src_key_padding_mask), or 2 (default_mask)")
    if mask_type == 2 and mask.shape != self.shape:
        raise RuntimeError("For mask_type == 2 mask shape should match input shape")
    if mask_type == 1 and self.dim() == 4 and mask.dim() == 2:
        mask = F.reshape(mask, [mask.shape[0], 1, 1, mask.shape[1]])
    return F.softmax(F.masked_fill(self, mask, -math.inf), -1 if dim is None else dim)


# Normalisation


def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """batch_norm with every (sample, channel) as a channel of its own; running statistics are averaged over the batch."""
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    shape = list(input.shape)
    batch, channels = shape[0], shape[1]
    if not batch and (running_mean is not None or running_var is not None):
        raise IndexError("select(): index 0 out of range for tensor of size [0] at dimension 0")
    means = None if running_mean is None else _repeated(running_mean, batch)
    variances = None if running_var is None else _repeated(running_var, batch)
    out = F.batch_norm(
        F.reshape(F.clone(input) if not input.is_contiguous() else input, [1, batch * channels, *shape[2:]]),
        None if weight is None else _repeated(weight, batch),
        None if bias is None else _repeated(bias, batch),
        means,
        variances,
        use_input_stats,
        momentum,
        eps,
        cudnn_enabled,
    )
    for running, repeated in ((running_mean, means), (running_var, variances)):
        if running is not None and repeated is not None:
            F.copy_(F.detach(running), F.mean(F.reshape(repeated, [batch, channels]), [0]))
    return F.reshape(out, shape)


def _repeated(parameter: Tensor, batch: int) -> Tensor:
    return parameter.repeat([batch])


def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Values per channel with mean 0 and variance 1, of the batch in training and the running ones otherwise."""
    if not input.numel():
        for tensor in (weight, bias, running_mean, running_var):
            if tensor is not None and tensor.device != input.device:
                raise RuntimeError(
                    f"Expected all tensors to be on the same device, but found at least two devices, {input.device} and {tensor.device}!"
                )
        out = input.clone()
        out = out if weight is None else out * weight[0]
        return out if bias is None else out + bias[0]
    return F.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Groups of channels of each sample with mean 0 and variance 1."""
    shape = input.shape
    if len(shape) < 2:
        rules.group_norm(input, num_groups, weight, bias)  # which raises
    if not input.is_contiguous() and not prefers_channels_last(shape, input.stride()):
        input = input.contiguous()
    batch, channels, *places = shape
    plane = math.prod(places)
    return F.native_group_norm(input, weight, bias, batch, channels, plane, num_groups, eps)[0]


def weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """v with the norms `g` along `dim`."""
    return F._weight_norm_interface(v, g, dim)[0]


# The same normalisation under the names by which its arguments are written to, or copied.


def native_batch_norm_legit(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    """native_batch_norm, which updates its statistics in training."""
    return F.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def native_batch_norm_no_stats(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, training: bool, momentum: float, eps: float
) -> Any:
    """native_batch_norm without running statistics."""
    return F.native_batch_norm(input, weight, bias, None, None, training, momentum, eps)


def native_batch_norm_no_training(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> Any:
    """native_batch_norm by the running statistics."""
    return F.native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)


def native_batch_norm_functional(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    """native_batch_norm, and the updated statistics as results."""
    mean, var = running_mean.clone(), running_var.clone()
    return *F.native_batch_norm(input, weight, bias, mean, var, training, momentum, eps), mean, var


def _reserve(input: Tensor) -> Tensor:
    """What other devices keep for the backward pass, and this one does not need."""
    return F.empty([0], dtype=uint8, device=input.device)


def batch_norm_with_update(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> Any:
    """native_batch_norm in training, and an empty reserve."""
    return *F.native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps), _reserve(input)


def batch_norm_with_update_functional(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> Any:
    """batch_norm_with_update, and the updated statistics as results."""
    mean, var = running_mean.clone(), running_var.clone()
    return *batch_norm_with_update(input, weight, bias, mean, var, momentum, eps), mean, var


def batch_norm_no_update(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
) -> Any:
    """native_batch_norm by the running statistics, and an empty reserve."""
    return *F.native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps), _reserve(input)
