"""Rules of bags of embeddings and of segments."""

from __future__ import annotations

from typing import Any

from .. import _dtype as _d
from ._common import not_implemented, shape_text, wrap_dim
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

    Sums without padding of the types that have a kernel of their own in PyTorch leave the bags of the indices away, as there (where rows have no gaps).
    """
    _check_bag(weight, per_sample_weights, indices, offsets, mode)
    bags = offsets.shape[0]
    if include_last_offset:
        if bags < 1:
            raise RuntimeError("include_last_offset: number of offset should be at least 1")
        bags -= 1
    index = _d.int64 if _d.int64 in (indices.dtype, offsets.dtype) else _d.int32
    plain = mode == SUM and padding_idx < 0 and weight.dtype is not _d.float64
    counts = (offsets.shape[0],) if forward_only and mode == SUM else (bags,)
    of_maxima = (bags, weight.shape[1]) if mode == MAX else counts
    return (
        Spec((bags, weight.shape[1]), weight.dtype, None, weight.dtype.opmath),
        Spec((0,) if plain else (indices.shape[0],), index),
        Spec(counts, index),
        Spec(of_maxima, index),
    )


@rule(flops="numel(grad)")
def embedding_bag_backward(
    grad: Any,
    per_sample_weights: Any,
    indices: Any,
    num_weights: int,
    offset2bag: Any = None,
    bag_size: Any = None,
    maxima: Any = None,
    mode: int = SUM,
) -> Spec:
    """The gradient of the weights: [num_weights, width]; the other arguments are as the forward operator takes and gives them."""
    if grad.dim() != 2:
        raise RuntimeError(f"expected a gradient of two dimensions, but got {shape_text(grad.shape)}")
    for tensor in (indices, offset2bag, bag_size, maxima):
        if tensor is not None and tensor.dtype not in (_d.int32, _d.int64):
            raise RuntimeError(
                "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
                f"torch.{tensor.dtype.cpp}Tensor instead (while checking arguments for embedding_bag)"
            )
    wanted = (
        ("bags of the indices", offset2bag, tuple(indices.shape)),
        ("sizes of the bags", bag_size, (grad.shape[0],)),
        ("places of the maxima", maxima if mode == MAX else None, tuple(grad.shape)),
    )
    for name, tensor, shape in wanted:
        if tensor is not None and tuple(tensor.shape) != shape:
            raise RuntimeError(f"expected the {name} {shape_text(shape)}, but got {shape_text(tensor.shape)}")
    return Spec((int(num_weights), grad.shape[1]), grad.dtype, None, grad.dtype.opmath)


_REDUCTIONS = ("sum", "mean", "max", "min", "prod", "amax", "amin")


@rule(flops="numel(data)")
def segment_reduce(
    data: Any, reduce: str, lengths: Any = None, indices: Any = None, offsets: Any = None, axis: int = 0
) -> Spec:
    """A sum, mean, maximum, minimum or product for each segment along `axis`: the last dimension of lengths, or of offsets."""
    at = wrap_dim(axis, data.dim())
    if reduce not in _REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    given = offsets if offsets is not None else lengths
    name = "lengths" if offsets is None else "offsets"
    if given is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if data.dim() < given.dim():
        raise RuntimeError(f"segment_reduce(): data has fewer dimensions than {name}")
    if at != given.dim() - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {name} but got {at}.")
    for dim in range(at):
        if given.shape[dim] != data.shape[dim]:
            raise RuntimeError(
                f"segment_reduce(): Expected {name} to have the sizes of data before axis, but got {shape_text(given.shape)} "
                f"for data of {shape_text(data.shape)}"
            )
    if given.dtype not in (_d.int32, _d.int64):
        raise not_implemented("_segment_reduce_lengths_cpu_kernel1", given.dtype)
    if not data.dtype.is_floating_point:
        raise not_implemented("_segment_reduce_cpu", data.dtype)
    segments = given.shape[-1] - (offsets is not None)
    return Spec((*data.shape[:at], segments, *data.shape[at + 1 :]), data.dtype, None, data.dtype.opmath)


@rule(flops="2 * numel(data)")
def segment_reduce_backward(
    grad: Any, output: Any, data: Any, reduce: str = "sum", lengths: Any = None, offsets: Any = None, axis: int = 0
) -> Spec:
    """The gradient of the data."""
    wanted = segment_reduce(data, reduce, lengths, None, offsets, axis).shape
    if tuple(output.shape) != wanted:
        raise RuntimeError(f"expected a result of shape {shape_text(wanted)}, but got {shape_text(output.shape)}")
    if tuple(grad.shape) != tuple(output.shape):
        raise RuntimeError(f"expected a gradient of shape {shape_text(output.shape)}, but got {shape_text(grad.shape)}")
    return Spec(tuple(data.shape), data.dtype, None, data.dtype.opmath)
