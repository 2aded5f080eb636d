"""Rules of reading and writing at indices: index, gather, scatter, index_add, masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _dtype as _d
from .._determinism import alert
from .._warnings import warn_of_call
from ._common import broadcast, check_dtype, is_tensor, not_implemented, shape_text, wrap_dim
from .geometry import Geometry, Shape, elementwise_strides, format_strides
from .pointwise import _check_number, check_fill
from .spec import Spec, rule

_INDEX_DTYPES = (_d.int32, _d.int64)
_MASKS = (_d.bool, _d.uint8)


def _check_indices(self: Any, indices: Sequence[Any]) -> bool:
    """Validates dtypes and mask shapes; True if a mask makes the shape depend on the data."""
    masked = False
    at = 0
    for index in indices:
        if index is None:
            at += 1
            continue
        if index.dtype not in _INDEX_DTYPES and index.dtype not in _MASKS:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        if index.dtype in _MASKS:
            masked = True
            if index.dtype is _d.uint8:
                warn_of_call(
                    "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead."
                )
            for offset, size in enumerate(index.shape):
                if at + offset < self.dim() and size != self.shape[at + offset]:
                    raise IndexError(
                        f"The shape of the mask {shape_text(index.shape)} at index {offset} does not match the shape "
                        "of the "
                        f"indexed tensor {shape_text(self.shape)} at index {at + offset}"
                    )
            at += index.dim()
        else:
            at += 1
    if at > self.dim():
        raise IndexError(f"too many indices for tensor of dimension {self.dim()} (got {at})")
    return masked


def _indices_shape(indices: Sequence[Any]) -> Shape:
    given = [index for index in indices if index is not None]
    shape: Shape = ()
    try:
        for index in given:
            shape = broadcast(shape, index.shape)
    except RuntimeError:
        shapes = ", ".join(shape_text(index.shape) for index in given)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None
    return shape


def _indexed(self: Any, indices: Sequence[Any]) -> tuple[Shape, Shape | None]:
    """Shape and strides of `self[indices]` for integer indices.

    Indexed dims that are adjacent give way to the indices' shape where they stand, others move to the front. The
    strides are those of a pointwise result over self, whose indexed dims have stride 0, and the indices.
    """
    replaced = _indices_shape(indices)
    shape, stride = tuple(self.shape), tuple(self.stride())
    places = [at for at, index in enumerate(indices) if index is not None]
    rest = [at for at in range(len(shape)) if at not in places]
    adjacent = places[-1] - places[0] + 1 == len(places)
    before = [at for at in rest if at < places[0]] if adjacent else []
    after = [at for at in rest if at not in before]
    result = (*(shape[at] for at in before), *replaced, *(shape[at] for at in after))
    source: Geometry = (
        result,
        (*(stride[at] for at in before), *(0 for _ in replaced), *(stride[at] for at in after)),
    )
    operands = [source]
    for index in indices:
        if index is None:
            continue
        missing = len(replaced) - index.dim()
        steps = [0] * missing + [
            0 if size == 1 and replaced[missing + at] != 1 else step
            for at, (size, step) in enumerate(zip(index.shape, index.stride(), strict=True))
        ]
        sizes = (1,) * len(before) + replaced + (1,) * len(after)
        operands.append((sizes, (0,) * len(before) + tuple(steps) + (0,) * len(after)))
    return result, elementwise_strides(result, operands)


def _check_not_empty(self: Any, indices: Sequence[Any]) -> None:
    """IndexError for integer indices, at least one, into a dimension without elements."""
    indexed = [size for size, index in zip(self.shape, indices) if index is not None]
    if 0 in indexed and 0 not in _indices_shape(indices):
        raise IndexError("index is out of bounds for dimension with size 0")


@rule(flops="0")
def index(self: Any, indices: Sequence[Any], masks: bool = True) -> Spec:
    """self[indices]: a list of tensors (integers, or masks unless `masks` is False) and None. With a mask the data
    decide the shape."""
    if not any(position is not None for position in indices):
        raise IndexError("at least one index must be provided")
    if not masks:
        for position in indices:
            if position is not None and position.dtype not in _INDEX_DTYPES:
                raise RuntimeError(f"_unsafe_index found unexpected index type {position.dtype.cpp}")
    if len(indices) > self.dim():
        raise IndexError(f"too many indices for tensor of dimension {self.dim()} (got {len(indices)})")
    if _check_indices(self, indices):
        return Spec(None, self.dtype)
    shape, stride = _indexed(self, indices)
    _check_not_empty(self, indices)
    return Spec(shape, self.dtype, stride)


def _places(position: Any) -> Sequence[Any]:
    """The indices that a mask stands for."""
    if position is None or position.dtype not in (_d.bool, _d.uint8):
        return (position,)
    return position.nonzero().unbind(1)


@rule(flops="0")
def index_put(self: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Spec:
    """self's geometry with values written at the indices; values broadcast to the indexed shape and have self's
    dtype."""
    if len(indices) > self.dim():
        raise IndexError(f"too many indices for tensor of dimension {self.dim()} (got {len(indices)})")
    given = [position for position in indices if position is not None]
    if len(given) == 1 and given[0].dtype is _d.uint8 and values.numel() == 1 and not accumulate:
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype unsigned char")
    masked = _check_indices(self, indices)
    if (
        masked and values.dtype is not self.dtype and self.device.type != "meta"
    ):  # what is said first depends on the masks
        indices = [part for position in indices for part in _places(position)]
        masked = False
    if not masked and any(position is not None for position in indices):
        _check_not_empty(self, indices)
        shape, _ = _indexed(self, indices)
        sizes = tuple(values.shape)
        lead = len(shape) - len(sizes)
        if lead < 0 or any(size not in (1, shape[lead + at]) for at, size in enumerate(sizes)):
            raise RuntimeError(
                f"shape mismatch: value tensor of shape {shape_text(values.shape)} cannot be broadcast to indexing "
                "result of shape "
                f"{shape_text(shape)}"
            )
    if values.dtype is not self.dtype:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {self.dtype.cpp} for the destination and "
            f"{values.dtype.cpp} for the source."
        )
    return Spec(tuple(self.shape), self.dtype, format_strides(self))


def _at_least_1d(tensor: Any) -> Shape:
    return tuple(tensor.shape) or (1,)


@rule(flops="0", batch="along")
def gather(self: Any, dim: int, index: Any) -> Spec:
    """Of index's shape, which is at most self's apart from `dim`: contiguous."""
    at = wrap_dim(dim, self.dim())
    if index.numel():
        if index.dtype not in _INDEX_DTYPES:
            raise RuntimeError("gather(): Expected dtype int32/int64 for index")
        own, sizes = _at_least_1d(self), _at_least_1d(index)
        if len(own) != len(sizes):
            raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
        for axis, (size, limit) in enumerate(zip(sizes, own, strict=True)):
            if axis != at and size > limit:
                raise RuntimeError(
                    f"Size does not match at dimension {axis} expected index {shape_text(index.shape)} to be no larger "
                    "than self "
                    f"{shape_text(self.shape)} apart from dimension {at}"
                )
    return Spec(tuple(index.shape), self.dtype)


@rule(flops="numel(src)", batch="along")
def scatter(
    self: Any, dim: int, index: Any, src: Any, reduce: str | None = None, reduces: tuple[str, ...] = ()
) -> Spec:
    """self with src (a tensor of self's dtype, or a number) written at index along `dim`: contiguous. reduces: the words that `reduce` may be."""
    at = wrap_dim(dim, self.dim())
    if index.numel() and index.dtype not in _INDEX_DTYPES:
        raise RuntimeError("scatter(): Expected dtype int32/int64 for index")
    if is_tensor(src):
        if src.dtype is not self.dtype:
            raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    else:
        check_fill(src, self.dtype)
    if index.numel():
        own, sizes = _at_least_1d(self), _at_least_1d(index)
        if len(own) != len(sizes):
            raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
        wrong = any(axis != at and size > own[axis] for axis, size in enumerate(sizes))
        source = _at_least_1d(src) if is_tensor(src) else None
        if source is not None and len(source) != len(sizes):
            raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
        small = source is not None and any(size > source[axis] for axis, size in enumerate(sizes))
        if wrong or small:
            tail = "" if source is None else f" and to be no larger size than src {shape_text(src.shape)}"
            raise RuntimeError(
                f"Expected index {shape_text(index.shape)} to be no larger than self {shape_text(self.shape)} apart "
                "from dimension "
                f"{at}{tail}"
            )
    if reduce is not None and reduce not in reduces:
        end = "." if len(reduces) == 2 else f", got {reduce}"
        raise RuntimeError(f"reduce argument must be either {', '.join(reduces[:-1])} or {reduces[-1]}{end}")
    if reduce in ("amax", "amin") and self.dtype.is_complex and index.numel():
        raise not_implemented(f"scatter_gather_tensor_cpu_reduce_{reduce}", self.dtype)
    if reduce == "mean" and self.dtype is _d.bool and index.numel():
        raise not_implemented("scatter_gather_tensor_cpu_reduce_mean", self.dtype)
    return Spec(tuple(self.shape), self.dtype)


@rule(flops="0")
def index_select(self: Any, dim: int, index: Any) -> Spec:
    """The given indices of a dim: contiguous. index has at most one dimension."""
    at = wrap_dim(dim, self.dim())
    if index.dim() > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    count = index.numel()
    if not self.dim() and count != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {count} value(s)")
    if index.dtype not in _INDEX_DTYPES:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if not self.dim():
        return Spec((), self.dtype)
    if count and not self.shape[at]:
        if self.dim() == 1:
            raise IndexError("index out of range in self")
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    return Spec((*self.shape[:at], count, *self.shape[at + 1 :]), self.dtype)


def _without(shape: Sequence[int], at: int) -> Shape:
    return (*shape[:at], *shape[at + 1 :])


@rule(flops="numel(source)")
def index_add(
    self: Any, dim: int, index: Any, source: Any, alpha: Any = 1, op: str = "index_add", reduce: str | None = None
) -> Spec:
    """self with source's slices added at the indices of `dim`: contiguous. source has self's shape but for `dim`.

    reduce: what index_reduce does in place of adding.
    """
    name = f"{op}_()"
    if reduce is not None:
        if reduce not in ("prod", "mean", "amax", "amin"):
            raise RuntimeError(
                f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}."
            )
    at = wrap_dim(dim, self.dim())
    if index.dtype not in _INDEX_DTYPES:
        raise RuntimeError(f"{name}: Expected dtype int32/int64 for index but got: {index.dtype.cpp}")
    if index.dim() > 1:
        raise IndexError(
            f"{name}: Index is supposed to be a vector, but got dim: {index.dim()} with type: {index.dtype.cpp} and "
            "size: "
            f"{shape_text(index.shape)}"
        )
    if source.dtype is not self.dtype:
        raise RuntimeError(
            f"{name}: self ({self.dtype.cpp}) and source ({source.dtype.cpp}) must have the same scalar type"
        )
    own, sizes = tuple(self.shape), tuple(source.shape)
    length = source.numel() if not sizes else sizes[wrap_dim(at, len(sizes))]
    if index.numel() != length:
        raise RuntimeError(
            f"{name}: Number of indices ({index.numel()}) should be equal to source.size(dim): ({length}), for dim: "
            f"{at}"
        )
    if len(own) != len(sizes) or _without(own, at) != _without(sizes, at):
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {shape_text(own)} source.shape = {shape_text(sizes)}"
        )
    _check_number(alpha, self.dtype)
    if reduce is not None:
        check_dtype(self.dtype, "real_numeric", "index_func_")
    return Spec(own, self.dtype)


@rule(flops="0")
def index_copy(self: Any, dim: int, index: Any, source: Any) -> Spec:
    """self with slices replaced by source's: contiguous. index is int64."""
    name = "index_copy_()"
    at = wrap_dim(dim, self.dim())
    if index.dim() > 1:
        raise IndexError(f"{name}: Index should have dimension 1 or 0 (got {index.dim()})")
    own, sizes = tuple(self.shape), tuple(source.shape)
    count = index.numel()
    if not sizes and count != 1:
        raise IndexError(f"{name}: When source is scalar, index should have one element (got {count})")
    if sizes and own and len(sizes) != len(own):
        raise IndexError(
            f"{name}: When source and destination are not scalars, their dimensionality must match. Source "
            "dimensionality "
            f"({len(sizes)}), destination dimensionality ({len(own)})"
        )
    if index.dtype is not _d.int64:
        raise RuntimeError(f"{name}: Expected a long tensor for index, but got {index.dtype.cpp}")
    if source.dtype is not self.dtype:
        raise RuntimeError(
            f"{name}: self and source expected to have the same dtype, but got (self) {self.dtype.cpp} and (source) "
            f"{source.dtype.cpp}"
        )
    if _without(own, at) != _without(sizes, at):
        raise RuntimeError(
            f"{name}: Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join(map(str, _without(own, at)))} at dimension {at} and source slice shape: "
            f"{' '.join(map(str, _without(sizes, at)))} at dimension 0."
        )
    if sizes and count != sizes[at]:
        raise IndexError(f"{name}: Number of indices ({count}) should be equal to source.size(dim) ({sizes[at]})")
    return Spec(own, self.dtype)


@rule(flops="0")
def index_fill(self: Any, dim: int, index: Any, value: Any) -> Spec:
    """self's geometry with slices set to a value (a number or a tensor without dimensions). index is int64."""
    if is_tensor(value):
        if value.dim():
            raise RuntimeError(
                f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.dim()} "
                "dimension(s)."
            )
    if index.dtype is not _d.int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if not self.dtype.is_complex and (value.dtype.is_complex if is_tensor(value) else isinstance(value, complex)):
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    if not is_tensor(value):
        check_fill(value, self.dtype)
    wrap_dim(dim, self.dim())
    if index.dim() > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    return Spec(tuple(self.shape), self.dtype, format_strides(self))


@rule(flops="0")
def take(self: Any, index: Any) -> Spec:
    """Elements of the flat tensor, of index's shape: contiguous. index is int64."""
    if index.dtype is not _d.int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {index.dtype.cpp}")
    if not self.numel() and index.numel():
        raise IndexError("take(): tried to take from an empty tensor")
    return Spec(tuple(index.shape), self.dtype)


@rule(flops="0")
def put(self: Any, index: Any, source: Any, accumulate: bool = False) -> Spec:
    """self's geometry with elements of the flat tensor replaced. index is int64, as long as source."""
    if not accumulate:
        alert("put_")
    if index.dtype is not _d.int64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {index.dtype.cpp}")
    if source.dtype is not self.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {self.dtype.cpp} and "
            "source.dtype = "
            f"{source.dtype.cpp}"
        )
    if index.numel() != source.numel():
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.numel()}, index.numel() = {index.numel()}"
        )
    if not self.numel() and index.numel():
        raise IndexError("put_(): Tried to put elements into an empty tensor")
    return Spec(tuple(self.shape), self.dtype, format_strides(self))


@rule(flops="0")
def masked_select(self: Any, mask: Any) -> Spec:
    """The elements where the bool mask is set, flat; the data decide how many."""
    if mask.dtype is not _d.bool:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    broadcast(mask.shape, self.shape)
    return Spec(None, self.dtype)


@rule(flops="0")
def masked_scatter(self: Any, mask: Any, source: Any) -> Spec:
    """self, broadcast with the bool mask, with source's elements written where the mask is set: contiguous."""
    if source.dtype is not self.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got{self.dtype.cpp} and "
            f"{source.dtype.cpp}"
        )
    if mask.dtype is not _d.bool:
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype.cpp}")
    return Spec(broadcast(mask.shape, self.shape), self.dtype)


@rule(flops="0")
def nonzero(self: Any) -> Spec:
    """int64 positions [count, ndim]; the data decide how many."""
    return Spec(None, _d.int64, ())


@rule(flops="0")
def nonzero_static(self: Any, size: int) -> Spec:
    """int64 positions [size, ndim]: the first ones, and as many more as are wanted."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    shape = (int(size), self.dim())
    return Spec(shape, _d.int64)


@rule(flops="0")
def one_hot(self: Any, num_classes: int = -1) -> Spec:
    """int64 [..., num_classes]; with -1 the data decide the number."""
    if self.dtype is not _d.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if not self.numel() and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    if num_classes == -1:
        return Spec(None, _d.int64)
    if num_classes < 1:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return Spec((*self.shape, int(num_classes)), _d.int64)
