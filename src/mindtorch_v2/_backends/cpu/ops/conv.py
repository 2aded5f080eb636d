"""Convolution in any number of dimensions as a matrix product of weights and unrolled patches, and its adjoint.

Note [Patches]: a patch matrix has a row for each (channel, place in the kernel) and a column for each output position. It is a strided view of the
padded input, copied once into the layout that BLAS wants. A transposed convolution is the gradient of the input of a plain one: product first, then
the columns are added to their places (`folded`), one slice for each place in the kernel.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.lib.stride_tricks import as_strided

from ...._dispatch.native import kernel
from .reduction import sum_dim

Sizes = tuple[int, ...]
_CACHED = 1 << 20  # bytes of patches that are made at once


def per_dim(value: Any, count: int) -> Sizes:
    """A parameter as one int for each spatial dimension; a number or a list of one stands for all."""
    if isinstance(value, int):
        return (value,) * count
    value = tuple(value)
    return value * count if len(value) == 1 and count > 1 else value


def _padded(x: ndarray, padding: Sizes) -> ndarray:
    if not any(padding):
        return x
    spatial = [n + 2 * p for n, p in zip(x.shape[2:], padding, strict=True)]
    result = np.zeros((*x.shape[:2], *spatial), x.dtype)
    result[(slice(None), slice(None), *[slice(p, p + n) for n, p in zip(x.shape[2:], padding, strict=True)])] = x
    return result


def _windows(x: ndarray, kernel: Sizes, out: Sizes, stride: Sizes, dilation: Sizes) -> ndarray:
    """(N, C, *kernel, *out): a view of the padded input, see Note [Patches]."""
    n, c, *spatial = x.strides
    places = [s * d for s, d in zip(spatial, dilation, strict=True)]
    steps = [s * t for s, t in zip(spatial, stride, strict=True)]
    return as_strided(x, (*x.shape[:2], *kernel, *out), (n, c, *places, *steps), writeable=False)


@kernel
def unrolled(x: ndarray, kernel: Sizes, out: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> ndarray:
    """(N, C, prod(kernel), prod(out)): contiguous patches; a 1x1 kernel needs no copy."""
    if math.prod(kernel) == 1 and not any(padding) and set(stride) <= {1}:
        return x.reshape(*x.shape[:2], 1, math.prod(out))
    windows = _windows(_padded(x, padding), kernel, out, stride, dilation)
    return windows.reshape(*x.shape[:2], math.prod(kernel), math.prod(out))


@kernel
def folded(
    columns: ndarray, spatial: Sizes, kernel: Sizes, out: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> ndarray:
    """The adjoint of `unrolled`: columns (N, C, prod(kernel), prod(out)) are added to an input of size `spatial`."""
    batch, channels = columns.shape[:2]
    padded = [n + 2 * p for n, p in zip(spatial, padding, strict=True)]
    result = np.zeros((batch, channels, *padded), columns.dtype)
    columns = columns.reshape(batch, channels, math.prod(kernel), *out)
    for number, place in enumerate(itertools.product(*[range(k) for k in kernel])):
        target = [
            slice(p * d, p * d + (o - 1) * s + 1, s) for p, d, o, s in zip(place, dilation, out, stride, strict=True)
        ]
        result[(slice(None), slice(None), *target)] += columns[:, :, number]
    return result[(slice(None), slice(None), *[slice(p, p + n) for n, p in zip(spatial, padding, strict=True)])]


def _output_size(spatial: Sequence[int], kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Sizes:
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(spatial, kernel, stride, padding, dilation, strict=True)
    )


def _forward(x: ndarray, weight: ndarray, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> ndarray:
    kernel = weight.shape[2:]
    out = _output_size(x.shape[2:], kernel, stride, padding, dilation)
    batch, outputs = x.shape[0], weight.shape[0]
    per_group = x.shape[1] // groups
    if per_group == 1 and outputs == groups and groups > 1:
        return _depthwise(x, weight, out, stride, padding, dilation)
    matrix = weight.reshape(groups, outputs // groups, per_group * math.prod(kernel))
    result = np.empty((batch, groups, outputs // groups, math.prod(out)), x.dtype)
    for part in _parts(x, kernel, out):
        columns = unrolled(x[part], kernel, out, stride, padding, dilation)
        columns = columns.reshape(columns.shape[0], groups, per_group * math.prod(kernel), math.prod(out))
        np.matmul(matrix, columns, out=result[part])
    return result.reshape(batch, outputs, *out)


def _parts(x: ndarray, kernel: Sizes, out: Sizes) -> Iterator[slice]:
    """Slices of the batch whose patches stay in the cache: large ones cost more to write and read than to multiply."""
    one = x.shape[1] * math.prod(kernel) * math.prod(out) * x.itemsize
    step = max(_CACHED // max(one, 1), 1)
    return (slice(start, start + step) for start in range(0, x.shape[0], step))


def _depthwise(x: ndarray, weight: ndarray, out: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> ndarray:
    """One kernel a channel: a sum over the places of the kernel needs no patches."""
    windows = _windows(_padded(x, padding), weight.shape[2:], out, stride, dilation)
    result = np.zeros((*x.shape[:2], *out), x.dtype)
    shape = (-1,) + (1,) * len(out)
    for place in itertools.product(*[range(k) for k in weight.shape[2:]]):
        result += windows[(slice(None), slice(None), *place)] * weight[(slice(None), 0, *place)].reshape(shape)
    return result


def _input_gradient(
    grad: ndarray, weight: ndarray, spatial: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> ndarray:
    """The gradient of the input of a plain convolution; the forward pass of a transposed one."""
    kernel = weight.shape[2:]
    out = tuple(grad.shape[2:])
    batch, outputs = grad.shape[0], weight.shape[0]
    matrix = weight.reshape(groups, outputs // groups, weight.shape[1] * math.prod(kernel))
    flat = grad.reshape(batch, groups, outputs // groups, math.prod(out))
    channels = groups * weight.shape[1]
    result = np.empty((batch, channels, *spatial), grad.dtype)
    for part in _parts(result, kernel, out):
        columns = np.matmul(matrix.swapaxes(1, 2), flat[part])
        columns = columns.reshape(columns.shape[0], channels, math.prod(kernel), math.prod(out))
        result[part] = folded(columns, spatial, kernel, out, stride, padding, dilation)
    return result


def _weight_gradient(
    grad: ndarray, x: ndarray, weight_shape: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> ndarray:
    kernel = weight_shape[2:]
    out = tuple(grad.shape[2:])
    batch, outputs = grad.shape[0], weight_shape[0]
    depth = weight_shape[1] * math.prod(kernel)
    flat = grad.reshape(batch, groups, outputs // groups, math.prod(out))
    total = np.zeros((groups, outputs // groups, depth), grad.dtype)
    for part in _parts(x, kernel, out):
        columns = unrolled(x[part], kernel, out, stride, padding, dilation)
        columns = columns.reshape(columns.shape[0], groups, depth, math.prod(out))
        for one, patches in zip(flat[part], columns, strict=True):
            total += np.matmul(one, patches.swapaxes(1, 2))
    return total.reshape(weight_shape)


def _as_batch(x: ndarray, dims: int) -> tuple[ndarray, bool]:
    return (x, False) if x.ndim == dims + 2 else (x[None], True)


@kernel
def convolution(
    input: ndarray,
    weight: ndarray,
    bias: ndarray | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> ndarray:
    dims = weight.ndim - 2
    x, single = _as_batch(input, dims)
    stride, padding, dilation = per_dim(stride, dims), per_dim(padding, dims), per_dim(dilation, dims)
    if transposed:
        extra = per_dim(output_padding, dims)
        spatial = tuple(
            (n - 1) * s - 2 * p + d * (k - 1) + e + 1
            for n, s, p, d, k, e in zip(x.shape[2:], stride, padding, dilation, weight.shape[2:], extra, strict=True)
        )
        result = _input_gradient(x, weight, spatial, stride, padding, dilation, groups)
    else:
        result = _forward(x, weight, stride, padding, dilation, groups)
    if bias is not None:
        result += bias.reshape((-1,) + (1,) * dims)
    return result[0] if single else result


def convolution_backward(
    grad_output: ndarray,
    input: ndarray,
    weight: ndarray,
    bias_sizes: Sequence[int] | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[ndarray | None, ndarray | None, ndarray | None]:
    grad_input, grad_weight = unshifted_gradients(
        grad_output,
        input,
        weight,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        bool(output_mask[0]),
        bool(output_mask[1]),
    )
    dims = weight.ndim - 2
    channel = grad_output.ndim - dims - 1
    others = tuple(d for d in range(grad_output.ndim) if d != channel)
    return grad_input, grad_weight, sum_dim(grad_output, others, False) if output_mask[2] else None


@kernel
def unshifted_gradients(
    grad_output: ndarray,
    input: ndarray,
    weight: ndarray,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    wants_input: bool,
    wants_weight: bool,
) -> tuple[ndarray | None, ndarray | None]:
    """The gradients of input and weight, or None for what is not wanted; `output_padding` shows in the shape of `grad_output`."""
    dims = weight.ndim - 2
    x, single = _as_batch(input, dims)
    grad, _ = _as_batch(grad_output, dims)
    stride, padding, dilation = per_dim(stride, dims), per_dim(padding, dims), per_dim(dilation, dims)
    grad_input = grad_weight = None
    if wants_input:
        if transposed:
            grad_input = _forward(grad, weight, stride, padding, dilation, groups)
            grad_input = grad_input[
                (..., *[slice(n) for n in x.shape[2:]])
            ]  # output_padding may leave room for one more
        else:
            grad_input = _input_gradient(grad, weight, x.shape[2:], stride, padding, dilation, groups)
        if single:
            grad_input = grad_input[0]
    if wants_weight:
        # A transposed convolution is the input gradient of the plain one that takes its output to its input: the two change roles.
        first, second = (x, grad) if transposed else (grad, x)
        grad_weight = _weight_gradient(first, second, weight.shape, stride, padding, dilation, groups)
    return grad_input, grad_weight


# -------------------------------------------------------------------------------------------------------------- im2col, col2im


def im2col(self: ndarray, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> ndarray:
    x, single = _as_batch(self, 2)
    kernel, dilation, padding, stride = (per_dim(v, 2) for v in (kernel_size, dilation, padding, stride))
    out = _output_size(x.shape[2:], kernel, stride, padding, dilation)
    columns = unrolled(x, kernel, out, stride, padding, dilation)
    columns = columns.reshape(x.shape[0], x.shape[1] * math.prod(kernel), math.prod(out))
    if np.may_share_memory(columns, self):  # a kernel of one element
        columns = columns.copy()
    return columns[0] if single else columns


def col2im(self: ndarray, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> ndarray:
    columns, single = (self, False) if self.ndim == 3 else (self[None], True)
    spatial = per_dim(output_size, 2)
    kernel, dilation, padding, stride = (per_dim(v, 2) for v in (kernel_size, dilation, padding, stride))
    out = _output_size(spatial, kernel, stride, padding, dilation)
    places = math.prod(kernel)
    columns = columns.reshape(columns.shape[0], columns.shape[1] // places, places, math.prod(out))
    result = folded(columns, spatial, kernel, out, stride, padding, dilation)
    return result[0] if single else result
