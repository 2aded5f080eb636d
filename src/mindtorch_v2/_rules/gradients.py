"""Gradients whose shape another rule gives: of views, of resizing, of losses of classes, of embeddings. They refuse a gradient that does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _dtype as _d
from . import slicing
from ._common import as_list, broadcast, check_dtype, not_implemented, shape_text, type_name
from .activations import glu
from .geometry import Shape, contiguous_strides, format_strides
from .loss import nll_loss2d_forward, nll_loss_forward
from .matmul import cdist
from .nn import suggested_strides
from .spec import Spec, rule


class _Whole:
    """What a view's gradient is a gradient of, as far as the rules of views look at it: a contiguous tensor of a size."""

    def __init__(self, size: Sequence[int]):
        self.shape = tuple(map(int, as_list(size)))

    def dim(self) -> int:
        return len(self.shape)

    def stride(self) -> Shape:
        return contiguous_strides(self.shape)

    def storage_offset(self) -> int:
        return 0


def check_expands(shape: Sequence[int], target: Sequence[int]) -> None:
    """RuntimeError unless a tensor of `shape` expands to `target`."""
    lead = len(target) - len(shape)
    if lead < 0:
        raise RuntimeError(
            f"expand: the number of sizes provided ({len(target)}) must be greater or equal to the number of dimensions "
            f"in the tensor ({len(shape)})"
        )
    for at, length in enumerate(shape):
        wanted = target[lead + at]
        if length not in (1, wanted):
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing size ({length}) at non-singleton "
                f"dimension {lead + at}.  Target sizes: {shape_text(target)}.  Tensor sizes: {shape_text(shape)}"
            )


@rule(flops="0", batch="back_to_view")
def view_backward(grad: Any, size: Sequence[int], view: str, *arguments: Any) -> Spec:
    """A contiguous tensor of the size, zero but for the part that the view (select, slice, diagonal, unfold) shows; grad
    expands to that part."""
    whole = _Whole(size)
    part = getattr(slicing, view)(whole, *arguments)
    if view == "unfold" and tuple(grad.shape) != tuple(part.shape):
        raise RuntimeError(
            f"unfold_backward: expected a gradient of shape {shape_text(part.shape)}, but got {shape_text(grad.shape)}"
        )
    check_expands(grad.shape, part.shape)
    return Spec(whole.shape, grad.dtype)


@rule(flops="0")
def masked_scatter_backward(grad: Any, mask: Any, sizes: Sequence[int]) -> Spec:
    """The gradient of masked_scatter's source, of the given size: grad where the mask is, one after the other. The two
    broadcast."""
    if mask.dtype is not _d.bool:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    broadcast(grad.shape, mask.shape)
    return Spec(tuple(as_list(sizes)), grad.dtype)


@rule(flops="0", batch="batches")
def upsample_backward(
    grad: Any, input_size: Sequence[int], output_size: Sequence[int], contiguous: bool = False, op: str = ""
) -> Spec:
    """The gradient of `upsample`: input_size, contiguous or in grad's format. grad has input_size's batch and channels
    and output_size. op: one whose kernel knows wide floating types only."""
    shape = tuple(map(int, input_size))
    if len(shape) != len(as_list(output_size)) + 2:
        raise RuntimeError(
            f"It is expected input_size equals to {len(as_list(output_size)) + 2}, but got size {len(shape)}"
        )
    wanted = (*shape[:2], *map(int, as_list(output_size)))
    if grad.dim() != len(wanted):
        raise RuntimeError(
            f"Expected grad_output to be a tensor of dimension {len(wanted)} but got: dimension {grad.dim()}"
        )
    for at, (length, found) in enumerate(zip(wanted, grad.shape)):
        if length != found:
            raise RuntimeError(
                f"Expected grad_output to have the same shape as output; output.size({at}) = {length} but got "
                f"grad_output.size({at}) = {found}"
            )
    if op and (not grad.dtype.is_floating_point or grad.dtype.itemsize < 4):
        raise not_implemented(f"{op[1:]}_backward_cpu", grad.dtype)
    return Spec(shape, grad.dtype, None if contiguous else suggested_strides(grad, shape), grad.dtype.opmath)


@rule(flops="0")
def nll_loss_backward(
    self: Any, grad: Any, target: Any, weight: Any, reduction: int, total_weight: Any, spatial: bool = False
) -> Spec:
    """self's shape, contiguous; the other arguments are as the loss (of batches of images: spatial) takes and gives them."""
    loss, _ = (nll_loss2d_forward if spatial else nll_loss_forward)(self, target, weight, reduction)
    if tuple(grad.shape) != loss.shape and (reduction == 0 or grad.numel() != 1):
        raise RuntimeError(
            f"Expected a gradient of the loss's shape {shape_text(loss.shape)}, but got {shape_text(grad.shape)}"
        )
    if total_weight.numel() != 1:
        raise RuntimeError(
            f"Expected total_weight to be a single element tensor, but got {total_weight.numel()} elements"
        )
    return Spec(tuple(self.shape), self.dtype)


@rule(flops="numel(out)", batch="leading")
def cdist_backward(x1: Any, x2: Any, grad: Any, distances: Any) -> Spec:
    """The gradient of x1, from the distances and their gradient."""
    wanted = cdist(x1, x2).shape
    if tuple(grad.shape) != tuple(wanted):
        raise RuntimeError(f"expected a gradient of shape {shape_text(wanted)}, but got {shape_text(grad.shape)}")
    if tuple(distances.shape) != tuple(wanted):
        raise RuntimeError(f"expected distances of shape {shape_text(wanted)}, but got {shape_text(distances.shape)}")
    return Spec(tuple(x1.shape), x1.dtype, format_strides(x1), x1.dtype.opmath)


@rule(flops="numel(out)", batch="along")
def glu_backward(self: Any, grad: Any, dim: int) -> Spec:
    """The gradient of a gate's input, contiguous; grad is half as long along dim."""
    check_dtype(self.dtype, "floating_real", "glu_backward_cpu")
    if grad.dtype is not self.dtype:
        raise RuntimeError(f"Found dtype {grad.dtype.cpp} but expected {self.dtype.cpp}")
    wanted = glu(self, dim).shape
    if tuple(grad.shape) != tuple(wanted):
        raise RuntimeError(f"expected a gradient of shape {shape_text(wanted)}, but got {shape_text(grad.shape)}")
    return Spec(tuple(self.shape), self.dtype, None, self.dtype.opmath)


@rule(flops="numel(out)")
def ctc_loss_backward(log_probs: Any) -> Spec:
    """log_probs' shape, contiguous. NotImplementedError for other dtypes than ctc_loss takes."""
    if log_probs.dtype not in (_d.float32, _d.float64):
        raise not_implemented("ctc_loss_backward_cpu", log_probs.dtype)
    return Spec(tuple(log_probs.shape), log_probs.dtype, None, log_probs.dtype)


@rule(flops="0")
def embedding_renorm(self: Any, indices: Any) -> Spec:
    """self, whose rows that int32 or int64 indices name are scaled in place."""
    if indices.dtype not in (_d.int32, _d.int64):
        raise RuntimeError(
            "Expected tensor for argument #2 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{type_name(indices.dtype)} instead (while checking arguments for embedding_renorm_)"
        )
    if self.dim() != 2:
        raise RuntimeError(
            f"Expected 2-dimensional tensor, but got {self.dim()}-dimensional tensor for argument #1 'self' (while checking "
            "arguments for embedding_renorm_)"
        )
    return Spec(tuple(self.shape), self.dtype, format_strides(self))
