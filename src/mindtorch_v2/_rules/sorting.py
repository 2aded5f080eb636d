"""Rules of sorting, selection by rank, sampling and counting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _dtype as _d
from .._warnings import warn_once
from ._common import check_dtype, is_tensor, not_implemented, shape_text, wrap_dim, wrap_existing_dim
from .geometry import format_strides, numel
from .spec import Spec, rule


@rule(flops="0", batch="along")
def sort(self: Any, dim: int = -1) -> tuple[Spec, Spec]:
    """(values, int64 indices) in self's memory order. RuntimeError for complex numbers."""
    wrap_dim(dim, self.dim())
    if self.dtype.is_complex:
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    shape, stride = tuple(self.shape), format_strides(self)
    return Spec(shape, self.dtype, stride, self.dtype.opmath), Spec(shape, _d.int64, stride)


@rule(flops="0", batch="along")
def argsort(self: Any, dim: int = -1) -> Spec:
    """The int64 indices of `sort`."""
    values, indices = sort(self, dim)
    return Spec(indices.shape, _d.int64, indices.stride, values.compute)


@rule(flops="0", batch="along")
def topk(self: Any, k: int, dim: int = -1) -> tuple[Spec, Spec]:
    """(values, int64 indices) of the k largest or smallest along `dim`: contiguous."""
    at = wrap_dim(dim, self.dim())
    length = self.shape[at] if self.dim() else 1
    if not 0 <= k <= length:
        raise RuntimeError("selected index k out of range")
    if self.dtype.is_complex:
        raise RuntimeError(" topk does not support complex dtypes on CPU")
    if self.dtype is _d.bool:
        raise RuntimeError("topk does not support bool dtypes on CPU")
    shape = list(self.shape)
    if shape:
        shape[at] = int(k)
    return Spec(tuple(shape), self.dtype, None, self.dtype.opmath), Spec(tuple(shape), _d.int64)


@rule(flops="0")
def unique(self: Any, dim: int | None = None) -> tuple[Spec, Spec, Spec]:
    """(values, inverse, counts), of elements or of slices along `dim`; the data decide how many."""
    check_dtype(self.dtype, "real", "unique" if dim is None else "unique_dim")
    if dim is not None:
        at = wrap_existing_dim(dim, self.dim())
        if 0 in (*self.shape[:at], *self.shape[at + 1 :]):
            raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    return Spec(None, self.dtype, None if dim is None else ()), Spec(None, _d.int64), Spec(None, _d.int64)


@rule(flops="0", batch="vectors")
def multinomial(self: Any, num_samples: int, replacement: bool = False) -> Spec:
    """int64 samples from each row of 1 or 2 dimensional weights."""
    if self.dim() not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not self.dtype.is_floating_point:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {self.dtype.cpp}")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > self.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if not self.shape[-1] and 0 not in self.shape[:-1]:
        if num_samples > 1:
            raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    return Spec((*self.shape[:-1], int(num_samples)), _d.int64, None, self.dtype.opmath)


@rule(flops="0")
def searchsorted(
    sorted: Any,
    values: Any,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Spec:
    """Where the values would be inserted: int64 (or int32) of values' shape; a number gives a tensor without
    dimensions.

    `sorted` has one dimension, or as many as values and the same sizes but for the last.
    """
    index_dtype = _d.int32 if out_int32 else _d.int64
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    shape = tuple(getattr(values, "shape", ()))
    if sorter is not None and tuple(sorter.shape) != tuple(sorted.shape):
        raise RuntimeError(
            f"torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor {shape_text(sorted.shape)}and got "
            f"sorter tensor {shape_text(sorter.shape)}"
        )
    tensors: tuple[tuple[str, Any], ...] = (("boundary", sorted), ("input value", values), ("sorter", sorter))
    if not sorted.dim():
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, "
            "but we got boundaries tensor dim(0) and input value's dim(0) numel(1)"
        )
    if not shape and sorted.dim() != 1:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
            "boundaries "
            f"tensor dim({sorted.dim()}) and input value's dim({len(shape)}) numel({numel(shape)})"
        )
    if sorted.dim() != 1 and tuple(sorted.shape[:-1]) != shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            "tensor and "
            f"input value tensor must match, but we got boundaries tensor {shape_text(sorted.shape)} and input value "
            "tensor "
            f"{shape_text(shape)}"
        )
    for name, tensor in tensors:
        if tensor is not None and is_tensor(tensor) and not tensor.is_contiguous():
            warn_once(
                f"torch.searchsorted(): {name} tensor is non-contiguous, this will lower the performance due to extra data copy when "
                f"converting non-contiguous tensor to contiguous, please use contiguous {name} tensor if possible. This message will only "
                "appear once per program."
            )
    return Spec(shape, index_dtype)


@rule(flops="0")
def bucketize(self: Any, boundaries: Any, out_int32: bool = False) -> Spec:
    """Where the elements of self would be inserted into boundaries, which have one dimension."""
    if boundaries.dim() != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.dim()})")
    return searchsorted(boundaries, self, out_int32)


@rule(flops="0")
def bincount(self: Any, weights: Any = None, minlength: int = 0) -> Spec:
    """How often each value occurs; the length depends on the data (shape None). int64, or weights' dtype in float64."""
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if self.dim() != 1 or self.dtype.category != _d.CATEGORY_INTEGER:
        if self.dtype.category == _d.CATEGORY_INTEGER or not self.dim():
            raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
        check_dtype(self.dtype, "integer", "bincount_cpu")
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None or not self.numel():
        return Spec(None, _d.int64)
    if weights.dim() != 1 or weights.shape[0] != self.shape[0]:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    return Spec(None, _d.float32 if weights.dtype is _d.float32 else _d.float64)


@rule(flops="0")
def histc(self: Any, bins: int = 100) -> Spec:
    """Counts in `bins` equal parts, in self's dtype."""
    check_dtype(self.dtype, "floating_real", "histogram_cpu")
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    return Spec((int(bins),), self.dtype, None, self.dtype.opmath)


@rule(flops="0")
def histogram(self: Any, bins: Any, range: Sequence[float] | None = None, weight: Any = None) -> tuple[Spec, Spec]:
    """(hist, the edges of the bins), in self's dtype; bins is a number or a tensor of edges."""
    op = "torch.histogramdd"
    if is_tensor(bins):
        if bins.dtype is not self.dtype:
            raise RuntimeError("torch.histogram(): input tensor and bins tensors should have the same dtype")
        if bins.dim() != 1:
            raise RuntimeError(
                f"{op}: bins tensor should have one dimension, but got {bins.dim()} dimensions in the bins tensor for "
                "dimension 0"
            )
        if not bins.numel():
            raise RuntimeError(
                f"{op}: bins tensor should have at least 1 element, but got 0 elements in the bins tensor for dimension 0"
            )
        count = bins.numel() - 1
    else:
        count = int(bins)
    if count <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {count} for dimension 0")
    if weight is not None:
        if weight.dtype is not self.dtype:
            raise RuntimeError(
                f"{op}: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but "
                f"got input({self.dtype.ctype}), and weight({weight.dtype.ctype})"
            )
        if weight.numel() != self.numel():
            raise RuntimeError(
                f"{op}: if weight tensor is provided it should have the same shape as the input tensor excluding its "
                f"innermost dimension, but got input with shape [{self.numel()}, 1] and weight with shape "
                f"[{weight.numel()}]"
            )
    if range is not None:
        if len(range) != 2:
            raise RuntimeError(
                f"{op}: for a 1-dimensional histogram range should have 2 elements, but got {len(range)}"
            )
        if range[0] > range[1]:
            raise RuntimeError(
                f"{op}: min should not exceed max, but got min {range[0]:g} max {range[1]:g} for dimension 0"
            )
    if self.dtype not in (_d.float32, _d.float64):
        raise not_implemented("histogramdd", self.dtype)
    return Spec((count,), self.dtype), Spec((count + 1,), self.dtype)
