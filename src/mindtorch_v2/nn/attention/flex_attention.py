"""Attention whose scores a function of the program changes, under masks of blocks.

There is no compiler that would skip the blocks which a mask leaves out: every score is computed, as PyTorch does where `flex_attention` is not
compiled. There too `mask_mod` alone says what is seen; the blocks are there for the program, and for the sizes. PyTorch's warning that only the
compiled function is fast is not given: compiling changes nothing here.
"""

from __future__ import annotations

import math
import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, NamedTuple, TypedDict

import mindtorch_v2 as torch

from ..._tensor import Tensor
from ._block_mask import (
    _DEFAULT_SPARSE_BLOCK_SIZE as _DEFAULT_SPARSE_BLOCK_SIZE,
    _LARGE_SPARSE_BLOCK_SIZE,
    BlockMask,
    _adjust_num_blocks_and_indices as _adjust_num_blocks_and_indices,
    _convert_block_mask_to_mask as _convert_block_mask_to_mask,
    _convert_mask_to_block_mask as _convert_mask_to_block_mask,
    _create_empty_block_mask,
    _create_sparse_block_from_block_mask as _create_sparse_block_from_block_mask,
    _dense_to_ordered as _dense_to_ordered,
    _get_mod_type as _get_mod_type,
    _identity as _identity,
    _mask_mod_signature,
    _ModificationType as _ModificationType,
    _ordered_to_dense as _ordered_to_dense,
    _positions,
    _round_up_to_multiple as _round_up_to_multiple,
    _score_mod_signature,
    _sliced_mask_mod_error,
    _transpose_ordered as _transpose_ordered,
    _vmap_for_bhqkv,
    and_masks,
    create_block_mask,
    create_mask,
    noop_mask,
    or_masks,
)

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = False  # programs set it to debug; nothing is compiled anyway
_WARNINGS_SHOWN: set[str] = set()
_BACKENDS = ("AUTO", "TRITON", "FLASH", "TRITON_DECODE")
# PyTorch's, and the accelerator that a device of its own stands for there
_DEVICES = ("cuda", "cpu", "xpu", "hpu", "mps", "npu")


class FlexKernelOptions(TypedDict, total=False):
    """Options of kernels. They change no results; here they are checked, and change nothing else either."""

    num_warps: int
    num_stages: int
    BLOCK_M: int
    BLOCK_N: int
    BLOCK_M1: int
    BLOCK_N1: int
    BLOCK_M2: int
    BLOCK_N2: int
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    BLOCKS_ARE_CONTIGUOUS: bool
    WRITE_DQ: bool
    FORCE_USE_FLEX_ATTENTION: bool
    USE_TMA: bool
    kpack: int
    matrix_instr_nonkdim: int
    waves_per_eu: int
    BACKEND: Literal["AUTO", "TRITON", "FLASH", "TRITON_DECODE"]


class AuxRequest(NamedTuple):
    """Which further results are asked for: the logarithms of the rows' sums, and their greatest scores."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """Further results; None for what was not asked for."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def _warn_once(warning_id: str, message: str, category: type[Warning] = UserWarning) -> None:
    if warning_id not in _WARNINGS_SHOWN:
        warnings.warn(message, category, stacklevel=3)
        _WARNINGS_SHOWN.add(warning_id)


# --------------------------------------------------------------------------------------------------------------- checks
def _check_inputs(query: Tensor, key: Tensor, value: Tensor) -> None:
    if query.is_nested or key.is_nested or value.is_nested:
        raise NotImplementedError(
            "flex_attention does not support NestedTensor inputs, including "
            "torch.compile(flex_attention) with jagged NestedTensor inputs. "
            "Convert inputs to dense tensors before calling flex_attention."
        )
    if query.device != key.device or query.device != value.device:
        raise ValueError(
            f"Expected query, key, and value to have the same device type, but got query.device: {query.device}, "
            f"key.device: {key.device}, and value.device: {value.device} instead."
        )
    if query.dim() < 2 or key.dim() < 2 or value.dim() < 2:
        raise ValueError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{query.dim()}, key.dim: {key.dim()} and value.dim: {value.dim()} instead."
        )
    if query.size(-1) != key.size(-1):
        raise ValueError(
            f"Expect query and key/value to have the same embedding dimension "
            f"but got E={query.size(-1)} and E={key.size(-1)}."
        )
    if query.device.type == "cpu" and (query.requires_grad or key.requires_grad or value.requires_grad):
        raise NotImplementedError(
            "FlexAttention does not support backward on CPU. Please set the input requires_grad to False or use another device."
        )
    if query.device.type not in _DEVICES:
        raise ValueError(
            "FlexAttention is only supported on CUDA, CPU, HPU, or MPS devices. "
            f"Found input tensors on {query.device.type} device."
        )
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")


def _check_sizes(query: Tensor, key: Tensor, block_mask: BlockMask | None, enable_gqa: bool) -> None:
    heads, shared = query.size(1), key.size(1)
    if not enable_gqa and heads != shared:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={shared}. "
            f"Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and heads % shared != 0:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={shared}."
        )
    if query.size(0) == key.size(0):
        return
    sizes = f"Bq={query.size(0)}, "
    if block_mask is None:
        raise ValueError(
            "Expect query and key/value to have the same batch size, or non-none block_mask, "
            f"but got block_mask=None, {sizes}and Bkv={key.size(0)}."
        )
    if block_mask.kv_num_blocks.size(0) != query.size(0):
        raise ValueError(
            "Expect query and key/value to have the same batch size, or block_mask and query to have the same batch size, "
            f"but got {sizes}Bkv={key.size(0)}, B_block_mask={block_mask.kv_num_blocks.size(0)}."
        )


def _check_lengths(query: Tensor, key: Tensor, block_mask: BlockMask) -> None:
    if getattr(block_mask, "mask_mod", None) is _sliced_mask_mod_error:
        raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")
    if tuple(block_mask.BLOCK_SIZE) == (_LARGE_SPARSE_BLOCK_SIZE, _LARGE_SPARSE_BLOCK_SIZE):
        return
    rows, columns = block_mask.shape[-2:]
    lengths = f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={query.size(-2)} and kv_len={key.size(-2)}. "
    if query.size(-2) > rows or key.size(-2) > columns:
        raise ValueError(
            f"{lengths}As the block mask was created for a smaller length than you're using it for, you likely need to create a new block mask."
        )
    if query.size(-2) < rows or key.size(-2) < columns:
        raise ValueError(
            f"{lengths}As the block mask was created for a larger length than you're using it for, you can either 1. create a new block mask "
            "with the correct length, or 2. 'adjust' the existing block mask to the correct length by calling block_mask._adjust(q_len, kv_len). "
            "This essentially 'crops' the block mask to the upper left corner, which does not work for all mask_mods!"
        )


def _check_options(query: Tensor, options: dict[str, Any], max_scores: bool) -> None:
    backend = options.get("BACKEND", "AUTO")
    if "BACKEND" in options and options.get("FORCE_USE_FLEX_ATTENTION", False):
        raise RuntimeError(
            "BACKEND cannot be combined with legacy FORCE_USE_FLEX_ATTENTION. "
            "BACKEND supersedes the legacy knob; please drop FORCE_USE_FLEX_ATTENTION "
            "and only specify the desired BACKEND."
        )
    if backend not in _BACKENDS:
        raise ValueError(f"Invalid BACKEND value '{backend}'. Must be one of {_BACKENDS}")
    for name in ("OUTPUT_LOGSUMEXP", "OUTPUT_MAX"):
        if name in options:
            raise AssertionError(f"{name} must not be in kernel_options")
    if max_scores and backend == "FLASH":
        raise NotImplementedError(
            "Returning max scores is not supported with BACKEND='FLASH'. "
            "Use return_aux=AuxRequest(lse=True) or omit max_scores."
        )
    if max_scores and query.device.type == "cpu":
        raise NotImplementedError("Returning max scores is not supported on CPU/MPS.")


# ------------------------------------------------------------------------------------------------------------ attention
def _laid_out_like(out: Tensor, query: Tensor) -> Tensor:
    """`out` with its dimensions in the order in which those of `query` lie in memory, but the last one innermost."""
    strides = query.stride()
    order = sorted(range(out.dim()), key=lambda dim: (dim != out.dim() - 1, strides[dim], -dim))
    wanted, step = [0] * out.dim(), 1
    for dim in order:
        wanted[dim] = step
        step *= out.size(dim)
    if out.stride() == tuple(wanted):
        return out
    return out.new_empty_strided(out.shape, wanted).copy_(out)


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: _score_mod_signature | None,
    mask_mod: _mask_mod_signature,
    scale: float,
) -> tuple[Tensor, Tensor]:
    """(attention, all scores), with scores of float32 unless the query is of float64."""
    precision = torch.float64 if query.dtype == torch.float64 else torch.float32
    groups, batches = query.size(1) // key.size(1), (query.size(0), key.size(0))
    if groups > 1:
        key, value = (tensor.repeat_interleave(groups, dim=1) for tensor in (key, value))
    if batches[0] != batches[1] and not (batches[0] > 1 and batches[1] == 1):
        raise RuntimeError(f"Bq and Bkv must broadcast. Got Bq={batches[0]} and Bkv={batches[1]}")
    key, value = (tensor.expand(batches[0], *tensor.shape[1:]) for tensor in (key, value))
    scores = (query.to(precision) @ key.to(precision).transpose(-2, -1)) * scale
    if scores.size(-1) == 0:  # PyTorch always looks for the greatest ones
        raise IndexError("max(): Expected reduction dim 3 to have non-zero size.")
    places = _positions(scores.shape, scores.device)
    if score_mod is not None:
        scores = _vmap_for_bhqkv(score_mod, prefix=(0,))(scores, *places)
    if (
        score_mod is not None or mask_mod is not noop_mask
    ):  # scores of a function may be integers, which numbers of a mask turn into floats
        scores = torch.where(_vmap_for_bhqkv(mask_mod, prefix=())(*places), scores, -math.inf)
    weights = torch._safe_softmax(scores, dim=-1)
    return _laid_out_like(weights.to(query.dtype) @ value.to(query.dtype), query), scores


def _log_sums(scores: Tensor) -> Tensor:
    """The logarithms of the rows' sums of exponentials. A row of which nothing is seen has -inf, and takes no part in gradients."""
    unseen = (scores == -math.inf).all(dim=-1)
    return torch.where(unseen, -math.inf, torch.where(unseen.unsqueeze(-1), 0.0, scores).logsumexp(dim=-1))


def _without_autocast(query: Tensor, key: Tensor, value: Tensor) -> tuple[AbstractContextManager, list[Tensor]]:
    """Under autocast the inputs are cast, and what is computed of them is not."""
    kind, given = query.device.type, [query, key, value]
    if not torch.is_autocast_enabled(kind):
        return nullcontext(), given
    dtype = torch.get_autocast_dtype(kind)
    cast = [t.to(dtype) if t.is_floating_point() and t.dtype != torch.float64 else t for t in given]
    return torch.autocast(kind, enabled=False), cast


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: _score_mod_signature | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attention of (batch, heads, length, size) whose scores `score_mod(score, batch, head, query, key)` changes.

    Args:
        score_mod: takes a score and four numbers as tensors without dimensions. Tensors that it captures get gradients.
        block_mask: its `mask_mod` says what is seen.
        scale: of the scores before `score_mod`; one over the root of the size if None.
        enable_gqa: several heads of the query share one of key and value.
        return_lse: give the logarithms of the rows' sums of exponentials as well. `return_aux` takes its place.
        kernel_options: checked, without effect.
        return_aux: give an `AuxOutput` of what is asked for as well.

    Raises:
        NotImplementedError: on CPUs for inputs that require gradients and for greatest scores, as PyTorch; for other than four dimensions.
        ValueError: for sizes, devices or lengths that do not go together.
        RuntimeError: for a mask that was cut, or is elsewhere than the query.
        IndexError: when there are no keys.
    """
    _check_inputs(query, key, value)
    _check_sizes(query, key, block_mask, enable_gqa)
    if block_mask is None:
        block_mask = _create_empty_block_mask(query, key)
    _check_lengths(query, key, block_mask)
    if query.device != block_mask.kv_num_blocks.device:
        raise RuntimeError(
            "Expect q/k/v and block_mask to be on the same device "
            f"but got {query.device} and {block_mask.kv_num_blocks.device}."
        )
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. "
            "return_lse is deprecated, please use return_aux=AuxRequest(lse=True) instead."
        )
    if return_lse:
        _warn_once(
            "deprecated_return_lse",
            "return_lse is deprecated and will be removed in v2.10. "
            "Please use return_aux=AuxRequest(lse=True) instead.",
            category=FutureWarning,
        )
    asked = AuxRequest() if return_aux is None else return_aux
    _check_options(query, dict(kernel_options or {}), asked.max_scores)
    if scale is None:
        scale = 1.0 / math.sqrt(query.size(-1))
    context, (query, key, value) = _without_autocast(query, key, value)
    with context:
        out, scores = _attend(query, key, value, score_mod, block_mask.mask_mod, scale)
        lse = _log_sums(scores) if return_lse or asked.lse else None
    if return_aux is None:
        return (out, lse) if return_lse else out
    return out, AuxOutput(lse=lse, max_scores=scores.amax(dim=-1) if asked.max_scores else None)
