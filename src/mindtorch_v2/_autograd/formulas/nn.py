"""Derivatives of networks' operators: activations, normalisations, convolutions, embeddings, attention.

A function named `..._second` is the gradient of a backward operator with respect to the input of the forward one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ... import _dtype as _d
from ..._dispatch import ops
from ..._state import TLS
from ..._tensor import Tensor
from .pointwise import conj_of

Maybe = Tensor | None

# Activations


def prelu_gradient(grad: Tensor, self: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of input and weight."""
    positive = self > 0
    return ops.where(positive, grad, weight * grad), ops.where(positive, 0, self * grad)


def gelu_second(grad: Tensor, grad_output: Tensor, self: Tensor, approximate: str) -> Tensor:
    """The second derivative of gelu."""
    if approximate == "tanh":
        a, c = math.sqrt(2 / math.pi), 0.044715
        square = self * self
        t = ops.tanh(a * (self + c * square * self))
        inner = a * (1 + 3 * c * square)
        outer = 1 - t * t
        curve = outer * inner + 0.5 * self * outer * (6 * a * c * self - 2 * t * inner * inner)
    else:
        density = ops.exp(self * self * -0.5) / math.sqrt(2 * math.pi)
        curve = density * (2 - self * self)
    return grad * grad_output * curve


def silu_second(grad: Tensor, grad_output: Tensor, self: Tensor) -> Tensor:
    """The second derivative of silu."""
    s = ops.sigmoid(self)
    return grad * grad_output * s * (1 - s) * (2 + self * (1 - 2 * s))


def mish_second(grad: Tensor, grad_output: Tensor, self: Tensor) -> Tensor:
    """The second derivative of mish."""
    s = ops.sigmoid(self)
    t = ops.tanh(ops.softplus(self))
    rest = 1 - t * t
    slope = s * rest
    return grad * grad_output * (2 * slope + self * (s * (1 - s) * rest - 2 * s * t * slope))


def softplus_second(grad: Tensor, grad_output: Tensor, self: Tensor, beta: Any, threshold: Any) -> Tensor:
    """The second derivative of softplus; 0 where it is linear."""
    s = ops.sigmoid(self * beta)
    return ops.where(self * beta > threshold, 0, grad * grad_output * s * (1 - s) * beta)


def hardswish_second(grad: Tensor, grad_output: Tensor, self: Tensor) -> Tensor:
    """The second derivative of hardswish."""
    return ops.where(ops.logical_and(self > -3, self < 3), grad * grad_output / 3, 0)


def elu_second(
    grad: Tensor, grad_output: Tensor, alpha: Any, scale: Any, input_scale: Any, is_result: bool, self: Tensor
) -> Tensor:
    """The second derivative of elu; `self` may be the result."""
    if is_result:
        return ops.where(self <= 0, grad * grad_output * input_scale, 0)
    curve = ops.exp(self * input_scale) * (alpha * scale * input_scale * input_scale)
    return ops.where(self <= 0, grad * grad_output * curve, 0)


def selu_gradient(grad: Tensor, self: Tensor) -> Tensor:
    """The gradient of selu, which is elu with two constants."""
    return ops.elu_backward(grad, 1.6732632423543772, 1.0507009873554805, 1.0, False, self)


def glu_second(grad: Tensor, grad_output: Tensor, self: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Gradients of glu_backward with respect to both of its tensors."""
    half = self.shape[dim] // 2
    first, second = ops.narrow(self, dim, 0, half), ops.narrow(self, dim, half, half)
    up, down = ops.narrow(grad, dim, 0, half), ops.narrow(grad, dim, half, half)
    s = ops.sigmoid(second)
    slope = s * (1 - s)
    grad_first = down * grad_output * slope
    grad_second = up * grad_output * slope + down * grad_output * first * slope * (1 - 2 * s)
    return up * s + down * first * slope, ops.cat([grad_first, grad_second], dim)


def softmax_second(grad: Tensor, grad_output: Tensor, output: Tensor, dim: int) -> Tensor:
    """The gradient of _softmax_backward_data with respect to the softmax."""
    inner = ops.sum(grad_output * output, [dim], True)
    return grad * (grad_output - inner) - grad_output * ops.sum(grad * output, [dim], True)


# Embedding


def embedding_gradient(
    grad: Tensor, indices: Tensor, shape: Sequence[int], padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> Tensor:
    """The gradient of the weight; with `sparse` a row of it for each index."""
    if sparse:
        return ops.embedding_sparse_backward(grad, indices, shape[0], padding_idx, scale_grad_by_freq)
    return ops.embedding_dense_backward(grad, indices, shape[0], padding_idx, scale_grad_by_freq)


def embedding_second(grad: Tensor, indices: Tensor, padding_idx: int) -> Tensor:
    """The gradient of embedding_dense_backward: rows looked up, zeros at the padding."""
    rows = ops.index_select(grad, 0, ops.reshape(indices, [-1]))
    rows = ops.reshape(rows, [*indices.shape, grad.shape[-1]])
    return rows if padding_idx < 0 else ops.masked_fill(rows, ops.unsqueeze(indices == padding_idx, -1), 0)


def embedding_bag_second(
    grad: Tensor,
    indices: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    maximum_indices: Tensor,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: Maybe,
    padding_idx: int,
) -> Tensor:
    """The gradient of _embedding_bag_dense_backward by the bags' gradient: the bags of the rows of `grad`, weighed as there."""
    if mode == 2:
        found = ops.gather(grad, 0, ops.to(maximum_indices, _d.int64))
        return ops.masked_fill(found, ops.unsqueeze(bag_size == 0, 1), 0)
    rows = ops.index_select(grad, 0, indices)
    if padding_idx >= 0:
        rows = ops.masked_fill(rows, ops.unsqueeze(indices == padding_idx, 1), 0)
    if per_sample_weights is not None:
        rows = rows * ops.unsqueeze(per_sample_weights, 1)
    if scale_grad_by_freq:
        counts = ops.bincount(indices, minlength=grad.shape[0])
        rows = rows / ops.unsqueeze(ops.index_select(counts, 0, indices), 1)
    if mode == 1:
        rows = rows / ops.unsqueeze(ops.clamp_min(ops.index_select(bag_size, 0, offset2bag), 1), 1)
    zeros = ops.new_zeros(grad, [bag_size.shape[0], grad.shape[1]])
    return ops.index_add(zeros, 0, offset2bag, rows)


def embedding_bag_second_factors(
    grad: Tensor,
    grad_output: Tensor,
    indices: Tensor,
    offset2bag: Tensor,
    scale_grad_by_freq: bool,
    mode: int,
    padding_idx: int,
) -> Tensor:
    """The gradient of _embedding_bag_dense_backward by the factors of the indices."""
    shares = ops._embedding_bag_per_sample_weights_backward(
        grad_output, grad, indices, offset2bag, offset2bag, mode, padding_idx
    )
    if scale_grad_by_freq:
        shares = shares / ops.index_select(ops.bincount(indices, minlength=grad.shape[0]), 0, indices)
    return shares


# Normalisation


def layer_norm_gradient(
    grad: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Maybe,
    bias: Maybe,
    eps: float,
    needs: Sequence[bool],
) -> tuple[Maybe, Maybe, Maybe]:
    """Gradients of input, weight and bias, with statistics computed anew."""
    _, mean, rstd = ops.native_layer_norm(input, normalized_shape, None, None, eps)
    return native_layer_norm_gradient(grad, input, normalized_shape, mean, rstd, weight, bias, needs)


def native_layer_norm_gradient(
    grad: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Maybe,
    bias: Maybe,
    needs: Sequence[bool],
) -> tuple[Maybe, Maybe, Maybe]:
    """Gradients of input, weight and bias."""
    mask = [needs[0], needs[1] and weight is not None, needs[2] and bias is not None]
    return tuple(ops.native_layer_norm_backward(grad, input, normalized_shape, mean, rstd, weight, bias, mask))


def layer_norm_second(
    grads: Sequence[Maybe],
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Maybe,
) -> tuple[Tensor, Tensor, Maybe]:
    """Gradients of native_layer_norm_backward with respect to grad_out, input and weight."""
    inner = list(range(input.dim() - len(normalized_shape), input.dim()))
    outer = list(range(input.dim() - len(normalized_shape)))
    normal = (input - mean) * rstd
    upper = grad_out if weight is None else grad_out * weight
    return _norm_second(grads, grad_out, upper, normal, rstd, weight, inner, outer)


def _norm_second(
    grads: Sequence[Maybe],
    grad_out: Tensor,
    upper: Tensor,
    normal: Tensor,
    rstd: Tensor,
    weight: Maybe,
    inner: list[int],
    outer: list[int],
) -> tuple[Tensor, Tensor, Maybe]:
    """The backward pass of grad_input = rstd (u - mean(u) - n mean(u n)), grad_weight = sum(g n), grad_bias = sum(g).

    u = g * weight, n the normalised input; `inner` are the dimensions of the statistics, `outer` those that weight is summed over.
    """

    def average(x: Tensor) -> Tensor:
        return ops.mean(x, inner, True)

    g_input, g_weight, g_bias = grads
    to_upper = ops.zeros_like(grad_out)
    to_normal = ops.zeros_like(normal)
    to_grad = None
    to_weight = None
    to_rstd = None
    if g_input is not None:
        h = g_input * rstd
        along = average(upper * normal)
        to_upper = h - average(h) - normal * average(h * normal)
        to_normal = -(h * along + upper * average(h * normal))
        to_rstd = g_input * (upper - average(upper) - normal * along)
    if g_weight is not None:
        to_grad = g_weight * normal
        to_normal = to_normal + g_weight * grad_out
    if g_bias is not None:
        to_grad = g_bias + ops.zeros_like(grad_out) if to_grad is None else to_grad + g_bias
    if weight is not None:
        to_weight = ops.sum(to_upper * grad_out, outer) if outer else to_upper * grad_out
        to_upper = to_upper * weight
    total = to_upper if to_grad is None else to_upper + to_grad
    # n and rstd depend on the input: dn = rstd (dx - mean(dx) - n mean(n dx)), drstd = -rstd**2 mean(n dx)
    to_input = rstd * (to_normal - average(to_normal) - normal * average(to_normal * normal))
    if to_rstd is not None:
        to_input = to_input - rstd * rstd * normal * average(to_rstd)
    return total, to_input, to_weight


def rms_norm_gradient(
    grad: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Maybe,
    eps: float | None,
    needs: Sequence[bool],
) -> tuple[Maybe, Maybe]:
    """Gradients of input and weight."""
    given = input.dtype
    if given.itemsize < 4:
        wide = given.opmath
        grad, input = ops.to(grad, wide), ops.to(input, wide)
        weight = None if weight is None else ops.to(weight, wide)
    dims = list(range(-len(normalized_shape), 0))
    if eps is None:
        eps = 2.0**-52 if given.itemsize == 8 else 2.0**-23
    rstd = ops.rsqrt(ops.mean(input * input, dims, True) + eps)
    normal = input * rstd
    grad_input = grad_weight = None
    if needs[0]:
        upper = grad if weight is None else grad * weight
        grad_input = (upper - normal * ops.mean(upper * normal, dims, True)) * rstd
    if needs[1] and weight is not None:
        grad_weight = grad * normal
        outer = list(range(input.dim() - len(normalized_shape)))
        grad_weight = ops.sum(grad_weight, outer) if outer else grad_weight
    return grad_input, grad_weight


def native_group_norm_gradient(
    grads: Sequence[Maybe],
    input: Tensor,
    weight: Maybe,
    bias: Maybe,
    mean: Tensor,
    rstd: Tensor,
    sizes: Sequence[int],
    needs: Sequence[bool],
) -> tuple[Maybe, Maybe, Maybe]:
    """Gradients of input, weight and bias from those of the result and of the statistics; `sizes` is (N, C, HxW, groups)."""
    mask = [needs[0], needs[1] and weight is not None, needs[2] and bias is not None]
    batch, channels, plane, groups = sizes
    grad, of_mean, of_rstd = grads
    found: tuple[Maybe, Maybe, Maybe] = (None, None, None)
    if grad is not None:
        found = tuple(
            ops.native_group_norm_backward(
                grad.contiguous(), input, mean, rstd, weight, batch, channels, plane, groups, mask
            )
        )
    if not needs[0] or of_mean is None and of_rstd is None:
        return found
    # d mean = mean(dx), d rstd = -rstd^3 mean((x - mean) dx)
    count = channels // groups * plane
    small = [batch, groups, 1]
    total: Any = 0
    if of_mean is not None:
        total = ops.reshape(of_mean, small) / count
    if of_rstd is not None:
        centred = ops.reshape(input, [batch, groups, count]) - ops.reshape(mean, small)
        total = total - ops.reshape(of_rstd * rstd * rstd * rstd, small) * centred / count
    total = ops.reshape(ops.expand(total, [batch, groups, count]), input.shape)
    return (total if found[0] is None else found[0] + total, *found[1:])


def group_norm_second(
    grads: Sequence[Maybe],
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Maybe,
    sizes: Sequence[int],
) -> tuple[Tensor, Tensor, Maybe]:
    """Gradients of native_group_norm_backward with respect to grad_out, input and weight."""
    batch, channels, plane, groups = sizes
    wide = [batch, groups, channels // groups, plane]
    per_channel = [1, groups, channels // groups, 1]

    factor = None if weight is None else ops.reshape(weight, per_channel)
    upper_grad = ops.reshape(grad_out, wide)
    small = [batch, groups, 1, 1]
    normal = (ops.reshape(input, wide) - ops.reshape(mean, small)) * ops.reshape(rstd, small)
    upper = upper_grad if factor is None else upper_grad * factor
    given = [
        None if grads[0] is None else ops.reshape(grads[0], wide),
        None if grads[1] is None else ops.reshape(grads[1], per_channel),
        None if grads[2] is None else ops.reshape(grads[2], per_channel),
    ]
    to_grad, to_input, to_weight = _norm_second(
        given, upper_grad, upper, normal, ops.reshape(rstd, small), factor, [2, 3], [0, 3]
    )
    return (
        ops.reshape(to_grad, grad_out.shape),
        ops.reshape(to_input, input.shape),
        None if to_weight is None or weight is None else ops.reshape(to_weight, weight.shape),
    )


def native_batch_norm_gradient(
    grad: Tensor,
    input: Tensor,
    weight: Maybe,
    bias: Maybe,
    running_mean: Maybe,
    running_var: Maybe,
    training: bool,
    eps: float,
    mean: Tensor,
    invstd: Tensor,
    needs: Sequence[bool],
) -> tuple[Maybe, Maybe, Maybe]:
    """Gradients of input, weight and bias."""
    mask = [needs[0], needs[1] and weight is not None, needs[2] and bias is not None]
    return tuple(
        ops.native_batch_norm_backward(
            grad, input, weight, running_mean, running_var, mean, invstd, training, eps, mask
        )
    )


def batch_norm_second(
    grads: Sequence[Maybe],
    grad_out: Tensor,
    input: Tensor,
    weight: Maybe,
    running_mean: Maybe,
    running_var: Maybe,
    save_mean: Maybe,
    save_invstd: Maybe,
    train: bool,
    eps: float,
) -> tuple[Tensor, Tensor, Maybe]:
    """Gradients of native_batch_norm_backward with respect to grad_out, input and weight."""
    channels = [1, input.shape[1], *[1] * (input.dim() - 2)]

    def spread(x: Tensor) -> Tensor:
        return ops.reshape(x, channels)

    dims = [0, *range(2, input.dim())]
    if train:
        assert save_mean is not None and save_invstd is not None
        mean, rstd = spread(save_mean), spread(save_invstd)
    else:
        assert running_mean is not None and running_var is not None
        mean, rstd = spread(running_mean), ops.rsqrt(spread(running_var) + eps)
    normal = (input - mean) * rstd
    factor = None if weight is None else spread(weight)
    g_weight, g_bias = (None if g is None else spread(g) for g in grads[1:])
    if train:
        upper = grad_out if factor is None else grad_out * factor
        total, to_input, to_weight = _norm_second(
            [grads[0], g_weight, g_bias], grad_out, upper, normal, rstd, factor, dims, dims
        )
        return total, to_input, None if to_weight is None else ops.reshape(to_weight, [-1])
    total = ops.zeros_like(grad_out)
    to_input = ops.zeros_like(input)
    to_weight = None
    if grads[0] is not None:
        total = total + grads[0] * rstd * (1 if factor is None else factor)
        to_weight = None if weight is None else ops.sum(grads[0] * rstd * grad_out, dims)
    if g_weight is not None:
        total = total + g_weight * normal
        to_input = to_input + g_weight * grad_out * rstd
    if g_bias is not None:
        total = total + g_bias
    return total, to_input, to_weight


def weight_norm_gradient(grad: Tensor, v: Tensor, g: Tensor, norms: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Gradients of direction and length."""
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    if TLS.grad_enabled:  # norms has no history, so a second derivative needs them computed again
        norms = ops.linalg_vector_norm(v, 2, others, True) if others else ops.abs(v)
    lengths = norms if norms.dtype is v.dtype else ops.to(norms, v.dtype)
    grad_g = ops.sum(grad * v, others, True) / lengths if others else grad * v / lengths
    return g / lengths * (grad - v * (grad_g / lengths)), grad_g


# Convolution and pooling


def convolution_gradient(
    grad: Tensor,
    input: Tensor,
    weight: Tensor,
    bias: Maybe,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    needs: Sequence[bool],
) -> tuple[Maybe, Maybe, Maybe]:
    """Gradients of input, weight and bias."""
    dims = weight.dim() - 2
    sizes = None if bias is None else list(bias.shape)
    mask = [needs[0], needs[1], needs[2] and bias is not None]
    lists = [_per_dim(value, dims) for value in (stride, padding, dilation, output_padding)]
    single = input.dim() == dims + 1
    if single:
        grad, input = ops.unsqueeze(grad, 0), ops.unsqueeze(input, 0)
    grad_input, grad_weight, grad_bias = ops.convolution_backward(
        grad, conj_of(input), conj_of(weight), sizes, lists[0], lists[1], lists[2], transposed, lists[3], groups, mask
    )
    if single and grad_input is not None:
        grad_input = ops.squeeze(grad_input, 0)
    return grad_input, grad_weight, grad_bias


def _per_dim(value: Any, dims: int) -> list[int]:
    if isinstance(value, int):
        return [value] * dims
    values = list(value)
    return values * dims if len(values) == 1 else values


def convolution_second(
    grads: Sequence[Maybe],
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> tuple[Maybe, Maybe, Maybe]:
    """Gradients of convolution_backward with respect to grad_output, input and weight: convolution is linear in both of its operands."""
    to_input, to_weight, to_bias = grads
    grad_output, input, weight = conj_of(grad_output), conj_of(input), conj_of(weight)
    rest = (stride, padding, dilation, transposed, output_padding, groups)
    total: Maybe = None
    grad_input = grad_weight = None
    if to_input is not None:
        total = ops.convolution(to_input, weight, None, *rest)
        grad_weight = ops.convolution_backward(grad_output, to_input, weight, None, *rest, [False, True, False])[1]
    if to_weight is not None:
        term = ops.convolution(input, to_weight, None, *rest)
        total = term if total is None else total + term
        grad_input = ops.convolution_backward(grad_output, input, to_weight, None, *rest, [True, False, False])[0]
    if to_bias is not None:
        shape = [1, to_bias.shape[0], *[1] * (weight.dim() - 2)]
        term = ops.expand(ops.reshape(to_bias, shape), grad_output.shape)
        total = term if total is None else total + term
    return total, grad_input, grad_weight


def max_pool_gradient(grad: Tensor, shape: Sequence[int], places: Tensor, dims: int) -> Tensor:
    """`grad` added up at the elements that max pooling chose, of samples in `dims` dimensions."""
    zeros = ops.new_zeros(grad, [*shape[:-dims], math.prod(shape[-dims:])])
    flat = ops.scatter_add(zeros, -1, ops.flatten(places, -dims), ops.flatten(grad, -dims))
    return ops.reshape(flat, list(shape))


def pooled_at(grad: Tensor, indices: Tensor, dims: int) -> Tensor:
    """The elements of `grad` that max pooling chose: the gradient of its backward operator."""
    flat = ops.gather(ops.flatten(grad, -dims), -1, ops.flatten(indices, -dims))
    return ops.reshape(flat, indices.shape)


# Attention


def flash_attention_gradient(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    output: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    attn_mask: Maybe,
    scale: float | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of query, key and value."""
    return tuple(
        ops._scaled_dot_product_flash_attention_for_cpu_backward(
            grad, query, key, value, output, logsumexp, dropout_p, is_causal, attn_mask=attn_mask, scale=scale
        )
    )


__all__ = [
    "batch_norm_second",
    "convolution_gradient",
    "convolution_second",
    "elu_second",
    "embedding_bag_second",
    "embedding_bag_second_factors",
    "embedding_gradient",
    "embedding_second",
    "flash_attention_gradient",
    "gelu_second",
    "glu_second",
    "group_norm_second",
    "hardswish_second",
    "layer_norm_gradient",
    "layer_norm_second",
    "max_pool_gradient",
    "mish_second",
    "native_batch_norm_gradient",
    "native_group_norm_gradient",
    "native_layer_norm_gradient",
    "pooled_at",
    "prelu_gradient",
    "rms_norm_gradient",
    "selu_gradient",
    "silu_second",
    "softmax_second",
    "softplus_second",
    "weight_norm_gradient",
]
