"""Layer, RMS, group and batch normalisation, and weight norm.

Layer norm runs over blocks of rows so that the centred values stay in the cache between the passes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
from numpy import ndarray

from ...._dispatch import native
from .view import FEW

F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)
_BLOCK = 1 << 16
Gradients = tuple["ndarray | None", "ndarray | None", "ndarray | None"]


@functools.lru_cache(64)
def averaging(width: int, dtype: np.dtype) -> ndarray:
    """The vector whose product with a row is the row's mean: BLAS sums faster than a reduction."""
    return np.full(width, 1 / max(width, 1), dtype)


def _rows(array: ndarray, width: int) -> ndarray:
    return np.ascontiguousarray(array).reshape(-1, width)


def _statistics_shape(shape: tuple[int, ...], normalized: int) -> tuple[int, ...]:
    return shape[: len(shape) - normalized] + (1,) * normalized


# ------------------------------------------------------------------------------------------------------------------ layer norm


def _normalize_rows(
    x: ndarray, weight: ndarray | None, bias: ndarray | None, eps: float
) -> tuple[ndarray, ndarray, ndarray]:
    """Rows of the 2-D `x` with mean 0 and variance 1, scaled and shifted; (out, mean, rstd), the last two 1-D."""
    count, width = x.shape
    share = averaging(width, x.dtype)
    mean = x.dot(share)
    if x.size <= FEW:
        out = np.subtract(x, mean[:, None])
        rstd = np.multiply(out, out).dot(share)
        np.add(rstd, eps, rstd)
        np.divide(1, np.sqrt(rstd, rstd), rstd)
        np.multiply(out, rstd[:, None], out)
        if weight is not None:
            np.multiply(out, weight, out)
        return out if bias is None else np.add(out, bias, out), mean, rstd
    out = np.empty((count, width), x.dtype)
    rstd = np.empty(count, x.dtype)
    step = max(_BLOCK // max(width, 1), 1)
    for start in range(0, count, step):
        stop = start + step
        target = out[start:stop]
        np.subtract(x[start:stop], mean[start:stop, None], out=target)
        scale = np.multiply(target, target).dot(share)
        scale += eps
        np.sqrt(scale, out=scale)
        np.divide(1, scale, out=rstd[start:stop])
        target *= rstd[start:stop, None]
        if weight is not None:
            target *= weight
        if bias is not None:
            target += bias
    return out, mean, rstd


@native.kernel
def native_layer_norm(
    input: ndarray, normalized_shape: Sequence[int], weight: ndarray | None, bias: ndarray | None, eps: float
) -> tuple[ndarray, ndarray, ndarray]:
    width = math.prod(normalized_shape)
    small = _statistics_shape(input.shape, len(normalized_shape))
    if not input.size:
        count = math.prod(small)
        fill = np.full(count, np.nan if not width else 0, input.dtype)
        return np.empty(input.shape, input.dtype), np.zeros(small, input.dtype), fill.reshape(small)
    flat_weight = None if weight is None else weight.reshape(-1)
    flat_bias = None if bias is None else bias.reshape(-1)
    out, mean, rstd = _normalize_rows(_rows(input, width), flat_weight, flat_bias, eps)
    return out.reshape(input.shape), mean.reshape(small), rstd.reshape(small)


@native.kernel
def layer_norm(
    input: ndarray,
    normalized_shape: Sequence[int],
    weight: ndarray | None = None,
    bias: ndarray | None = None,
    eps: float = 1e-05,
    cudnn_enable: bool = True,
) -> ndarray:
    return native_layer_norm(input, normalized_shape, weight, bias, eps)[0]


def fast_layer_norm(
    input: ndarray,
    normalized_shape: Sequence[int],
    weight: ndarray | None = None,
    bias: ndarray | None = None,
    eps: float = 1e-05,
    cudnn_enable: bool = True,
) -> ndarray | None:
    """`layer_norm` of a contiguous float array over its last dimension."""
    dtype = input.dtype
    if (dtype is not F32 and dtype is not F64) or not input.flags.c_contiguous or not input.size:
        return None
    if len(normalized_shape) != 1:
        return None
    width = normalized_shape[0]
    shape = input.shape
    if not shape or shape[-1] != width:
        return None
    for each in (weight, bias):
        if each is not None and (each.dtype is not dtype or each.shape != (width,)):
            return None
    return _normalize_rows(input.reshape(-1, width), weight, bias, eps)[0].reshape(shape)


@native.kernel
def native_layer_norm_backward(
    grad_out: ndarray,
    input: ndarray,
    normalized_shape: Sequence[int],
    mean: ndarray,
    rstd: ndarray,
    weight: ndarray | None,
    bias: ndarray | None,
    output_mask: Sequence[bool],
) -> Gradients:
    width = math.prod(normalized_shape)
    want_input, want_weight, want_bias = output_mask
    want_weight = want_weight and weight is not None
    want_bias = want_bias and bias is not None
    x, grad = _rows(input, width), _rows(grad_out, width)
    centre, scale = mean.reshape(-1, 1), rstd.reshape(-1, 1)
    factor = None if weight is None else weight.reshape(-1)
    grad_input = np.empty(x.shape, x.dtype) if want_input else None
    grad_weight = np.zeros(width, x.dtype) if want_weight else None
    grad_bias = np.zeros(width, x.dtype) if want_bias else None
    share = averaging(width, x.dtype)
    step = max(_BLOCK // max(width, 1), 1)
    product = np.empty((min(step, len(x)), width), x.dtype)
    ones = np.ones(len(product), x.dtype)
    for start in range(0, len(x), step):
        stop = min(start + step, len(x))
        rows, buffer, each = grad[start:stop], product[: stop - start], ones[: stop - start]
        normal = x[start:stop] - centre[start:stop]
        normal *= scale[start:stop]
        if grad_weight is not None:
            np.multiply(rows, normal, out=buffer)
            grad_weight += each.dot(buffer)
        if grad_bias is not None:
            grad_bias += each.dot(rows)
        if grad_input is not None:
            target = grad_input[start:stop]
            if factor is None:
                target[...] = rows
            else:
                np.multiply(rows, factor, out=target)
            np.multiply(target, normal, out=buffer)
            normal *= buffer.dot(share)[:, None]
            normal += target.dot(share)[:, None]
            target -= normal
            target *= scale[start:stop]
    return (
        None if grad_input is None else grad_input.reshape(input.shape),
        None if grad_weight is None or weight is None else grad_weight.reshape(weight.shape),
        None if grad_bias is None or bias is None else grad_bias.reshape(bias.shape),
    )


# -------------------------------------------------------------------------------------------------------------------- rms norm


def _rms_rows(x: ndarray, weight: ndarray | None, eps: float) -> tuple[ndarray, ndarray]:
    count, width = x.shape
    out = np.empty((count, width), x.dtype)
    rstd = np.empty(count, x.dtype)
    share = averaging(width, x.dtype)
    step = max(_BLOCK // max(width, 1), 1)
    for start in range(0, count, step):
        stop = start + step
        rows, target = x[start:stop], out[start:stop]
        scale = np.multiply(rows, rows, out=target).dot(share)
        scale += eps
        np.sqrt(scale, out=scale)
        np.divide(1, scale, out=rstd[start:stop])
        np.multiply(rows, rstd[start:stop, None], out=target)
        if weight is not None:
            target *= weight
    return out, rstd


@native.kernel
def fused_rms_norm(
    input: ndarray, normalized_shape: Sequence[int], weight: ndarray | None, eps: float | None
) -> tuple[ndarray, ndarray]:
    width = math.prod(normalized_shape)
    small = _statistics_shape(input.shape, len(normalized_shape))
    if eps is None:
        eps = float(np.finfo(input.dtype).eps)
    out, rstd = _rms_rows(_rows(input, width), None if weight is None else weight.reshape(-1), eps)
    return out.reshape(input.shape), rstd.reshape(small)


@native.kernel
def rms_norm(
    input: ndarray, normalized_shape: Sequence[int], weight: ndarray | None = None, eps: float | None = None
) -> ndarray:
    if not input.size:
        return np.empty(input.shape, input.dtype)
    return fused_rms_norm(input, normalized_shape, weight, eps)[0]


# ------------------------------------------------------------------------------------------------------------------ group norm


@native.kernel
def native_group_norm(
    input: ndarray, weight: ndarray | None, bias: ndarray | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[ndarray, ndarray, ndarray]:
    if not input.size:
        empty = np.zeros((N, group), input.dtype)
        return np.empty(input.shape, input.dtype), empty, empty.copy()
    out, mean, rstd = _normalize_rows(_rows(input, C // group * HxW), None, None, eps)
    by_channel = out.reshape(N, C, HxW)
    if weight is not None:
        by_channel *= weight.reshape(C, 1)
    if bias is not None:
        by_channel += bias.reshape(C, 1)
    return out.reshape(input.shape), mean.reshape(N, group), rstd.reshape(N, group)


@native.kernel
def native_group_norm_backward(
    grad_out: ndarray,
    input: ndarray,
    mean: ndarray,
    rstd: ndarray,
    weight: ndarray | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    output_mask: Sequence[bool],
) -> Gradients:
    width = C // group * HxW
    x = input.reshape(N, group, width)
    normal = (x - mean.reshape(N, group, 1)) * rstd.reshape(N, group, 1)
    grad = grad_out.reshape(N, C, HxW)
    grad_input = grad_weight = grad_bias = None
    if output_mask[0]:
        scaled = (grad if weight is None else grad * weight.reshape(C, 1)).reshape(N, group, width)
        along = np.einsum("ngw,ngw->ng", scaled, normal)[..., None] / width
        level = scaled.sum(-1, keepdims=True) / width
        grad_input = ((scaled - level - normal * along) * rstd.reshape(N, group, 1)).reshape(input.shape)
    if output_mask[1] and weight is not None:
        grad_weight = np.einsum("ncw,ncw->c", grad, normal.reshape(N, C, HxW))
    if output_mask[2]:
        grad_bias = grad.sum((0, 2))
    return grad_input, grad_weight, grad_bias


# ------------------------------------------------------------------------------------------------------------------ batch norm


def _channels(array: ndarray | None, ndim: int) -> ndarray | None:
    return None if array is None else array.reshape((1, -1) + (1,) * (ndim - 2))


@native.kernel
def native_batch_norm(
    input: ndarray,
    weight: ndarray | None,
    bias: ndarray | None,
    running_mean: ndarray | None,
    running_var: ndarray | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[ndarray, ndarray, ndarray]:
    """In training the running statistics are updated in place; (out, mean, 1/std), the last two empty outside of training."""
    if running_mean is not None and running_var is not None and running_mean.dtype != input.dtype:
        # Statistics of a half type beside an input that is computed in float32 move in float32, and are rounded once.
        wide = running_mean.astype(input.dtype), running_var.astype(input.dtype)
        made = native_batch_norm(input, weight, bias, *wide, training, momentum, eps)
        if training:
            running_mean[...], running_var[...] = wide
        return made
    axes = (0, *range(2, input.ndim))
    ndim = input.ndim
    if training:
        count = input.size // max(input.shape[1], 1)
        mean = input.mean(axes, dtype=np.float64)
        centred = input - _channels(mean.astype(input.dtype), ndim)
        var = np.square(centred).mean(axes, dtype=np.float64)
        if running_mean is not None:
            running_mean += ((mean - running_mean) * momentum).astype(running_mean.dtype)
        if running_var is not None:
            unbiased = var * (count / (count - 1)) if count > 1 else np.full_like(var, np.nan)
            running_var += ((unbiased - running_var) * momentum).astype(running_var.dtype)
        invstd = (1 / np.sqrt(var + eps)).astype(input.dtype)
        saved = mean.astype(input.dtype), invstd
    else:
        assert running_mean is not None and running_var is not None
        invstd = (1 / np.sqrt(running_var + running_var.dtype.type(eps))).astype(input.dtype)
        centred = input - _channels(running_mean.astype(input.dtype), ndim)
        saved = np.empty(0, input.dtype), np.empty(0, input.dtype)
    centred *= _channels(invstd if weight is None else invstd * weight, ndim)
    if bias is not None:
        centred += _channels(bias, ndim)
    return centred, *saved


@native.kernel
def native_batch_norm_backward(
    grad_out: ndarray,
    input: ndarray,
    weight: ndarray | None,
    running_mean: ndarray | None,
    running_var: ndarray | None,
    save_mean: ndarray | None,
    save_invstd: ndarray | None,
    train: bool,
    eps: float,
    output_mask: Sequence[bool],
) -> Gradients:
    ndim = input.ndim
    axes = (0, *range(2, ndim))
    if train:
        mean, invstd = save_mean, save_invstd
    else:
        assert running_mean is not None and running_var is not None
        mean, invstd = running_mean, (1 / np.sqrt(running_var + eps)).astype(input.dtype)
    assert mean is not None and invstd is not None
    normal = (input - _channels(mean, ndim)) * _channels(invstd, ndim)
    total = grad_out.sum(axes)
    along = (grad_out * normal).sum(axes)
    grad_input = None
    if output_mask[0]:
        factor = _channels(invstd if weight is None else invstd * weight, ndim)
        if train:
            count = input.size // input.shape[1]
            level = grad_out - _channels(total / count, ndim)
            grad_input = (level - normal * _channels(along / count, ndim)) * factor
        else:
            grad_input = grad_out * factor
        grad_input = grad_input.astype(input.dtype, copy=False)
    return grad_input, along if output_mask[1] else None, total if output_mask[2] else None


# ----------------------------------------------------------------------------------------------------------------- weight norm


def _other_axes(ndim: int, dim: int) -> tuple[int, ...]:
    return tuple(d for d in range(ndim) if d != dim % ndim)


def weight_norm_interface(v: ndarray, g: ndarray, dim: int = 0) -> tuple[ndarray, ndarray]:
    norms = np.sqrt(np.square(v).sum(_other_axes(v.ndim, dim), keepdims=True))
    return v * (g / norms), norms
