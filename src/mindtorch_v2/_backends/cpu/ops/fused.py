"""References of torch_npu's fused operators: what the functions of CANN compute, in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from ...._dtype import float64
from ...._random import default_generator, streams


def _over(x: ndarray, gamma: ndarray) -> tuple[int, ...]:
    return tuple(range(x.ndim - gamma.ndim, x.ndim))


def _wide(x: ndarray) -> Any:
    return np.float64 if x.dtype == np.float64 else np.float32


def rms_norm(self: ndarray, gamma: ndarray, epsilon: float) -> tuple[ndarray, ndarray]:
    """(self over its root mean square in gamma's dimensions times gamma, the reciprocal roots, 0 of lines without elements)."""
    if not gamma.size:
        lines = (*self.shape[: self.ndim - gamma.ndim], *(1,) * gamma.ndim)
        return np.empty(self.shape, self.dtype), np.zeros(lines, _wide(self))
    squares = np.mean(np.square(self, dtype=_wide(self)), _over(self, gamma), keepdims=True)
    rstd = 1 / np.sqrt(squares + epsilon)
    return self * rstd * gamma.astype(self.dtype), rstd.astype(_wide(self))


def rms_norm_backward(dy: ndarray, self: ndarray, gamma: ndarray, rstd: ndarray) -> tuple[ndarray, ndarray]:
    """The gradients of self and gamma."""
    if not gamma.size:
        return np.empty(self.shape, self.dtype), np.empty(gamma.shape, _wide(self))
    normal = self * rstd
    upper = dy * gamma.astype(dy.dtype)
    over = _over(self, gamma)
    first = (upper - normal * np.mean(upper * normal, over, keepdims=True)) * rstd
    return first, np.sum(dy * normal, tuple(range(self.ndim - gamma.ndim)), dtype=_wide(self))


def add_rms_norm(x1: ndarray, x2: ndarray, gamma: ndarray, epsilon: float) -> tuple[ndarray, ndarray, ndarray]:
    """(the norm of the sum, the reciprocal roots, the sum)."""
    total = x1 + x2
    normal, rstd = rms_norm(total, gamma, epsilon)
    return normal, rstd, total


def _rotated(x: ndarray, mode: str) -> ndarray:
    made = np.empty_like(x)
    half = x.shape[-1] // 2
    if mode == "half":
        made[..., :half], made[..., half:] = -x[..., half:], x[..., :half]
    else:
        made[..., ::2], made[..., 1::2] = -x[..., 1::2], x[..., ::2]
    return made


def rotary_mul(self: ndarray, r1: ndarray, r2: ndarray, rotary_mode: str, rotate: None) -> ndarray:
    """self * r1 + rotated(self) * r2."""
    return self * r1 + _rotated(self, rotary_mode) * r2


def _summed(x: ndarray, shape: Sequence[int]) -> ndarray:
    over = tuple(d for d, n in enumerate(shape) if n == 1 and x.shape[d] != 1)
    return np.sum(x, over, keepdims=True) if over else x


def rotary_mul_backward(
    grad: ndarray, self: ndarray, r1: ndarray, r2: ndarray, rotary_mode: str
) -> tuple[ndarray, ndarray, ndarray]:
    """The gradients of self, r1 and r2; the rotation's transpose is its negative."""
    first = grad * r1 - _rotated(grad * r2, rotary_mode)
    return first, _summed(grad * self, r1.shape), _summed(grad * _rotated(self, rotary_mode), r2.shape)


def _sigmoid(x: ndarray) -> ndarray:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def swiglu(self: ndarray, dim: int) -> ndarray:
    """silu of the first half times the second."""
    a, b = np.split(self, 2, dim)
    return a * _sigmoid(a) * b


def swiglu_backward(grad_output: ndarray, self: ndarray, dim: int) -> ndarray:
    """The gradient of self."""
    a, b = np.split(self, 2, dim)
    s = _sigmoid(a)
    return np.concatenate((grad_output * b * s * (1 + a * (1 - s)), grad_output * a * s), dim)


# Quantisation


def dynamic_quant(
    input: ndarray,
    smooth_scales: ndarray | None,
    group_index: ndarray | None,
    dst_type: None,
    quant_mode: str,
    dst_type_max: float,
) -> tuple[ndarray, ndarray]:
    """(int8, scales): the largest size becomes 127; lines of zeros have the scale 0."""
    kind = np.float64 if input.dtype == np.float64 else np.float32
    x = input.astype(kind)
    if smooth_scales is not None:
        smooth_scales = smooth_scales.astype(kind)
        if group_index is None:
            x = x * smooth_scales
        else:
            rows = np.arange(int(np.prod(x.shape[:-1])))
            expert = np.minimum(np.searchsorted(group_index, rows, "right"), len(group_index) - 1)
            x = x * smooth_scales[expert].reshape(x.shape)
    over = {"pertoken": -1, "perchannel": -2, "pertensor": None}[quant_mode]
    top = np.max(np.abs(x), over, keepdims=True, initial=0) / 127
    with np.errstate(divide="ignore", invalid="ignore"):
        made = np.where(top > 0, np.rint(x / top), 0)
    scale = top.reshape(1) if over is None else np.squeeze(top, over)
    return made.astype(np.int8), scale.astype(np.float32)


def quant_matmul(
    x1: ndarray,
    x2: ndarray,
    scale: ndarray,
    offset: ndarray | None,
    pertoken_scale: ndarray | None,
    bias: ndarray | None,
    output_dtype: Any,
    *unused: Any,
) -> ndarray:
    """(x1 @ x2 + bias) * scale, in float64; an int64 scale has the bits of a float32 in its lower half."""
    product = np.matmul(x1.astype(np.float64), x2.astype(np.float64))
    kind = np.dtype(np.int8) if output_dtype is None else output_dtype.np
    whole = bias is not None and bias.dtype == np.int32
    if whole:
        product = product + bias
    if kind == np.int32:
        return product.astype(np.int32)
    if scale.dtype == np.int64:
        scale = (scale & 0xFFFFFFFF).astype(np.uint32).view(np.float32)
    product = product * scale.astype(np.float64)
    if pertoken_scale is not None:
        product = product * pertoken_scale[:, None]
    if bias is not None and not whole:
        product = product + bias.astype(np.float64)
    if offset is not None:
        product = product + offset
    if kind == np.int8:
        product = np.clip(np.rint(product), -128, 127)
    return product.astype(kind)


# Mixtures of experts


def grouped_matmul(
    x: list, weight: list, bias: list, group_list: ndarray | None, group_type: int, group_list_type: int
) -> tuple[ndarray, ...]:
    """Products of pairs (-1), of groups of rows (0) or of columns (2). RuntimeError for groups beyond the tensor."""
    if group_type == -1:
        return tuple(_product(a, b, bias[k] if bias else None) for k, (a, b) in enumerate(zip(x, weight, strict=True)))
    assert group_list is not None
    ends = np.cumsum(group_list) if group_list_type == 1 else group_list
    rows, total = x[0], x[0].shape[0 if group_type == 0 else 1]
    starts = np.concatenate(([0], ends[:-1])).astype(np.int64)
    if np.any(ends < starts) or np.any(ends > total):
        raise RuntimeError(f"npu_grouped_matmul: groups {group_list.tolist()} do not fit {total} elements")
    pairs = list(zip(starts.tolist(), ends.tolist(), strict=True))
    if group_type == 2:
        made = [_product(rows[:, a:b], weight[0][a:b], None) for a, b in pairs]
        return (np.stack(made) if made else np.zeros((0, rows.shape[0], weight[0].shape[1]), rows.dtype),)
    one = len(weight) == 1 and weight[0].ndim == 3
    out = np.zeros((total, weight[0].shape[-1]), rows.dtype)
    for g, (a, b) in enumerate(pairs):
        more = None if not bias else bias[0][g] if one else bias[g]
        out[a:b] = _product(rows[a:b], weight[0][g] if one else weight[g], more)
    return (out,)


def _product(x: ndarray, weight: ndarray, bias: ndarray | None) -> ndarray:
    kind = np.float64 if x.dtype == np.float64 else np.float32
    made = np.matmul(x.astype(kind), weight.astype(kind))
    return (made if bias is None else made + bias.astype(kind)).astype(x.dtype)


def moe_init_routing(
    x: ndarray, row_idx: ndarray, expert_idx: ndarray, active_num: int
) -> tuple[ndarray, ndarray, ndarray]:
    """(rows in the order of their experts, where each went, the experts in order)."""
    order = np.argsort(expert_idx, None, "stable")
    rows = row_idx.reshape(-1)[order]
    went = np.empty_like(rows)
    if rows.size and not (0 <= rows.min() and rows.max() < rows.size):
        raise RuntimeError("npu_moe_init_routing: row_idx is out of range")
    went[rows] = np.arange(rows.size, dtype=went.dtype)
    active = min(x.shape[0], active_num) * expert_idx.shape[1]
    return x[rows[:active] % max(x.shape[0], 1)], went, expert_idx.reshape(-1)[order]


def moe_token_permute(
    tokens: ndarray, indices: ndarray, num_out_tokens: int | None, padded_mode: bool
) -> tuple[ndarray, ndarray]:
    """(tokens in the order of their experts, where each went)."""
    order = np.argsort(indices, None, "stable")
    went = np.empty(order.size, np.int32)
    went[order] = np.arange(order.size, dtype=np.int32)
    wanted = num_out_tokens or 0
    kept = max(min(wanted if wanted > 0 else order.size + wanted, order.size), 0)
    return tokens[order[:kept] // _experts(indices)], went


def _experts(indices: ndarray) -> int:
    return indices.shape[1] if indices.ndim == 2 else 1


def _gathered(rows: ndarray, where: ndarray, weights: ndarray | None, experts: int) -> ndarray:
    """Sums of `experts` rows each, those that were dropped left out."""
    kept = where < rows.shape[0]
    picked = np.zeros((where.size, rows.shape[1]), rows.dtype)
    picked[kept] = rows[where[kept]]
    if weights is not None:
        picked *= weights.reshape(-1, 1)
    return picked.reshape(where.size // max(experts, 1), experts, rows.shape[1]).sum(1)


def moe_token_permute_grad(
    tokens: ndarray, grad_permuted_tokens: ndarray, indices: ndarray, sorted_indices: ndarray, padded_mode: bool
) -> ndarray:
    """The gradient of tokens."""
    return _gathered(grad_permuted_tokens, sorted_indices, None, _experts(indices))


def moe_token_unpermute(
    permuted_tokens: ndarray, sorted_indices: ndarray, probs: ndarray | None, padded_mode: bool, restore_shape: Any
) -> ndarray:
    """Tokens as sums of their rows, with weights."""
    return _gathered(permuted_tokens, sorted_indices, probs, 1 if probs is None else probs.shape[1])


def moe_token_unpermute_grad(
    permuted_tokens: ndarray,
    grad_unpermuted_tokens: ndarray,
    sorted_indices: ndarray,
    probs: ndarray | None,
    padded_mode: bool,
    restore_shape: Any,
) -> tuple[ndarray, ndarray]:
    """The gradients of rows and weights."""
    experts = 1 if probs is None else probs.shape[1]
    above = np.repeat(grad_unpermuted_tokens, experts, 0)
    kept = sorted_indices < permuted_tokens.shape[0]
    first = np.zeros_like(permuted_tokens)
    scaled = above if probs is None else above * probs.reshape(-1, 1)
    np.add.at(first, sorted_indices[kept], scaled[kept])
    if probs is None:
        return first, np.zeros(0, permuted_tokens.dtype)
    second = np.zeros(sorted_indices.size, probs.dtype)
    second[kept] = np.sum(above[kept] * permuted_tokens[sorted_indices[kept]], -1)
    return first, second.reshape(probs.shape)


# Dropout


def dropout_mask(self: Any, size: Sequence[int], p: float, seed: int, offset: int, *unused: Any) -> ndarray:
    """A bit for each element, the lowest of a byte first, of the Philox numbers of a seed and an offset."""
    count = int(np.prod(size, dtype=np.int64))
    drawn = np.random.Generator(np.random.Philox(key=seed % (1 << 64), counter=offset % (1 << 64)))
    bits = np.zeros((count + 127) // 128 * 128, np.bool_)
    bits[:count] = drawn.random(count) >= p
    return np.packbits(bits, bitorder="little")


def dropout(self: ndarray, p: float) -> tuple[ndarray, ndarray]:
    """(what is left over 1 - p, the mask), of a seed that the default generator gives."""
    seed = int(float(streams.uniform(default_generator, (1,), float64, 0.0, 1.0)[0]) * 2**53)
    mask = dropout_mask(self, self.shape, p, seed, 0)
    return dropout_backward(self, mask, p), mask


def dropout_backward(grad_output: ndarray, mask: ndarray, p: float) -> ndarray:
    """What the mask leaves, over 1 - p."""
    if p in (0, 1):  # what the mask says is not asked then
        return np.zeros_like(grad_output) if p else grad_output.copy()
    kept = np.unpackbits(mask, bitorder="little")[: grad_output.size].reshape(grad_output.shape)
    return grad_output * kept * grad_output.dtype.type(1 / (1 - p))
