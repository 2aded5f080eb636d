"""Convolution and pooling: batches for inputs without one."""

from __future__ import annotations

from typing import Any

from ...._dispatch import ops
from ...._dtype import DTYPES
from ...._generated.npu.functions import (
    aclnnConvolution,
    aclnnConvolutionBackward,
    aclnnMaxPool2dWithIndices,
    aclnnMaxPool2dWithIndicesBackward,
)
from .. import copies
from ..aclnn import launch
from ..arguments import KEEP_DTYPE, spread
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
    given = (input._data, weight._data, None if bias is None else bias._data)
    launch(aclnnConvolution, *given, *lists, transposed, spread(output_padding, count), groups, result, KEEP_DTYPE)


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
    given = (grad_output._data, input._data, weight._data, sizes)
    rest = (transposed, spread(output_padding, count), groups, output_mask, KEEP_DTYPE)
    launch(aclnnConvolutionBackward, *given, *lists, *rest, first, *results[1:])


def max_pool(
    out: Any, self: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple | None:
    window = [spread(v, 2) for v in (kernel_size, stride or kernel_size, padding, dilation)]
    batched = self.dim() == 4
    source = self if batched else ops.unsqueeze(self, 0)
    values = out[0] if batched else _unsqueezed(out[0])
    # aclnn gives indices as int32; PyTorch's are int64.
    places = empty(tuple(values.shape), None, DTYPES["int32"], self.device)
    if values.size:
        launch(aclnnMaxPool2dWithIndices, source._data, *window, ceil_mode, values, places)
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
) -> None:
    window = [spread(v, 2) for v in (kernel_size, stride or kernel_size, padding, dilation)]
    places = ops._to_copy(indices, dtype=DTYPES["int32"])
    given = [grad_output, self, places]
    result = out[0]
    if self.dim() == 3:
        given = [ops.unsqueeze(t, 0) for t in given]
        result = _unsqueezed(result)
    if result.size:
        launch(aclnnMaxPool2dWithIndicesBackward, *(t._data for t in given), *window, ceil_mode, result)
