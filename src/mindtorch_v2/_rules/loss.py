"""Rules of losses. reduction: 0 none, 1 mean, 2 sum."""

from __future__ import annotations

from typing import Any

from .. import _dtype as _d
from ._common import broadcast, check_dtype, check_undifferentiable, not_implemented, shape_text
from .geometry import format_strides
from .pointwise import elementwise
from .promotion import check_can_cast
from .spec import Spec, rule


def _reduced(pointwise: Spec, reduction: int) -> Spec:
    if reduction == 0:
        return pointwise
    return Spec((), pointwise.dtype, None, pointwise.compute)


@rule(flops="3 * numel(self)", batch="loss")  # difference, its function, sum
def pointwise_loss(
    self: Any,
    target: Any,
    reduction: int = 1,
    kernel: str | None = "mse_cpu",
    own_dtype: bool = False,
    op: str = "",
    beta: float | None = None,
    delta: float | None = None,
) -> Spec:
    """Losses of pairs that broadcast and promote.

    kernel: its name in messages; None of what PyTorch composes in self's memory, so that neither shape nor dtype may be others. own_dtype: the result
    has self's dtype.
    """
    if beta is not None and beta < 0:
        raise RuntimeError(f"{op} does not support negative values for beta.")
    if delta is not None and delta <= 0:
        raise RuntimeError(f"{op} does not support non-positive values for delta.")
    spec = elementwise(self, target)
    if own_dtype and spec.dtype is not self.dtype:
        check_can_cast(spec.dtype, self.dtype)
        spec = Spec(spec.shape, self.dtype, spec.stride, spec.compute)
    if kernel is not None:
        check_dtype(spec.dtype, "floating_real", kernel)
    elif spec.dtype.category < _d.CATEGORY_FLOATING:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {spec.dtype.cpp}")
    elif spec.shape != tuple(self.shape):
        raise RuntimeError(
            f"output with shape {shape_text(self.shape)} doesn't match the broadcast shape {shape_text(spec.shape)}"
        )
    return _reduced(spec, reduction)


@rule(flops="7 * numel(self)", batch="loss")
def binary_cross_entropy(
    self: Any, target: Any, weight: Any = None, reduction: int = 1, op: str = "binary_cross_entropy"
) -> Spec:
    """Probabilities and targets of one floating dtype."""
    check_undifferentiable(op, weight=weight)
    if target.dtype is not self.dtype:
        raise RuntimeError(f"Found dtype {target.dtype.cpp} but expected {self.dtype.cpp}")
    check_dtype(self.dtype, "floating_real", op)
    shape = broadcast(self.shape, target.shape)
    if weight is not None:
        shape = broadcast(shape, weight.shape)
    stride = format_strides(self) if shape == tuple(self.shape) else None
    return _reduced(Spec(shape, self.dtype, stride, self.dtype.opmath), reduction)


@rule(flops="4 * numel(self)")
def binary_cross_entropy_backward(self: Any, target: Any, weight: Any, grad: Any) -> Spec:
    """The gradient of self, of its shape; all of one floating dtype."""
    for tensor in (target, weight, grad):
        if tensor is not None and tensor.dtype is not self.dtype:
            raise RuntimeError(f"Found dtype {tensor.dtype.cpp} but expected {self.dtype.cpp}")
    check_dtype(self.dtype, "floating_real", "binary_cross_entropy_backward")
    return elementwise(self, target, grad, where=weight)


@rule(flops="7 * numel(self)", batch="loss")
def bce_with_logits(self: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: int = 1) -> Spec:
    """Logits and floating targets of one shape, which promote; weight and pos_weight broadcast to it."""
    check_undifferentiable("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    if not self.dtype.is_floating_point:
        raise not_implemented("log_sigmoid_cpu", self.dtype)
    joined = broadcast(target.shape, self.shape)
    if joined != tuple(target.shape):
        raise RuntimeError(
            f"output with shape {shape_text(target.shape)} doesn't match the broadcast shape {shape_text(joined)}"
        )
    if not target.dtype.is_floating_point:
        raise RuntimeError(f"result type {self.dtype.cpp} can't be cast to the desired output type {target.dtype.cpp}")
    if pos_weight is not None:
        weighted = broadcast(target.shape, pos_weight.shape)
        if weighted != tuple(target.shape):
            raise RuntimeError(
                f"output with shape {shape_text(target.shape)} doesn't match the broadcast shape {shape_text(weighted)}"
            )
    spec = elementwise(self, target, result=target.dtype)
    if weight is not None:
        shape = broadcast(joined, weight.shape)
        spec = Spec(shape, spec.dtype, spec.stride if shape == joined else None, spec.compute)
    return _reduced(spec, reduction)


def _check_target(target: Any) -> None:
    if target.dtype not in (_d.int64, _d.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target.dtype.cpp}")


def _check_classes(self: Any, target: Any, weight: Any, classes: int, kernel: str = "nll_loss_out_frame") -> None:
    if weight is not None and (weight.dim() != 1 or weight.numel() != classes):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            "shape: "
            f"{shape_text(weight.shape)}"
        )
    if not self.dtype.is_floating_point:
        raise not_implemented(kernel, self.dtype)
    _check_target(target)
    if weight is not None and weight.dtype is not self.dtype:
        raise RuntimeError(f"expected scalar type {self.dtype.cpp} but found {weight.dtype.cpp}")


@rule(flops="2 * numel(target)")
def nll_loss_forward(
    self: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100
) -> tuple[Spec, Spec]:
    """(loss, total weight): log probabilities [batch, classes] or [classes], int64 or uint8 targets [batch] or []."""
    check_undifferentiable("nll_loss_forward", weight=weight)
    if self.dim() not in (1, 2):
        raise RuntimeError("input tensor should be 1D or 2D")
    if target.dim() > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    _check_target(target)
    if self.dim() == 1 and target.dim() == 1 and target.shape[0] != 1:
        raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {target.shape[0]}")
    if self.dim() == 2 and not target.dim():
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if self.dim() == 2 and self.shape[0] != target.shape[0]:
        raise RuntimeError(f"size mismatch (got input: {shape_text(self.shape)}, target: {shape_text(target.shape)})")
    _check_classes(self, target, weight, self.shape[-1])
    shape = (self.shape[0],) if reduction == 0 and self.dim() == 2 else ()
    return Spec(shape, self.dtype), Spec((), self.dtype)  # of half types the kernel takes what it picks into float32


@rule(flops="2 * numel(target)")
def nll_loss2d_forward(
    self: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100
) -> tuple[Spec, Spec]:
    """(loss, total weight): log probabilities [batch, classes, h, w], int64 or uint8 targets [batch, h, w]."""
    check_undifferentiable("nll_loss2d_forward", weight=weight)
    if target.dim() != 3:
        raise RuntimeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {target.dim()}"
        )
    if self.dim() != 4:
        raise RuntimeError(
            f"only batches of spatial inputs supported (4D tensors), but got input of dimension: {self.dim()}"
        )
    if weight is not None and weight.numel() != self.shape[1]:
        raise RuntimeError("weight tensor should be defined either for all or no classes")
    if (self.shape[0], *self.shape[2:]) != tuple(target.shape):
        raise RuntimeError(f"size mismatch (got input: {shape_text(self.shape)} , target: {shape_text(target.shape)}")
    _check_classes(self, target, weight, self.shape[1], "nll_loss2d_forward_out_frame")
    shape = tuple(target.shape) if reduction == 0 else ()
    return Spec(shape, self.dtype), Spec((), self.dtype)  # of half types the kernel takes what it picks into float32


@rule(flops="6 * numel(out[1])")  # each state adds three predecessors in the logarithm
def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0
) -> tuple[Spec, Spec]:
    """(loss [batch], log_alpha [batch, time, 2 * longest target + 1]); the lengths are tensors or lists of ints.

    log_probs is [time, batch, labels]; targets are [batch, length], or one after the other.
    """
    if log_probs.dim() != 3:
        raise RuntimeError(f"log_probs must be 3-dimensional, but got {log_probs.dim()} dimensions")
    if not log_probs.dtype.is_floating_point or log_probs.dtype not in (_d.float32, _d.float64):
        raise not_implemented("ctc_loss_cpu", log_probs.dtype)
    time, batch, labels = log_probs.shape
    if not 0 <= blank < labels:
        raise RuntimeError("blank must be in label range")
    lengths = {}
    for name, given in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        values = given.tolist() if hasattr(given, "tolist") else list(given)
        lengths[name] = [values] if isinstance(values, int) else values
        if len(lengths[name]) != batch:
            raise RuntimeError(f"{name} must be of size batch_size")
    source = " (while checking arguments for ctc_loss_allocate_outputs)"
    for value in lengths["input_lengths"]:
        if value > time:
            raise RuntimeError(f"Expected input_lengths to have value at most {time}, but got value {value}{source}")
    longest = max(lengths["target_lengths"], default=0)
    if targets.dim() == 2 and targets.shape[1] < longest:
        raise RuntimeError(
            f"Expected tensor to have size at least {longest} at dimension 1, but got size {targets.shape[1]} for "
            "argument #2 "
            f"'targets'{source}"
        )
    if targets.dim() == 2 and targets.shape[0] != batch:
        raise RuntimeError(
            f"Expected tensor to have size {batch} at dimension 0, but got size {targets.shape[0]} for argument #2 "
            f"'targets'{source}"
        )
    if targets.dim() == 1 and targets.shape[0] != sum(lengths["target_lengths"]):
        raise RuntimeError(
            f"Expected tensor to have size {sum(lengths['target_lengths'])} at dimension 0, but got size "
            f"{targets.shape[0]} for argument #2 'targets'{source}"
        )
    if targets.dim() not in (1, 2):
        raise RuntimeError("targets should be either 1 or 2-dimensional")
    compute = log_probs.dtype.opmath
    return Spec((batch,), log_probs.dtype, None, compute), Spec((batch, time, 2 * longest + 1), log_probs.dtype)
