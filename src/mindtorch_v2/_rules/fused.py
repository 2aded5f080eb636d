"""Rules of torch_npu's fused operators: norms, rotary embeddings, quantisation, mixtures of experts. Those of attention are in `fused_attention.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _dtype as _d
from ._common import check_dtype, shape_text, wrap_dim
from .spec import Spec, rule


def wide(kind: Any) -> Any:
    """The dtype of statistics: float32, and float64 beside float64."""
    return kind if kind is _d.float64 else _d.float32


def require(condition: Any, message: str) -> None:
    """RuntimeError with the message where the condition does not hold."""
    if not condition:
        raise RuntimeError(message)


def check_fused(name: str, first: Any, *others: Any) -> None:
    """Tensors are floating and of one dtype. RuntimeError or NotImplementedError else."""
    check_dtype(first.dtype, "floating_real", name)
    for other in others:
        if other is not None and other.dtype is not first.dtype:
            raise RuntimeError(f"{name}: expected scalar type {first.dtype.cpp} but found {other.dtype.cpp}")


def _check_index(name: str, word: str, tensor: Any, *kinds: Any) -> None:
    if tensor.dtype not in kinds:
        raise RuntimeError(
            f"{name}: expected {word} of dtype {' or '.join(str(k).rpartition('.')[2] for k in kinds)}, but got {tensor.dtype}"
        )


# --- norms ------------------------------------------------------------------------------------------------------


def _lines(name: str, x: Any, gamma: Any) -> tuple[int, ...]:
    """The shape of a number per line: x's sizes, and 1 in the dimensions of gamma."""
    check_dtype(x.dtype, "floating_real", name)
    check_dtype(gamma.dtype, "floating_real", name)
    count = gamma.dim()
    if not count or count > x.dim() or tuple(x.shape[x.dim() - count :]) != tuple(gamma.shape):
        raise RuntimeError(
            f"{name}: gamma of shape {shape_text(gamma.shape)} is not the end of the input's shape {shape_text(x.shape)}"
        )
    return (*x.shape[: x.dim() - count], *(1,) * count)


@rule(flops="4 * numel(self)")
def npu_rms_norm(self: Any, gamma: Any) -> tuple[Spec, Spec]:
    """(self over its root mean square in the dimensions of gamma, times gamma; the reciprocal roots, float32 at least)."""
    lines = _lines("npu_rms_norm", self, gamma)
    out = Spec(tuple(self.shape), self.dtype, None, self.dtype.opmath)
    return out, Spec(lines, wide(self.dtype))


@rule(flops="8 * numel(self)")
def npu_rms_norm_backward(dy: Any, self: Any, gamma: Any, rstd: Any) -> tuple[Spec, Spec]:
    """The gradients of self and, in float32 at least, of gamma."""
    name = "npu_rms_norm_backward"
    lines = _lines(name, self, gamma)
    check_fused(name, self, dy)
    require(tuple(dy.shape) == tuple(self.shape), f"{name}: the gradient does not have the input's shape")
    require(tuple(rstd.shape) == lines, f"{name}: rstd does not have a number per line")
    require(rstd.dtype is wide(self.dtype), f"{name}: expected rstd of dtype {wide(self.dtype)}, but got {rstd.dtype}")
    out = Spec(tuple(self.shape), self.dtype, None, self.dtype.opmath)
    return out, Spec(tuple(gamma.shape), wide(self.dtype))


@rule(flops="5 * numel(x1)")
def npu_add_rms_norm(x1: Any, x2: Any, gamma: Any) -> tuple[Spec, Spec, Spec]:
    """(the norm of x1 + x2, reciprocal roots, x1 + x2)."""
    name = "npu_add_rms_norm"
    lines = _lines(name, x1, gamma)
    check_fused(name, x1, x2, gamma)
    require(tuple(x1.shape) == tuple(x2.shape), f"{name}: x1 and x2 differ in shape")
    made = [Spec(tuple(x1.shape), x1.dtype, None, x1.dtype.opmath) for _ in range(2)]
    return made[0], Spec(lines, wide(x1.dtype)), made[1]


# --- rotary embeddings, gates -----------------------------------------------------------------------------------


def _check_rotary(name: str, self: Any, r1: Any, r2: Any, mode: str) -> None:
    require(mode in ("half", "interleave"), f"The rotary_mode of {name} should be half or interleave, but got {mode}")
    for tensor in (self, r1, r2):
        check_dtype(tensor.dtype, "floating_real", name)
    require(self.dim() == 4 and r1.dim() == 4, f"{name}: expected tensors of 4 dimensions")
    require(tuple(r1.shape) == tuple(r2.shape), f"{name}: r1 and r2 differ in shape")
    fits = all(b in (1, a) for a, b in zip(self.shape[:3], r1.shape[:3], strict=True))
    if not fits or self.shape[3] != r1.shape[3]:
        raise RuntimeError(
            f"{name}: r1 of shape {shape_text(r1.shape)} does not broadcast to the input's {shape_text(self.shape)}"
        )
    require(self.shape[3] % 2 == 0, f"{name}: the last dimension is odd")


@rule(flops="3 * numel(self)")
def npu_rotary_mul(self: Any, r1: Any, r2: Any, rotary_mode: str = "half", rotate: Any = None) -> Spec:
    """self * r1 + rotated(self) * r2, of 4 dimensions, in self's dtype; "half" rotates halves of lines, "interleave" pairs."""
    _check_rotary("npu_rotary_mul", self, r1, r2, rotary_mode)
    require(rotate is None, "npu_rotary_mul: rotate is not supported on this chip")
    return Spec(tuple(self.shape), self.dtype, None, self.dtype.opmath)


@rule(flops="8 * numel(self)")
def npu_rotary_mul_backward(
    grad: Any, self: Any, r1: Any, r2: Any, rotary_mode: str = "half"
) -> tuple[Spec, Spec, Spec]:
    """The gradients of self, r1 and r2, all in self's dtype."""
    name = "npu_rotary_mul_backward"
    _check_rotary(name, self, r1, r2, rotary_mode)
    require(tuple(grad.shape) == tuple(self.shape), f"{name}: the gradient does not have the input's shape")
    check_dtype(grad.dtype, "floating_real", name)
    shapes = (self.shape, r1.shape, r2.shape)
    first, second, third = (Spec(tuple(s), self.dtype, None, self.dtype.opmath) for s in shapes)
    return first, second, third


def _half(name: str, self: Any, dim: int) -> tuple[int, ...]:
    check_dtype(self.dtype, "floating_real", name)
    require(self.dim(), f"{name}: expected a tensor of at least one dimension")
    at = wrap_dim(dim, self.dim())
    require(self.shape[at] % 2 == 0, f"{name}: the size {self.shape[at]} of dimension {dim} is odd")
    return (*self.shape[:at], self.shape[at] // 2, *self.shape[at + 1 :])


@rule(flops="5 * numel(out)")
def npu_swiglu(self: Any, dim: int = -1) -> Spec:
    """silu of the first half along dim, times the second."""
    return Spec(_half("npu_swiglu", self, dim), self.dtype, None, self.dtype.opmath)


@rule(flops="6 * numel(out)")
def npu_swiglu_backward(grad_output: Any, self: Any, dim: int = -1) -> Spec:
    """The gradient of self."""
    name = "npu_swiglu_backward"
    half = _half(name, self, dim)
    check_fused(name, self, grad_output)
    require(tuple(grad_output.shape) == half, f"{name}: the gradient does not have the result's shape")
    return Spec(tuple(self.shape), self.dtype, None, self.dtype.opmath)


# --- quantisation -----------------------------------------------------------------------------------------------


@rule(flops="3 * numel(input)")
def npu_dynamic_quant(
    input: Any,
    smooth_scales: Any = None,
    group_index: Any = None,
    dst_type: Any = None,
    quant_mode: str = "pertoken",
    dst_type_max: float = 0.0,
) -> tuple[Spec, Spec]:
    """(int8 of input's shape, float32 scales): a scale for each line ("pertoken"), channel ("perchannel"), or one ("pertensor")."""
    name = "npu_dynamic_quant"
    require(input.dim() > 1, "Input shape dim should be greater than 1")
    check_fused(name, input, smooth_scales)
    require(dst_type in (None, _d.int8), f"{name}: only int8 is supported for dst_type, but got {dst_type}")
    require(not dst_type_max, f"{name}: dst_type_max is not supported on this chip")
    width = input.shape[-1]
    groups = 1
    if group_index is not None:
        _check_index(name, "group_index", group_index, _d.int32)
        require(group_index.dim() == 1 and smooth_scales is not None, f"{name}: group_index needs smooth_scales")
        groups = group_index.shape[0]
    if smooth_scales is not None:
        fits = tuple(smooth_scales.shape) in ([(width,)] if group_index is None else [(groups, width)])
        require(fits, f"{name}: smooth_scales of shape {shape_text(smooth_scales.shape)} do not fit the input")
    lead = tuple(input.shape[:-1])
    shapes = {"pertoken": lead, "pertensor": (1,), "perchannel": (*lead[:-1], width)}
    require(quant_mode in shapes, f"{name}: quant_mode should be one of {', '.join(shapes)}, but got {quant_mode}")
    return Spec(tuple(input.shape), _d.int8), Spec(shapes[quant_mode], _d.float32)


def _product_shape(x1: Any, x2: Any) -> tuple[int, ...]:
    name = "npu_quant_matmul"
    for word, tensor in (("x1", x1), ("x2", x2)):
        require(
            2 <= tensor.dim() <= 6,
            f"{word} dim num should be 2 ~ 6, please check {word} dim num. Actual {word} dim = {tensor.dim()}",
        )
        require(tensor.dtype is _d.int8, f"{name}: only int8 is supported for {word}, but got {tensor.dtype}")
    require(
        x1.shape[-1] == x2.shape[-2], f"{name}: {shape_text(x1.shape)} and {shape_text(x2.shape)} cannot be multiplied"
    )
    left, right = tuple(x1.shape[:-2]), tuple(x2.shape[:-2])
    count = max(len(left), len(right))
    left, right = (1,) * (count - len(left)) + left, (1,) * (count - len(right)) + right
    require(
        all(a == b or 1 in (a, b) for a, b in zip(left, right, strict=True)),
        "the x1 shape and x2 shape not supported for broadcast",
    )
    return (*(max(a, b) for a, b in zip(left, right, strict=True)), x1.shape[-2], x2.shape[-1])


@rule(flops="2 * numel(out) * size(x1, -1)")
def npu_quant_matmul(
    x1: Any,
    x2: Any,
    scale: Any,
    offset: Any = None,
    pertoken_scale: Any = None,
    bias: Any = None,
    output_dtype: Any = None,
    x1_dtype: Any = None,
    x2_dtype: Any = None,
    group_sizes: Any = None,
    y_scale: Any = None,
) -> Spec:
    """The product of int8 matrices (and batches of them) as int32, times the scale of its column, in `output_dtype` (int8)."""
    name = "npu_quant_matmul"
    for word, value in (
        ("x1_dtype", x1_dtype),
        ("x2_dtype", x2_dtype),
        ("group_sizes", group_sizes),
        ("y_scale", y_scale),
    ):
        require(value is None, f"{name}: {word} is not supported on this chip")
    shape = _product_shape(x1, x2)
    rows, columns = shape[-2:]
    kind = _d.int8 if output_dtype is None else output_dtype
    require(
        kind in (_d.int8, _d.float16, _d.bfloat16, _d.int32),
        f"{name}: output_dtype should be int8, float16, bfloat16 or int32, but got {kind}",
    )
    _check_index(name, "scale", scale, _d.float32, _d.bfloat16, _d.int64)
    require(
        scale.dim() == 1 and scale.shape[0] in (1, columns),
        f"{name}: scale has neither one number nor one for each column",
    )
    packed = scale.dtype is _d.int64
    require(
        kind is not _d.int8 or packed, f"{name}: a result of int8 needs a scale of int64, as of npu_trans_quant_param"
    )
    require(
        kind is not _d.float16 or packed or pertoken_scale is not None,
        f"{name}: a result of float16 needs a scale of int64, or pertoken_scale",
    )
    require(kind is not _d.bfloat16 or not packed, f"{name}: a result of bfloat16 needs a scale of bfloat16 or float32")
    if offset is not None:
        require(kind is _d.int8 and offset.dtype is _d.float32, f"{name}: offset is float32, for results of int8")
        require(offset.dim() == 1 and offset.shape[0] in (1, columns), f"{name}: offset does not fit the columns")
    if pertoken_scale is not None:
        require(
            pertoken_scale.dtype is _d.float32 and kind in (_d.float16, _d.bfloat16),
            f"{name}: pertoken_scale is float32, for results of float16 and bfloat16",
        )
        require(tuple(pertoken_scale.shape) == (rows,), f"{name}: pertoken_scale is not one for each row")
    if bias is not None:
        fits = bias.dtype is _d.int32 or (bias.dtype is _d.bfloat16 and kind is _d.bfloat16)
        fits = fits or (pertoken_scale is not None and bias.dtype in (_d.float32, _d.float16, _d.bfloat16))
        require(fits, f"{name}: a bias of {bias.dtype} is not supported for a result of {kind}")
        require(tuple(bias.shape) == (columns,), f"{name}: bias does not have a number for each column")
    return Spec(shape, kind)


# --- mixtures of experts ----------------------------------------------------------------------------------------


def _group_of(name: str, x: Any, weight: Any) -> None:
    require(weight.dim() == 2 and x.dim() >= 2, f"{name}: expected matrices as weights and x of at least 2 dimensions")
    require(
        x.shape[-1] == weight.shape[0],
        f"{name}: x of shape {shape_text(x.shape)} and weight of shape {shape_text(weight.shape)} cannot be multiplied",
    )


def _groups_of_rows(name: str, x: Any, weight: Sequence[Any], bias: Sequence[Any], groups: int) -> Spec:
    one = len(weight) == 1 and weight[0].dim() == 3
    require((weight[0].shape[0] if one else len(weight)) == groups, f"{name}: there are not as many weights as groups")
    for item in weight:
        inner, columns = item.shape[-2:]
        require(
            item.dim() == (3 if one else 2) and inner == x.shape[1] and columns == weight[0].shape[-1],
            f"{name}: x of shape {shape_text(x.shape)} and weight of shape {shape_text(item.shape)} cannot be multiplied",
        )
    columns = weight[0].shape[-1]
    wanted = (groups, columns) if one else (columns,)
    for item in bias:
        require(tuple(item.shape) == wanted, f"{name}: bias does not have a number for each column of a group")
    require(not bias or len(bias) == len(weight), f"{name}: bias and weight differ in size")
    return Spec((x.shape[0], columns), x.dtype)


@rule(flops="grouped(x, weight)")
def npu_grouped_matmul(
    x: Sequence[Any], weight: Sequence[Any], bias: Sequence[Any], group_list: Any, group_type: int
) -> tuple[Spec, ...]:
    """Products of groups, as a list: of pairs (-1), of rows of x[0] (0), or of columns of x[0] and rows of weight[0] (2)."""
    name = "npu_grouped_matmul"
    require(x and weight, f"{name}: x and weight must not be empty")
    check_fused(name, x[0], *x, *weight)
    wanted = _d.float32 if x[0].dtype is _d.bfloat16 else x[0].dtype
    for item in bias:
        require(item.dtype is wanted, f"{name}: expected a bias of {wanted}, but got {item.dtype}")
    if group_type == -1:
        require(len(x) == len(weight) and len(bias) in (0, len(x)), f"{name}: the lists differ in size")
        for k, (left, right) in enumerate(zip(x, weight, strict=True)):
            _group_of(name, left, right)
            fits = not bias or tuple(bias[k].shape) == (right.shape[1],)
            require(fits, f"{name}: bias does not have a number for each column of a group")
        return tuple(Spec((*a.shape[:-1], b.shape[1]), a.dtype) for a, b in zip(x, weight, strict=True))
    require(group_list is not None, f"{name}: group_list is needed where x is split")
    require(
        group_list.dtype is _d.int64 and group_list.dim() == 1, f"{name}: group_list must be one-dimensional and int64"
    )
    require(len(x) == 1 and x[0].dim() == 2, f"{name}: expected one matrix as x where it is split")
    groups = group_list.shape[0]
    if group_type == 0:
        return (_groups_of_rows(name, x[0], weight, bias, groups),)
    require(group_type == 2, f"{name}: the group type must be -1, 0 or 2, but now is [{group_type}]")
    require(not bias and len(weight) == 1, f"{name}: expected one weight, and no bias, where columns are split")
    require(
        weight[0].dim() == 2 and weight[0].shape[0] == x[0].shape[1],
        f"{name}: x of shape {shape_text(x[0].shape)} and weight of shape {shape_text(weight[0].shape)} cannot be multiplied",
    )
    return (Spec((groups, x[0].shape[0], weight[0].shape[1]), x[0].dtype),)


@rule(flops="0")
def npu_moe_init_routing(x: Any, row_idx: Any, expert_idx: Any, active_num: int) -> tuple[Spec, Spec, Spec]:
    """(rows of x [N, H] in the order of their experts [min(N, active_num) * K, H], where each went, the experts in order)."""
    for word, tensor in (("x", x), ("expert_idx", expert_idx), ("row_idx", row_idx)):
        require(tensor.dim() == 2, f"The {word} should be 2D")
    if x.dtype not in (_d.float16, _d.float32, _d.bfloat16):
        raise RuntimeError(f"float16、float32 or bfloat16 tensor expected but got a tensor with dtype: {x.dtype.cpp}")
    for tensor in (expert_idx, row_idx):
        if tensor.dtype is not _d.int32:
            raise RuntimeError(f"int32 tensor expected but got a tensor with dtype: {tensor.dtype.cpp}")
    require(active_num >= 0, "The active_num must be a non-negative number")
    require(x.shape[0] == expert_idx.shape[0], "Input rows shoud be same.")
    require(tuple(expert_idx.shape) == tuple(row_idx.shape), "The shape of expert_idx and row_idx should be same.")
    rows, count = x.shape[0], expert_idx.shape[1]
    flat = Spec((rows * count,), _d.int32)
    return Spec((min(rows, active_num) * count, x.shape[1]), x.dtype), flat, flat


def _check_indices(name: str, tokens: Any, indices: Any, padded_mode: bool) -> int:
    """The number of indices."""
    check_dtype(tokens.dtype, "floating_real", name)
    require(not padded_mode, f"{name}: padded_mode is not supported")
    _check_index(name, "indices", indices, _d.int32, _d.int64)
    require(tokens.dim() == 2, f"{name}: expected tokens of 2 dimensions")
    require(
        indices.dim() in (1, 2) and indices.shape[0] == tokens.shape[0],
        f"{name}: indices of shape {shape_text(indices.shape)} do not fit tokens of shape {shape_text(tokens.shape)}",
    )
    return indices.numel()


@rule(flops="0")
def npu_moe_token_permute(
    tokens: Any, indices: Any, num_out_tokens: int | None = None, padded_mode: bool = False
) -> tuple[Spec, Spec]:
    """(tokens in the order of their experts, the first `num_out_tokens` of them; int32, where each went)."""
    count = _check_indices("npu_moe_token_permute", tokens, indices, padded_mode)
    wanted = num_out_tokens or 0
    kept = max(min(wanted if wanted > 0 else count + wanted, count), 0)
    return Spec((kept, tokens.shape[1]), tokens.dtype), Spec((count,), _d.int32)


@rule(flops="numel(grad_permuted_tokens)")
def npu_moe_token_permute_grad(
    tokens: Any, grad_permuted_tokens: Any, indices: Any, sorted_indices: Any, padded_mode: bool = False
) -> Spec:
    """The gradient of tokens."""
    name = "npu_moe_token_permute_grad"
    count = _check_indices(name, tokens, indices, padded_mode)
    check_fused(name, tokens, grad_permuted_tokens)
    _check_index(name, "sorted_indices", sorted_indices, _d.int32)
    require(tuple(sorted_indices.shape) == (count,), f"{name}: sorted_indices are not one for each index")
    fits = grad_permuted_tokens.dim() == 2 and grad_permuted_tokens.shape[1] == tokens.shape[1]
    require(fits, f"{name}: the gradient does not have the shape of permuted tokens")
    return Spec(tuple(tokens.shape), tokens.dtype, None, tokens.dtype.opmath)


def _tokens(name: str, permuted: Any, sorted_indices: Any, probs: Any, padded_mode: bool) -> tuple[int, int]:
    """The shape of the tokens."""
    require(not padded_mode, f"{name}: padded_mode is not supported")
    check_dtype(permuted.dtype, "floating_real", name)
    _check_index(name, "sorted_indices", sorted_indices, _d.int32)
    require(
        permuted.dim() == 2 and sorted_indices.dim() == 1, f"{name}: expected tokens of 2 dimensions and indices of one"
    )
    count = sorted_indices.shape[0]
    if probs is None:
        return count, permuted.shape[1]
    check_dtype(probs.dtype, "floating_real", name)
    require(probs.dim() == 2 and probs.numel() == count, f"{name}: probs are not one for each index")
    return probs.shape[0], permuted.shape[1]


@rule(flops="2 * numel(permuted_tokens)")
def npu_moe_token_unpermute(permuted_tokens: Any, probs: Any, sorted_indices: Any, padded_mode: bool = False) -> Spec:
    """Tokens [T, H] as sums of the rows at `sorted_indices` [T * K], K after K, with the weights `probs` [T, K]."""
    shape = _tokens("npu_moe_token_unpermute", permuted_tokens, sorted_indices, probs, padded_mode)
    return Spec(shape, permuted_tokens.dtype, None, permuted_tokens.dtype.opmath)


@rule(flops="4 * numel(permuted_tokens)")
def npu_moe_token_unpermute_grad(
    permuted_tokens: Any, grad_unpermuted_tokens: Any, probs: Any, sorted_indices: Any, padded_mode: bool = False
) -> tuple[Spec, Spec]:
    """The gradients of permuted_tokens and of probs (no elements where there are none)."""
    name = "npu_moe_token_unpermute_grad"
    shape = _tokens(name, permuted_tokens, sorted_indices, probs, padded_mode)
    check_fused(name, permuted_tokens, grad_unpermuted_tokens)
    require(tuple(grad_unpermuted_tokens.shape) == shape, f"{name}: the gradient does not have the shape of the tokens")
    first = Spec(tuple(permuted_tokens.shape), permuted_tokens.dtype, None, permuted_tokens.dtype.opmath)
    kind = permuted_tokens.dtype if probs is None else probs.dtype
    return first, Spec((0,) if probs is None else tuple(probs.shape), kind)


# --- dropout ----------------------------------------------------------------------------------------------------


def mask_bytes(count: int) -> int:
    """The bytes of a mask with a bit for each element, in blocks of 128 bits."""
    return (count + 127) // 128 * 16


def _check_probability(p: float) -> None:
    require(0 <= p <= 1, f"dropout probability has to be between 0 and 1, but got {p}")


@rule(flops="0")
def npu_dropout_mask(size: Sequence[int], p: float) -> Spec:
    """A mask with a bit for each element of `size`, 1 with the probability 1 - p: uint8, in blocks of 128 bits."""
    _check_probability(p)
    count = 1
    for n in size:
        require(n >= 0, f"_npu_dropout_gen_mask: negative size {n}")
        count *= n
    return Spec((mask_bytes(count),), _d.uint8)


@rule(flops="numel(self)")
def npu_dropout(self: Any, p: float) -> tuple[Spec, Spec]:
    """(self with zeros where the drawn mask has them and the rest over 1 - p, the mask)."""
    check_dtype(self.dtype, "floating_real", "_npu_dropout")
    _check_probability(p)
    return Spec(tuple(self.shape), self.dtype, None, self.dtype.opmath), Spec((mask_bytes(self.numel()),), _d.uint8)


@rule(flops="numel(grad_output)")
def npu_dropout_backward(grad_output: Any, mask: Any, p: float) -> Spec:
    """grad_output with zeros where the mask has them, and the rest over 1 - p."""
    check_dtype(grad_output.dtype, "floating_real", "npu_dropout_backward")
    _check_probability(p)
    require(mask.dtype is _d.uint8, f"npu_dropout_backward: expected a mask of uint8, but got {mask.dtype}")
    wanted = (mask_bytes(grad_output.numel()),)
    require(tuple(mask.shape) == wanted, f"npu_dropout_backward: expected a mask of shape {shape_text(wanted)}")
    return Spec(tuple(grad_output.shape), grad_output.dtype, None, grad_output.dtype.opmath)
