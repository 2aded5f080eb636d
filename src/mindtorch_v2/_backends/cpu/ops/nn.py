"""Activations and their backward kernels, glu and embedding.

Kernels of several passes run block by block, so that their temporaries stay in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy import ndarray

from ...._dispatch import native
from .blocked import BLOCK, alike, blocked
from .special import erf

F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)
_ZERO32 = np.zeros((), F32)
_ZERO64 = np.zeros((), F64)

# Note [Normal distribution by tanh]. The normal distribution function is (1 + tanh(x P(x*x))) / 2 with an analytic P. This polynomial was fitted
# by weighted least squares in double precision, so that gelu is off by less than 1e-7, which is below what float32 rounds off; numpy's tanh is the
# fastest of its transcendental functions. Highest power first.
_NORMAL = tuple(
    np.float32(c)
    for c in (
        1.813926254463397e-09,
        -1.3378315420413407e-07,
        3.974070044720045e-06,
        -5.527338157798641e-05,
        -3.30267182193881e-05,
        0.036334149139567666,
        0.7978842684018702,
    )
)
_SQRT_HALF = math.sqrt(0.5)
_PDF = 1.0 / math.sqrt(2.0 * math.pi)
_TANH_SCALE = math.sqrt(2.0 / math.pi)
_TANH_CUBE = 0.044715


def blockwise(kernel: Callable[..., None], out: ndarray | None, *arrays: ndarray) -> ndarray:
    """Apply `kernel(out, *arrays)`, in blocks where all are contiguous arrays of one shape. `out` may be one of them."""
    first = arrays[0]
    if any(a.shape != first.shape for a in arrays):
        arrays = np.broadcast_arrays(*arrays)
        first = arrays[0]
    if out is None:
        out = np.empty_like(first, subok=False)
    if not first.ndim:
        kernel(out.reshape(1), *[a.reshape(1) for a in arrays])
        return out
    if first.size > BLOCK and all(a.flags.c_contiguous and a.shape == first.shape for a in (*arrays, out)):
        flat = [a.reshape(-1) for a in arrays]
        target = out.reshape(-1)
        for start in range(0, target.size, BLOCK):
            stop = start + BLOCK
            kernel(target[start:stop], *[a[start:stop] for a in flat])
    else:
        kernel(out, *arrays)
    return out


# ------------------------------------------------------------------------------------------------------------------------ relu


def relu(self: ndarray, out: ndarray | None = None) -> ndarray:
    return np.maximum(self, self.dtype.type(0), out=out)


def fast_relu(self: ndarray) -> ndarray | None:
    """`relu` of a contiguous float array."""
    dtype = self.dtype
    if not self.flags.c_contiguous or not self.ndim:
        return None
    if dtype is F32:
        return np.maximum(self, _ZERO32)
    return np.maximum(self, _ZERO64) if dtype is F64 else None


def threshold(self: ndarray, threshold: float, value: float, out: ndarray | None = None) -> ndarray:
    return _select(self <= threshold, np.asarray(value).astype(self.dtype), self, out)


def threshold_backward(grad_output: ndarray, self: ndarray, threshold: float) -> ndarray:
    def kernel(out: ndarray, grad: ndarray, x: ndarray) -> None:
        out[...] = grad
        np.copyto(out, 0, where=x <= threshold)

    return blockwise(kernel, None, grad_output, self)


def fast_threshold_backward(grad_output: ndarray, self: ndarray, threshold: float) -> ndarray | None:
    """`threshold_backward` of contiguous float arrays."""
    if not alike(grad_output, self) or (threshold.__class__ is not int and threshold.__class__ is not float):
        return None
    return threshold_backward(grad_output, self, threshold)


def _select(mask: ndarray, chosen: float | ndarray, other: ndarray, out: ndarray | None) -> ndarray:
    """`chosen` where `mask`, else `other`, in other's dtype."""
    if mask.shape != other.shape:
        other = np.broadcast_to(other, np.broadcast_shapes(mask.shape, other.shape))
    if out is None:
        out = np.empty_like(other)
    if out is not other:
        np.copyto(out, other)
    np.copyto(out, chosen, where=mask, casting="unsafe")
    return out


def hardtanh(self: ndarray, min_val: float = -1, max_val: float = 1, out: ndarray | None = None) -> ndarray:
    kind = self.dtype.type
    return np.minimum(np.maximum(self, kind(min_val)), kind(max_val), out=out)


def relu6(self: ndarray, out: ndarray | None = None) -> ndarray:
    return hardtanh(self, 0, 6, out)


def hardtanh_backward(grad_output: ndarray, self: ndarray, min_val: float, max_val: float) -> ndarray:
    return _select(~((self > min_val) & (self < max_val)), 0, grad_output, None)


def leaky_relu(self: ndarray, negative_slope: float = 0.01, out: ndarray | None = None) -> ndarray:
    return _select(self <= 0, self * self.dtype.type(negative_slope), self, out)


def leaky_relu_backward(grad_output: ndarray, self: ndarray, negative_slope: float, self_is_result: bool) -> ndarray:
    return _select(~(self > 0), grad_output * grad_output.dtype.type(negative_slope), grad_output, None)


def prelu_kernel(self: ndarray, weight: ndarray) -> ndarray:
    return np.where(self > 0, self, weight * self)


# ------------------------------------------------------------------------------------------------------------------------ gelu


def _twice_normal(x: ndarray, square: ndarray) -> ndarray:
    """1 + erf(x / sqrt(2)) in float32, see Note [Normal distribution by tanh]."""
    t = square * _NORMAL[0]
    for c in _NORMAL[1:-1]:
        t += c
        t *= square
    t += _NORMAL[-1]
    t *= x
    np.tanh(t, out=t)
    t += 1
    return t


def _gelu_float32(x: ndarray, out: ndarray) -> None:
    t = _twice_normal(x, x * x)
    t *= 0.5
    np.multiply(x, t, out=out)


def _gelu_float64(x: ndarray, out: ndarray) -> None:
    cdf = erf(x * _SQRT_HALF)
    cdf += 1
    cdf *= 0.5
    np.multiply(x, cdf, out=out)


def _gelu_tanh(x: ndarray, out: ndarray) -> None:
    t = x * x
    t *= _TANH_SCALE * _TANH_CUBE
    t += _TANH_SCALE
    t *= x
    np.tanh(t, out=t)
    t += 1
    t *= 0.5
    np.multiply(x, t, out=out)


def gelu(self: ndarray, approximate: str = "none", out: ndarray | None = None) -> ndarray:
    if approximate == "tanh":
        return blocked(_gelu_tanh, self, out)
    return blocked(_gelu_float32 if self.dtype == F32 else _gelu_float64, self, out)


def fast_gelu(self: ndarray, approximate: str = "none") -> ndarray | None:
    """`gelu` of a contiguous float array."""
    if not self.flags.c_contiguous or not self.ndim:
        return None
    kernel: Callable[[ndarray, ndarray], None]
    if approximate == "none":
        kernel = _gelu_float32 if self.dtype is F32 else _gelu_float64
    elif approximate == "tanh":
        kernel = _gelu_tanh
    else:
        return None
    return blocked(kernel, self) if self.dtype is F32 or self.dtype is F64 else None


def _gelu_backward_float32(out: ndarray, grad: ndarray, x: ndarray) -> None:
    square = x * x
    slope = _twice_normal(x, square)
    slope *= 0.5
    square *= -0.5
    np.exp(square, out=square)
    square *= x
    square *= _PDF
    slope += square
    np.multiply(grad, slope, out=out)


def _gelu_backward_float64(out: ndarray, grad: ndarray, x: ndarray) -> None:
    slope = erf(x * _SQRT_HALF)
    slope += 1
    slope *= 0.5
    slope += x * np.exp(x * x * -0.5) * _PDF
    np.multiply(grad, slope, out=out)


def _gelu_backward_tanh(out: ndarray, grad: ndarray, x: ndarray) -> None:
    square = x * x
    t = square * (_TANH_SCALE * _TANH_CUBE)
    t += _TANH_SCALE
    t *= x
    np.tanh(t, out=t)
    inner = square
    inner *= 3 * _TANH_SCALE * _TANH_CUBE
    inner += _TANH_SCALE
    inner *= x
    slope = t * t
    np.subtract(1, slope, out=slope)
    slope *= inner
    slope += t
    slope += 1
    slope *= 0.5
    np.multiply(grad, slope, out=out)


def gelu_backward(grad_output: ndarray, self: ndarray, approximate: str = "none") -> ndarray:
    if approximate == "tanh":
        return blockwise(_gelu_backward_tanh, None, grad_output, self)
    kernel = _gelu_backward_float32 if self.dtype == F32 else _gelu_backward_float64
    return blockwise(kernel, None, grad_output, self)


def fast_gelu_backward(grad_output: ndarray, self: ndarray, approximate: str = "none") -> ndarray | None:
    """`gelu_backward` of contiguous float arrays."""
    if not alike(grad_output, self) or approximate not in ("none", "tanh"):
        return None
    return gelu_backward(grad_output, self, approximate)


# ------------------------------------------------------------------------------------------------------- sigmoid and its kin


def _sigmoid(x: ndarray) -> ndarray:
    return 1 / (1 + np.exp(-x))


def _silu(x: ndarray, out: ndarray) -> None:
    s = np.negative(x)
    np.exp(s, out=s)
    s += 1
    np.divide(x, s, out=out)


def silu(self: ndarray, out: ndarray | None = None) -> ndarray:
    return blocked(_silu, self, out)


def fast_silu(self: ndarray) -> ndarray | None:
    """`silu` of a contiguous float array."""
    if not self.flags.c_contiguous or not self.ndim or (self.dtype is not F32 and self.dtype is not F64):
        return None
    return blocked(_silu, self)


def _silu_backward(out: ndarray, grad: ndarray, x: ndarray) -> None:
    s = _sigmoid(x)
    slope = 1 - s
    slope *= x
    slope += 1
    slope *= s
    np.multiply(grad, slope, out=out)


def silu_backward(grad_output: ndarray, self: ndarray) -> ndarray:
    return blockwise(_silu_backward, None, grad_output, self)


def fast_silu_backward(grad_output: ndarray, self: ndarray) -> ndarray | None:
    """`silu_backward` of contiguous float arrays."""
    return silu_backward(grad_output, self) if alike(grad_output, self) else None


def _tanh_softplus(x: ndarray) -> ndarray:
    """tanh(log(1 + exp(x))), whose exponential form is exact where it does not overflow."""
    e = np.exp(np.minimum(x, 20))
    n = e * (e + 2)
    return n / (n + 2)


def _mish(x: ndarray, out: ndarray) -> None:
    np.multiply(x, _tanh_softplus(x), out=out)


def mish(self: ndarray, out: ndarray | None = None) -> ndarray:
    return blocked(_mish, self, out)


def _mish_backward(out: ndarray, grad: ndarray, x: ndarray) -> None:
    t = _tanh_softplus(x)
    slope = 1 - t * t
    slope *= _sigmoid(x)
    slope *= x
    slope += t
    np.multiply(grad, slope, out=out)


def mish_backward(grad_output: ndarray, self: ndarray) -> ndarray:
    return blockwise(_mish_backward, None, grad_output, self)


def softplus(self: ndarray, beta: float = 1, threshold: float = 20, out: ndarray | None = None) -> ndarray:
    kind = self.dtype.type
    scaled = self * kind(beta)
    return _select(scaled > threshold, self, np.log1p(np.exp(np.minimum(scaled, 80))) / kind(beta), out)


def softplus_backward(grad_output: ndarray, self: ndarray, beta: float, threshold: float) -> ndarray:
    scaled = self * self.dtype.type(beta)
    return _select(scaled > threshold, grad_output, grad_output * _sigmoid(scaled), None)


def log_sigmoid(self: ndarray) -> ndarray:
    return np.minimum(self, 0) - np.log1p(np.exp(-np.abs(self)))


def _hardswish(x: ndarray, out: ndarray) -> None:
    s = x + 3
    np.maximum(s, 0, out=s)
    np.minimum(s, 6, out=s)
    s *= x
    np.divide(s, 6, out=out)


def hardswish(self: ndarray, out: ndarray | None = None) -> ndarray:
    return blocked(_hardswish, self, out)


def hardswish_backward(grad_output: ndarray, self: ndarray) -> ndarray:
    def kernel(out: ndarray, grad: ndarray, x: ndarray) -> None:
        slope = x / 3
        slope += 0.5
        np.copyto(slope, 0, where=x <= -3)
        np.copyto(slope, 1, where=~(x < 3))
        np.multiply(grad, slope, out=out)

    return blockwise(kernel, None, grad_output, self)


def hardsigmoid(self: ndarray, out: ndarray | None = None) -> ndarray:
    return np.divide(np.minimum(np.maximum(self + 3, 0), 6), 6, out=out)


def hardsigmoid_backward(grad_output: ndarray, self: ndarray) -> ndarray:
    return _select(~((self > -3) & (self < 3)), 0, grad_output / 6, None)


# ----------------------------------------------------------------------------------------------------------- elu and shrinking


def elu(
    self: ndarray, alpha: float = 1, scale: float = 1, input_scale: float = 1, out: ndarray | None = None
) -> ndarray:
    kind = self.dtype.type
    negative = np.expm1(np.minimum(self, 0) * kind(input_scale)) * kind(alpha * scale)
    return _select(self <= 0, negative, self * kind(scale), out)


def elu_backward(
    grad_output: ndarray, alpha: float, scale: float, input_scale: float, is_result: bool, self_or_result: ndarray
) -> ndarray:
    kind = grad_output.dtype.type
    if is_result:
        negative = (self_or_result + kind(alpha * scale)) * kind(input_scale)
    else:
        negative = np.exp(np.minimum(self_or_result, 0) * kind(input_scale)) * kind(alpha * scale * input_scale)
    return grad_output * np.where(self_or_result <= 0, negative, kind(scale))


def selu(self: ndarray, out: ndarray | None = None) -> ndarray:
    return elu(self, 1.6732632423543772, 1.0507009873554805, out=out)


def celu(self: ndarray, alpha: float = 1.0, out: ndarray | None = None) -> ndarray:
    return elu(self, alpha, 1.0, 1.0 / alpha, out)


def softshrink(self: ndarray, lambd: float = 0.5, out: ndarray | None = None) -> ndarray:
    bound = self.dtype.type(lambd)
    result = np.where(self > bound, self - bound, np.where(self < -bound, self + bound, self * 0))
    return result if out is None else _store(result, out)


def hardshrink(self: ndarray, lambd: float = 0.5, out: ndarray | None = None) -> ndarray:
    return _select((self >= -lambd) & (self <= lambd), 0, self, out)


def hardshrink_backward(grad_output: ndarray, self: ndarray, lambd: float) -> ndarray:
    """Both shrinking functions have slope 0 inside the band and 1 outside."""
    return _select((self >= -lambd) & (self <= lambd), 0, grad_output, None)


softshrink_backward = hardshrink_backward


def _store(value: ndarray, out: ndarray) -> ndarray:
    np.copyto(out, value)
    return out


# ------------------------------------------------------------------------------------------------------------------------- glu


def glu(self: ndarray, dim: int = -1) -> ndarray:
    half = self.shape[dim] // 2
    front = (slice(None),) * (dim % self.ndim)
    return self[(*front, slice(half))] * _sigmoid(self[(*front, slice(half, None))])


def glu_backward(grad_output: ndarray, self: ndarray, dim: int) -> ndarray:
    half = self.shape[dim] // 2
    front = (slice(None),) * (dim % self.ndim)
    first, second = (*front, slice(half)), (*front, slice(half, None))
    gate = _sigmoid(self[second])
    result = np.empty(self.shape, self.dtype)
    np.multiply(grad_output, gate, out=result[first])
    np.multiply(grad_output, self[first] * gate * (1 - gate), out=result[second])
    return result


# ------------------------------------------------------------------------------------------------------------------- embedding


def _check_rows(indices: ndarray, rows: int) -> None:
    if indices.size and (np.minimum.reduce(indices, axis=None) < 0 or np.maximum.reduce(indices, axis=None) >= rows):
        raise IndexError("index out of range in self")


def embedding(
    weight: ndarray, indices: ndarray, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> ndarray:
    _check_rows(indices, weight.shape[0])
    return weight.take(indices, 0)


def fast_embedding(
    weight: ndarray, indices: ndarray, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> ndarray | None:
    """`embedding` of int64 indices."""
    if indices.dtype.char not in "lqi" or weight.ndim != 2 or not indices.size:
        return None
    try:
        # take itself raises for an index beyond the end, so only negative ones are looked for
        return None if np.minimum.reduce(indices, axis=None) < 0 else weight.take(indices, 0)
    except IndexError:
        return None


@native.kernel
def add_rows(out: ndarray, rows: ndarray, values: ndarray) -> None:
    """`out[rows[i]] += values[i]` with repeated rows adding up; `rows` 1-D and in range, `out` and `values` 2-D.

    Wide rows are added one by one, which costs less than sorting or than element indices; narrow ones go through numpy's indexed loop.
    """
    width = out.shape[1]
    if width >= 64 and rows.size * 64 <= out.size + rows.size * width:
        for row, value in zip(rows.tolist(), values, strict=True):
            target = out[row]
            np.add(target, value, out=target)
    elif width == 1:
        np.add.at(out[:, 0], rows, values[:, 0])
    elif out.flags.c_contiguous:
        places = (rows[:, None] * width + np.arange(width)).reshape(-1)
        np.add.at(out.reshape(-1), places, values.reshape(-1))
    else:
        np.add.at(out, rows, values)


def embedding_dense_backward(
    grad_output: ndarray, indices: ndarray, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> ndarray:
    width = grad_output.shape[-1]
    result = np.zeros((num_weights, width), grad_output.dtype)
    rows = indices.reshape(-1)
    values = grad_output.reshape(rows.size, width)
    if scale_grad_by_freq and rows.size:
        values = values / np.bincount(rows)[rows].astype(values.dtype)[:, None]
    if padding_idx >= 0:
        kept = rows != padding_idx
        if not kept.all():
            rows, values = rows[kept], values[kept]
    add_rows(result, rows.astype(np.intp, copy=False), values)
    return result


def embedding_renorm_(self: ndarray, indices: ndarray, max_norm: float, norm_type: float) -> ndarray:
    """Scale the rows that are looked up and longer than `max_norm` down to it."""
    _check_rows(indices, self.shape[0])
    rows = np.unique(indices)
    chosen = self[rows].astype(np.float64)
    norms = np.linalg.norm(chosen, ord=norm_type, axis=1)
    long = norms > max_norm
    scale = max_norm / (norms[long] + 1e-7)
    self[rows[long]] = (chosen[long] * scale[:, None]).astype(self.dtype)
    return self
