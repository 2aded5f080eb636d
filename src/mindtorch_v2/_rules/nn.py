"""Rules of layers: embedding, normalisation, dropout, attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _dtype as _d
from .._dtype import dtype
from ._common import (
    as_list,
    broadcast,
    check_dtype,
    check_undifferentiable,
    not_implemented,
    shape_text,
    wrap_dim,
)
from .geometry import (
    Shape,
    channels_last_strides,
    contiguous_strides,
    elementwise_strides,
    format_strides,
    geometry,
    numel,
    prefers_channels_last,
)
from .spec import Spec, rule

_HALF = (_d.float16, _d.bfloat16)


def suggested_strides(self: Any, shape: Shape) -> Shape | None:
    """The strides of a fresh tensor of `shape` in self's format: channels_last, or None for contiguous."""
    if len(shape) == self.dim() and prefers_channels_last(self.shape, self.stride()):
        return channels_last_strides(shape)
    return None


# --- embedding --------------------------------------------------------------------------------------------------


def _check_index_dtype(indices: Any, op: str, place: int = 1) -> None:
    if indices.dtype not in (_d.int32, _d.int64):
        raise RuntimeError(
            f"Expected tensor for argument #{place} 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{indices.dtype.cpp}Tensor instead (while checking arguments for {op})"
        )


@rule(flops="0")
def embedding(weight: Any, indices: Any) -> Spec:
    """Rows of weight [n, width] at int indices [...]: [..., width], contiguous."""
    if weight.dim() != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_index_dtype(indices, "embedding")
    if not weight.shape[0] and indices.numel():
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    return Spec((*indices.shape, weight.shape[1]), weight.dtype)


@rule(flops="numel(grad)")
def embedding_backward(grad: Any, indices: Any, num_weights: int) -> Spec:
    """The gradient of embedding's weight: [num_weights, width]."""
    _check_index_dtype(indices, "embedding_backward", 2)
    if not grad.dim() or tuple(grad.shape[:-1]) != tuple(indices.shape):
        raise RuntimeError(
            f"expected a gradient with a row for each of the indices {shape_text(indices.shape)}, but got "
            f"{shape_text(grad.shape)}"
        )
    return Spec((int(num_weights), grad.shape[-1]), grad.dtype, None, grad.dtype.opmath)


# --- normalisation ----------------------------------------------------------------------------------------------


def _parameter_dtype(input: Any, *parameters: Any, layer: bool = False) -> dtype:
    """The dtype of statistics: float32 for halves with float32 parameters, else the input's. RuntimeError for other
    mixtures."""
    for parameter in parameters:
        if parameter is not None and parameter.dtype is not input.dtype:
            if input.dtype not in _HALF and not (layer and input.dtype.is_floating_point):
                raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")
            if parameter.dtype is not _d.float32 or input.dtype not in _HALF:
                raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
            return _d.float32
    return input.dtype


def _check_normalized(input: Any, normalized_shape: Sequence[int], weight: Any, bias: Any, joiner: str = ", ") -> Shape:
    """The normalized shape, which ends the input's. Returns the leading sizes."""
    normalized = tuple(as_list(normalized_shape))
    if not normalized:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and tuple(parameter.shape) != normalized:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{shape_text(parameter.shape)} "
                f"and normalized_shape = {shape_text(normalized)}"
            )
    lead = input.dim() - len(normalized)
    if lead < 0 or tuple(input.shape[lead:]) != normalized:
        sizes = ", ".join(map(str, normalized))
        raise RuntimeError(
            f"Given normalized_shape={shape_text(normalized)}, expected input with shape [*{joiner}{sizes}], but got "
            "input of size"
            f"{shape_text(input.shape)}"
        )
    return tuple(input.shape[:lead])


@rule(flops="8 * numel(input)")
def layer_norm(input: Any, normalized_shape: Sequence[int], weight: Any = None, bias: Any = None) -> Spec:
    """Normalised over the last dims: input's shape, contiguous."""
    return native_layer_norm(input, normalized_shape, weight, bias)[0]


@rule(flops="8 * numel(input)")
def native_layer_norm(
    input: Any, normalized_shape: Sequence[int], weight: Any = None, bias: Any = None
) -> tuple[Spec, Spec, Spec]:
    """(out, mean, rstd); the statistics have size 1 in the normalised dims."""
    kind = _parameter_dtype(input, weight, bias, layer=True)
    lead = _check_normalized(input, normalized_shape, weight, bias)
    if not input.dtype.is_floating_point:
        raise not_implemented("LayerNormKernelImpl", input.dtype)
    reduced = (*lead, *(1 for _ in input.shape[len(lead) :]))
    out = Spec(tuple(input.shape), input.dtype, None, input.dtype.opmath)
    return out, Spec(reduced, kind), Spec(reduced, kind)


@rule(flops="4 * numel(input)")  # square, sum, two products
def rms_norm(input: Any, normalized_shape: Sequence[int], weight: Any = None) -> Spec:
    """Scaled to unit root mean square over the last dims: input's shape, contiguous."""
    _check_normalized(input, normalized_shape, weight, None, joiner="")
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise not_implemented("rms_norm", input.dtype)
    return Spec(tuple(input.shape), input.dtype, None, input.dtype.opmath)


def _check_channel_parameters(input: Any, weight: Any, bias: Any) -> None:
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and tuple(parameter.shape) != (input.shape[1],):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                "shape "
                f"{shape_text(parameter.shape)} and input of shape {shape_text(input.shape)}"
            )


def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None) -> Spec:
    """Normalised in groups of channels (dim 1): input's shape and format."""
    return native_group_norm(input, num_groups, weight, bias)[0]


@rule(flops="8 * numel(input)")
def native_group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None) -> tuple[Spec, Spec, Spec]:
    """(out, mean, rstd); the statistics are [batch, groups]."""
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if input.shape[1] % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{shape_text(input.shape)} and num_groups={num_groups}"
        )
    _check_channel_parameters(input, weight, bias)
    kind = _parameter_dtype(input, weight, bias)
    if not input.dtype.is_floating_point:
        raise not_implemented("GroupNormKernelImpl", input.dtype)
    shape, reduced = tuple(input.shape), (input.shape[0], int(num_groups))
    out = Spec(shape, input.dtype, suggested_strides(input, shape), input.dtype.opmath)
    return out, Spec(reduced, kind), Spec(reduced, kind)


@rule(flops="8 * numel(input)")
def native_batch_norm(
    input: Any,
    weight: Any = None,
    bias: Any = None,
    running_mean: Any = None,
    running_var: Any = None,
    training: bool = False,
) -> tuple[Spec, Spec, Spec]:
    """(out, mean, invstd); the statistics have a value per channel in training, else none."""
    check_undifferentiable("native_batch_norm", running_mean=running_mean, running_var=running_var)
    channels = input.shape[wrap_dim(1, input.dim())]
    for name, tensor, needed in (
        ("running_mean", running_mean, not training),
        ("running_var", running_var, not training),
        ("weight", weight, False),
        ("bias", bias, False),
    ):
        if tensor is None:
            if needed:
                raise RuntimeError(f"{name} must be defined in evaluation mode")
        elif tensor.numel() != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {tensor.numel()}")
    for tensor in (weight, bias, running_mean, running_var):
        if tensor is not None and not tensor.dim():
            raise RuntimeError("TensorAccessor expected 1 dims but tensor has 0")
    if not input.dtype.is_floating_point:
        raise not_implemented("batch_norm", input.dtype)
    kind = _parameter_dtype(input, weight, bias, running_mean, running_var)
    shape = tuple(input.shape)
    if training and 0 in shape:
        raise RuntimeError(f"input tensor must have at least one element, but got input_sizes = {shape_text(shape)}")
    statistics = (channels,) if training else (0,)
    out = Spec(shape, input.dtype, suggested_strides(input, shape), input.dtype.opmath)
    return out, Spec(statistics, kind), Spec(statistics, kind)


@rule(flops="11 * numel(input)")  # two sums and a combination for the input, two more sums for weight and bias
def norm_backward(
    grad: Any,
    input: Any,
    weight: Any = None,
    bias: Any = None,
    output_mask: Sequence[bool] | None = None,
    *statistics: Any,
) -> tuple[Spec | None, Spec | None, Spec | None]:
    """The gradients of (input, weight, bias) of a normalisation; None for those absent or not in the mask.

    statistics: what the forward pass saved of the input, computed with in the same dtype.
    """
    for tensor in (input, grad):
        check_dtype(tensor.dtype, "floating_real", "LayerNormBackwardKernelImpl")
    wanted = output_mask or (True, weight is not None, bias is not None)
    shape = tuple(input.shape)
    own = Spec(shape, input.dtype, suggested_strides(input, shape), input.dtype.opmath)
    width = bias if weight is None else weight
    parameters = None if width is None else tuple(width.shape)
    kind = input.dtype if width is None else width.dtype
    rest = [
        None if not want or parameters is None else Spec(parameters, kind, None, own.compute) for want in wanted[1:]
    ]
    return own if wanted[0] else None, rest[0], rest[1]


# --- dropout ----------------------------------------------------------------------------------------------------


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")


def _masked_strides(self: Any) -> Shape | None:
    """The strides of self times a mask that has self's dense strides."""
    shape = tuple(self.shape)
    mask = format_strides(self) or contiguous_strides(shape)
    return elementwise_strides(shape, [geometry(self), (shape, mask)])


def _check_scalable(self: Any, train: bool | None) -> None:
    if train and self.numel() and self.dtype.category < _d.CATEGORY_FLOATING:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {self.dtype.cpp}")


@rule(flops="2 * numel(out)", batch="elements")
def native_dropout(self: Any, p: float, train: bool | None = True) -> tuple[Spec, Spec]:
    """(out, bool mask) of self's geometry."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={1 - p:g}")
    _check_scalable(self, train)
    shape, stride = tuple(self.shape), format_strides(self)
    if not self.numel():  # nothing to drop: both outputs are like self
        return Spec(shape, self.dtype, stride, self.dtype.opmath), Spec(shape, self.dtype, stride)
    return Spec(shape, self.dtype, _masked_strides(self), self.dtype.opmath), Spec(shape, _d.bool, stride)


# --- attention --------------------------------------------------------------------------------------------------


def _fused(query: Any, key: Any, value: Any, dropout_p: float) -> bool:
    """Whether PyTorch's CPU takes its fused kernel, whose result has query's memory order."""
    return (
        query.dim() == key.dim() == value.dim() == 4
        and dropout_p == 0
        and query.dtype.is_floating_point
        and query.shape[-1] == key.shape[-1] == value.shape[-1]
        and query.shape[0] == key.shape[0] == value.shape[0]
        and query.shape[1] == key.shape[1] == value.shape[1]
        and all(tensor.stride()[-1] == 1 for tensor in (query, key, value))
        and query.shape[2] > 0
        and key.shape[2] > 0
    )


def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    enable_gqa: bool = False,
) -> Spec:
    """Scaled dot product attention: query [..., heads, l, e], key [..., heads, s, e], value [..., heads, s, ev] give
    [..., heads, l, ev].

    A mask (bool, float32 or of query's dtype) broadcasts to [..., l, s]. With enable_gqa key and value may have fewer
    heads.
    """
    if not query.dtype is key.dtype is value.dtype:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{query.dtype.ctype} key.dtype: {key.dtype.ctype} and value.dtype: {value.dtype.ctype} instead."
        )
    if min(query.dim(), key.dim(), value.dim()) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{query.dim()} key.dim: {key.dim()} and value.dim: {value.dim()} instead."
        )
    if attn_mask is not None and attn_mask.dtype not in (_d.bool, _d.float32, query.dtype):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{attn_mask.dtype.ctype} and  query.dtype: {query.dtype.ctype} instead."
        )
    _check_probability(dropout_p)
    if not query.dtype.is_floating_point:
        if query.dtype.is_complex:
            raise not_implemented("softmax_lastdim_kernel_impl", query.dtype)
        if query.dim() == 2:
            raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: float != {query.dtype.ctype}")
        raise RuntimeError(f"expected scalar type Float but found {query.dtype.cpp}")
    batch_q, batch_k, batch_v = (list(tensor.shape[:-2]) for tensor in (query, key, value))
    if enable_gqa and query.dim() >= 3:
        heads = batch_q[-1]
        for batch in (batch_k, batch_v):
            if not batch[-1] or heads % batch[-1]:
                raise RuntimeError("Number of heads in key and value must divide the number of heads in ")
            batch[-1] = heads
    scores = (*broadcast(batch_q, batch_k), query.shape[-2], key.shape[-2])
    if query.shape[-1] != key.shape[-1]:
        count = numel(scores[:-2])
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {shape_text((count, query.shape[-1]))} "
            "but got: "
            f"{shape_text((count, key.shape[-1]))}."
        )
    if attn_mask is not None:
        scores = broadcast(scores, attn_mask.shape)
    batch = broadcast(scores[:-2], batch_v)
    if key.shape[-2] != value.shape[-2]:
        count = numel(batch)
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {shape_text((count, key.shape[-2]))} but "
            "got: "
            f"{shape_text((count, value.shape[-2]))}."
        )
    shape = (*batch, query.shape[-2], value.shape[-1])
    stride = None
    if shape == tuple(query.shape) and _fused(query, key, value, dropout_p):
        stride = format_strides(query)
    return Spec(shape, query.dtype, stride, query.dtype.opmath)


@rule(flops="4 * numel(v)")  # square, sum, division, product
def weight_norm(v: Any, g: Any, dim: int = 0) -> tuple[Spec, Spec]:
    """(w, norms): v scaled to the norms g along `dim`; the norms of halves are float32."""
    kind = _d.float32 if v.dtype in _HALF else v.dtype
    return Spec(tuple(v.shape), v.dtype, format_strides(v), v.dtype.opmath), Spec(tuple(g.shape), kind)
