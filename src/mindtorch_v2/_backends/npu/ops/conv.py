"""Convolution and pooling: batches for inputs without one."""

from __future__ import annotations

import math
from typing import Any

from ...._dispatch import ops
from ...._dtype import DTYPES, iinfo
from ...._generated.npu.functions import (
    aclnnConvolution,
    aclnnConvolutionBackward,
    aclnnMaxPool2dWithIndices,
    aclnnMaxPool2dWithIndicesBackward,
)
from .. import copies
from ..aclnn import launch
from ..arguments import convolution_mode, spread
from ..creation import empty


def general(
    out: Any,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> None:
    count = weight.dim() - 2
    result = out[0]
    if not result.size:
        return
    if input.dim() == count + 1:
        input = ops.unsqueeze(input, 0)
        result = _unsqueezed(result)
    lists = [spread(value, count) for value in (stride, padding, dilation)]
    given = (input._payload, weight._payload, None if bias is None else bias._payload)
    launch(
        aclnnConvolution, *given, *lists, transposed, spread(output_padding, count), groups, result, convolution_mode()
    )


def _unsqueezed(payload: Any) -> Any:
    return payload.__class__(
        (1, *payload.shape), (payload.size, *payload.stride), payload.dtype, payload.offset, payload.storage
    )


def convolution(
    out: Any, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> None:
    general(out, input, weight, bias, stride, padding, dilation, False, 0, groups)


def transposed(
    out: Any,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> None:
    general(out, input, weight, bias, stride, padding, dilation, True, output_padding, groups)


def backward(
    out: Any,
    grad_output: Any,
    input: Any,
    weight: Any,
    bias_sizes: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: Any,
) -> None:
    count = weight.dim() - 2
    lists = [spread(value, count) for value in (stride, padding, dilation)]
    sizes = bias_sizes or [weight.shape[1] * groups if transposed else weight.shape[0]]
    results = [out[i] if output_mask[i] else None for i in range(3)]
    first = results[0]
    if input.dim() == count + 1:
        input, grad_output = ops.unsqueeze(input, 0), ops.unsqueeze(grad_output, 0)
        first = None if first is None else _unsqueezed(first)
    given = (grad_output._payload, input._payload, weight._payload, sizes)
    rest = (transposed, spread(output_padding, count), groups, output_mask, convolution_mode())
    launch(aclnnConvolutionBackward, *given, *lists, *rest, first, *results[1:])


def max_pool(
    out: Any, self: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple | None:
    window = [spread(v, 2) for v in (kernel_size, stride or kernel_size, padding, dilation)]
    if window[3] != [1, 1]:
        return _dilated_pool(out, self, *window)
    batched = self.dim() == 4
    source = self if batched else ops.unsqueeze(self, 0)
    values = out[0] if batched else _unsqueezed(out[0])
    # aclnn gives indices as int32; PyTorch's are int64.
    places = empty(tuple(values.shape), None, DTYPES["int32"], self.device)
    if values.size:
        launch(aclnnMaxPool2dWithIndices, source._payload, *window, ceil_mode, values, places)
    copies.copy_on_device(out[1] if batched else _unsqueezed(out[1]), places)
    return None


def max_pool_backward(
    out: Any,
    grad_output: Any,
    self: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: Any,
) -> Any:
    window = [spread(v, 2) for v in (kernel_size, stride or kernel_size, padding, dilation)]
    if window[3] != [1, 1]:
        lead, rows = tuple(self.shape[:-2]), self.shape[-2] * self.shape[-1]
        zeros = ops.zeros((*lead, rows), dtype=grad_output.dtype, device=self.device)
        flat = [ops.reshape(t, (*lead, -1)) for t in (indices, grad_output)]
        return ops.reshape(ops.scatter_add(zeros, -1, *flat), tuple(self.shape))
    places = ops._to_copy(indices, dtype=DTYPES["int32"])
    given = [grad_output, self, places]
    result = out[0]
    if self.dim() == 3:
        given = [ops.unsqueeze(t, 0) for t in given]
        result = _unsqueezed(result)
    if result.size:
        launch(aclnnMaxPool2dWithIndicesBackward, *(t._payload for t in given), *window, ceil_mode, result)
    return None


def _dilated_pool(out: Any, self: Any, kernel: list, stride: list, padding: list, dilation: list) -> tuple:
    """Maxima over windows with gaps, which the function does not take: along a view of all windows."""
    height, width = out[0].shape[-2:]
    rows, columns = self.shape[-2:]
    # As far as the last window reaches, with numbers that no maximum takes.
    reach = [
        (n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip((height, width), stride, kernel, dilation, strict=True)
    ]
    after = [max(r - n - p, 0) for r, n, p in zip(reach, (rows, columns), padding, strict=True)]
    least = -math.inf if self.dtype.is_floating_point else iinfo(self.dtype).min
    padded = ops.constant_pad_nd(self, [padding[1], after[1], padding[0], after[0]], least)
    *lead, down, right = padded.stride()
    shape = (*self.shape[:-2], height, width, *kernel)
    steps = (*lead, down * stride[0], right * stride[1], down * dilation[0], right * dilation[1])
    windows = ops.reshape(ops.as_strided(padded, shape, steps), (*shape[:-2], kernel[0] * kernel[1]))
    values, chosen = ops.max(windows, -1)
    line = ops.div(chosen, kernel[1], rounding_mode="floor")
    column = ops.sub(chosen, ops.mul(line, kernel[1]))
    first = ops.reshape(ops.sub(ops.mul(ops.arange(height, device=self.device), stride[0]), padding[0]), (height, 1))
    second = ops.sub(ops.mul(ops.arange(width, device=self.device), stride[1]), padding[1])
    down_to = ops.add(ops.mul(line, dilation[0]), first)
    return values, ops.add(ops.mul(down_to, columns), ops.add(ops.mul(column, dilation[1]), second))
