"""Pooling over one and three dimensions, in adaptive windows, and what undoes it: indices are int32 on the device, and int64 for PyTorch."""

from __future__ import annotations

from typing import Any

from ...._dispatch import ops
from ...._dtype import DTYPES
from ...._generated.npu.functions import (
    aclnnAdaptiveMaxPool2d,
    aclnnAdaptiveMaxPool2dBackward,
    aclnnAdaptiveMaxPool3d,
    aclnnAdaptiveMaxPool3dBackward,
    aclnnMaxPool3dWithArgmax,
    aclnnMaxPool3dWithArgmaxBackward,
    aclnnMaxUnpool3d,
)
from ...._tensor import wrap
from ..aclnn import launch
from ..arguments import spread
from ..creation import empty

_int32, _int64 = DTYPES["int32"], DTYPES["int64"]


def _empty(like: Any, shape: tuple, dtype: Any) -> Any:
    return empty(shape, None, dtype, like.device)


def _pooled(out: Any, function: Any, self: Any, ndim: int, *more: Any) -> Any:
    single = self.dim() == ndim + 1
    source = ops.contiguous(ops.unsqueeze(self, 0) if single else self)
    shape = (1, *out[0].shape) if single else tuple(out[0].shape)
    values, places = _empty(self, shape, self.dtype), _empty(self, shape, _int32)
    if out[0].size:
        launch(function, source._payload, *more, values, places)
    found = wrap(values, self.dtype), ops._to_copy(wrap(places, _int32), dtype=_int64)
    return tuple(ops.squeeze(t, 0) for t in found) if single else found


def _gradient(out: Any, function: Any, grad: Any, self: Any, indices: Any, ndim: int, *more: Any) -> Any:
    given = [grad, self, ops._to_copy(indices, dtype=_int32)]
    single = self.dim() == ndim + 1
    given = [ops.contiguous(ops.unsqueeze(t, 0) if single else t) for t in given]
    made = _empty(self, tuple(given[1].shape), self.dtype)
    if not grad.numel():
        return ops.zeros_like(self)
    launch(function, *(t._payload for t in given), *more, made)
    found = wrap(made, self.dtype)
    return ops.squeeze(found, 0) if single else found


def max_pool1d(
    out: Any, self: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple:
    """As over two dimensions, the first of which has one element."""
    window = [spread(v, 1)[0] for v in (kernel_size, stride or kernel_size, padding, dilation)]
    pairs = [(1, window[0]), (1, window[1]), (0, window[2]), (1, window[3])]
    found = ops.max_pool2d_with_indices(ops.unsqueeze(self, -2), *(list(pair) for pair in pairs), ceil_mode)
    return tuple(ops.squeeze(t, -2) for t in found)


def max_pool3d(out: Any, self: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
    window = [spread(v, 3) for v in (kernel_size, stride or kernel_size, padding, dilation)]
    return _pooled(out, aclnnMaxPool3dWithArgmax, self, 3, *window, ceil_mode)


def max_pool3d_backward(
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
    window = [spread(v, 3) for v in (kernel_size, stride or kernel_size, padding, dilation)]
    return _gradient(out, aclnnMaxPool3dWithArgmaxBackward, grad_output, self, indices, 3, *window, ceil_mode)


def adaptive_max_pool2d(out: Any, self: Any, output_size: Any) -> Any:
    return _pooled(out, aclnnAdaptiveMaxPool2d, self, 2, spread(output_size, 2))


def adaptive_max_pool2d_backward(out: Any, grad_output: Any, self: Any, indices: Any) -> Any:
    return _gradient(out, aclnnAdaptiveMaxPool2dBackward, grad_output, self, indices, 2)


def adaptive_max_pool3d(out: Any, self: Any, output_size: Any) -> Any:
    return _pooled(out, aclnnAdaptiveMaxPool3d, self, 3, spread(output_size, 3))


def adaptive_max_pool3d_backward(out: Any, grad_output: Any, self: Any, indices: Any) -> Any:
    return _gradient(out, aclnnAdaptiveMaxPool3dBackward, grad_output, self, indices, 3)


def max_unpool3d(out: Any, self: Any, indices: Any, output_size: Any, stride: Any, padding: Any) -> Any:
    made = ops.zeros(tuple(out[0].shape), dtype=self.dtype, device=self.device)
    if self.numel():
        lists = [list(v) for v in (output_size, stride, padding)]
        launch(aclnnMaxUnpool3d, ops.contiguous(self)._payload, ops.contiguous(indices)._payload, *lists, made._payload)
    return made
