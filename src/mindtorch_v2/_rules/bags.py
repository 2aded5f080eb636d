"""Rules of bags of embeddings and of segments."""

from __future__ import annotations

from typing import Any

from .. import _dtype as _d
from ._common import shape_text
from .spec import Spec, rule

_WEIGHTS = (_d.float16, _d.bfloat16, _d.float32, _d.float64)
SUM, MEAN, MAX = range(3)


def _check_bag(weight: Any, per_sample_weights: Any, indices: Any, offsets: Any, mode: int) -> None:
    where = "(while checking arguments for embedding_bag)"
    if weight.dim() != 2:
        raise RuntimeError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if indices.dim() not in (1, 2):
        raise RuntimeError(f"input has to be a 1D or 2D Tensor, but got Tensor of dimension {indices.dim()}")
    if offsets.dim() != 1:
        raise RuntimeError(f"offsets has to be a 1D Tensor, but got Tensor of dimension {offsets.dim()}")
    for number, name, tensor in ((1, "indices", indices), (1, "offsets", offsets)):
        if tensor.dtype not in (_d.int32, _d.int64):
            raise RuntimeError(
                f"Expected tensor for argument #{number} '{name}' to have one of the following scalar types: Long, Int; "
                f"but got torch.{tensor.dtype.cpp}Tensor instead {where}"
            )
    if weight.dtype not in _WEIGHTS:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, Float, "
            f"Double; but got torch.{weight.dtype.cpp}Tensor instead {where}"
        )
    if not SUM <= mode <= MAX:
        raise RuntimeError("`mode` must be sum, mean, or max.")
    if per_sample_weights is not None:
        if mode != SUM:
            raise RuntimeError("embedding_bag: per_sample_weights only supported with mode='sum'")
        if per_sample_weights.dtype is not weight.dtype:
            raise RuntimeError(
                "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
                f"'per_sample_weights'; but type torch.{weight.dtype.cpp}Tensor does not equal "
                f"torch.{per_sample_weights.dtype.cpp}Tensor {where}"
            )
        if per_sample_weights.dim() != 1 or per_sample_weights.numel() != indices.numel():
            raise RuntimeError(
                f"embedding_bag: expected a weight for each of the indices {shape_text(indices.shape)}, but got "
                f"per_sample_weights of shape {shape_text(per_sample_weights.shape)}"
            )


@rule(flops="numel(indices) * size(weight, 1)")
def embedding_bag(
    weight: Any,
    per_sample_weights: Any = None,
    indices: Any = None,
    offsets: Any = None,
    mode: int = SUM,
    include_last_offset: bool = False,
    padding_idx: int = -1,
    forward_only: bool = False,
) -> tuple[Spec, Spec, Spec, Spec]:
    """(bags [bags, width], the bag of each index, the sizes of the bags, where the maxima were).

    Plain sums of the types that have a kernel of their own in PyTorch leave the bags of the indices away, as there.
    """
    _check_bag(weight, per_sample_weights, indices, offsets, mode)
    bags = offsets.shape[0]
    if include_last_offset:
        if bags < 1:
            raise RuntimeError("include_last_offset: number of offset should be at least 1")
        bags -= 1
    index = _d.int64 if _d.int64 in (indices.dtype, offsets.dtype) else _d.int32
    plain = mode == SUM and padding_idx < 0 and weight.dtype is not _d.float64 and weight.stride()[1] == 1
    if plain and per_sample_weights is not None:
        plain = per_sample_weights.stride()[0] == 1
    counts = (offsets.shape[0],) if forward_only and mode == SUM else (bags,)
    of_maxima = (bags, weight.shape[1]) if mode == MAX else counts
    return (
        Spec((bags, weight.shape[1]), weight.dtype, None, weight.dtype.opmath),
        Spec((0,) if plain else (indices.shape[0],), index),
        Spec(counts, index),
        Spec(of_maxima, index),
    )


@rule(flops="numel(grad)")
def embedding_bag_backward(grad: Any, per_sample_weights: Any, indices: Any, num_weights: int) -> Spec:
    """The gradient of the weights: [num_weights, width]."""
    if grad.dim() != 2:
        raise RuntimeError(f"expected a gradient of two dimensions, but got {shape_text(grad.shape)}")
    return Spec((int(num_weights), grad.shape[1]), grad.dtype, None, grad.dtype.opmath)
