"""Batch normalization by the statistics of several ranks' batches, with its derivative."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from ..._tensor import Tensor
from ...autograd import Function


def _over_channels(values: Tensor, like: Tensor) -> Tensor:
    """One number for each channel, beside (N, C, *)."""
    return values.reshape([1, -1, *[1] * (like.dim() - 2)])


class SynchronizedNorm(Function):
    """The normalized input (N, C, *); and, without derivatives, mean, variance and count of all ranks' elements of each channel."""

    @staticmethod
    def forward(
        ctx: Any, input: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, group: Any
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        wide = input if input.dtype in (torch.float32, torch.float64) else input.float()
        axes = [axis for axis in range(input.dim()) if axis != 1]
        count = input.numel() // input.shape[1]
        channels = input.shape[1]
        own = wide.new_zeros(2 * channels + 1)
        if count:
            own[:channels] = wide.mean(axes)
            own[channels:-1] = wide.var(axes, correction=0)
            own[-1] = count
        every = own.new_empty(group.size(), own.numel())
        group.all_gather_single(every, own).wait()
        means, variances, counts = every[:, :channels], every[:, channels:-1], every[:, -1:]
        total = counts.sum()
        mean = (means * counts).sum(0) / total
        variance = ((variances + (means - mean).square()) * counts).sum(0) / total
        scale = (variance + eps).rsqrt()
        centred = wide - _over_channels(mean, wide)
        output = centred * _over_channels(scale if weight is None else scale * weight.to(wide.dtype), wide)
        if bias is not None:
            output = output + _over_channels(bias.to(wide.dtype), wide)
        ctx.save_for_backward(input, weight, mean, scale, total)
        ctx.group, ctx.needs_bias = group, bias is not None
        output = output.to(input.dtype)
        ctx.mark_non_differentiable(mean, variance, total)
        return output, mean, variance, total

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        input, weight, mean, scale, total = ctx.saved_tensors
        grad = grads[0].to(mean.dtype)
        axes = [axis for axis in range(input.dim()) if axis != 1]
        centred = input.to(mean.dtype) - _over_channels(mean, input)
        sums = torch.cat([grad.sum(axes), (grad * centred).sum(axes)])
        own, own_centred = sums.chunk(2)
        grad_weight = None if weight is None else (own_centred * scale).to(weight.dtype)
        grad_bias = own.clone().to(input.dtype if weight is None else weight.dtype) if ctx.needs_bias else None
        shared = sums.clone()
        ctx.group.allreduce([shared]).wait()
        of_grad, of_centred = (shared / total).chunk(2)
        factor = scale if weight is None else scale * weight.to(scale.dtype)
        less = _over_channels(of_grad, input) + centred * _over_channels(of_centred * scale.square(), input)
        given = (grad - less) * _over_channels(factor, input)
        return given.to(input.dtype), grad_weight, grad_bias, None, None
