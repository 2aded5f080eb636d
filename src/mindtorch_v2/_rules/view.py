"""Rules of views that keep each element: reshaping, reordering, expanding, another dtype. They work for any strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _dtype as _d
from .._dtype import dtype
from ._common import as_list, shape_text, type_name, wrap_dim, wrap_dims
from .geometry import Shape, contiguous_strides, numel
from .spec import Spec, ViewSpec, rule


def infer_size(size: Sequence[int], count: int) -> Shape:
    """`size` with its -1 replaced, for a tensor of `count` elements. RuntimeError if it does not fit."""
    known = 1
    unknown = None
    for at, n in enumerate(size):
        if n == -1:
            if unknown is not None:
                raise RuntimeError("only one dimension can be inferred")
            unknown = at
        elif n < 0:
            raise RuntimeError(f"invalid shape dimension {n} at index {at} of shape {shape_text(size)}")
        else:
            known *= n
    shape = tuple(int(n) for n in size)
    if unknown is None:
        if known == count:
            return shape
    elif known == 0:
        if count == 0:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {shape_text(size)} because the unspecified dimension "
                "size -1 "
                "can be any value and is ambiguous"
            )
    elif count % known == 0:
        return (*shape[:unknown], count // known, *shape[unknown + 1 :])
    raise RuntimeError(f"shape '{shape_text(size)}' is invalid for input of size {count}")


def view_strides(shape: Sequence[int], stride: Sequence[int], size: Shape) -> Shape | None:
    """The strides with which a tensor of (shape, stride) can be seen as `size`, or None if that needs a copy.

    Note [Viewing]. The old dimensions form blocks within which memory is evenly spaced. A view exists if the new
    dimensions split into the same blocks.
    """
    if 0 in shape:
        return tuple(stride) if tuple(shape) == size else contiguous_strides(size)
    if not shape:
        return (1,) * len(size)
    strides = [0] * len(size)
    new = len(size) - 1
    step, block, filled = stride[-1], 1, 1
    for old in range(len(shape) - 1, -1, -1):
        block *= shape[old]
        if old and (shape[old - 1] == 1 or stride[old - 1] == block * step):
            continue  # the next dimension belongs to the same block
        while new >= 0 and (filled < block or size[new] == 1):
            strides[new] = filled * step
            filled *= size[new]
            new -= 1
        if filled != block:
            return None
        if old:
            step, block, filled = stride[old - 1], 1, 1
    return tuple(strides) if new < 0 else None


@rule()
def view(self: Any, size: Any) -> ViewSpec:
    """The same elements in another shape. RuntimeError if the sizes do not fit, or the strides need a copy."""
    shape = infer_size(as_list(size), self.numel())
    strides = view_strides(self.shape, self.stride(), shape)
    if strides is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return ViewSpec(shape, strides)


@rule()
def reshape(self: Any, shape: Any) -> ViewSpec | Spec:
    """A view if there is one, else a contiguous copy."""
    target = infer_size(as_list(shape), self.numel())
    strides = view_strides(self.shape, self.stride(), target)
    return Spec(target, self.dtype) if strides is None else ViewSpec(target, strides)


@rule()
def flatten(self: Any, start_dim: int = 0, end_dim: int = -1) -> ViewSpec | Spec:
    """The dims from start to end (both included) as one, as `reshape`."""
    start, end = wrap_dim(start_dim, self.dim()), wrap_dim(end_dim, self.dim())
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not self.dim():
        return ViewSpec((1,), (1,))
    if start == end:
        return alias(self)
    shape = self.shape
    return reshape(self, (*shape[:start], numel(shape[start : end + 1]), *shape[end + 1 :]))


@rule()
def unflatten(self: Any, dim: int, sizes: Sequence[int]) -> ViewSpec:
    """One dimension as several, whose product is its size."""
    at = wrap_dim(dim, self.dim())
    given = as_list(sizes)
    if not given:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if not self.dim():
        raise RuntimeError("unflatten got an unexpected error:\nDimension specified as 0 but tensor has no dimensions")
    length = self.shape[at]
    try:
        split = infer_size(given, length)
    except RuntimeError as error:
        if "is invalid for input" in str(error):
            raise RuntimeError(
                f"unflatten: Provided sizes {shape_text(given)} don't multiply up to the size of dim {at} ({length}) "
                "in the input tensor"
            ) from None
        raise RuntimeError(f"unflatten got an unexpected error:\n{error}") from None
    return view(self, (*self.shape[:at], *split, *self.shape[at + 1 :]))


def _reordered(self: Any, order: Sequence[int]) -> ViewSpec:
    shape, stride = self.shape, self.stride()
    return ViewSpec(tuple(shape[dim] for dim in order), tuple(stride[dim] for dim in order))


@rule()
def transpose(self: Any, dim0: int, dim1: int) -> ViewSpec:
    """Two dims exchanged."""
    ndim = self.dim()
    first, second = wrap_dim(dim0, ndim), wrap_dim(dim1, ndim)
    order = list(range(ndim))
    if ndim:
        order[first], order[second] = second, first
    return _reordered(self, order)


@rule()
def t(self: Any) -> ViewSpec:
    """A matrix transposed; tensors of fewer dimensions as they are."""
    if self.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.dim()}D")
    return reverse_dims(self)


@rule()
def reverse_dims(self: Any) -> ViewSpec:
    """All dims in reverse order: `T`."""
    return _reordered(self, range(self.dim() - 1, -1, -1))


@rule()
def matrix_transpose(self: Any, op: str = "mT") -> ViewSpec:
    """The last two dims exchanged: `mT`, `mH`, adjoint."""
    if self.dim() == 1:
        raise RuntimeError(
            f"tensor.{op} is only supported on matrices or batches of matrices. Got {self.dim()}-D tensor."
        )
    return transpose(self, -2, -1) if self.dim() else alias(self)


@rule()
def permute(self: Any, dims: Sequence[int]) -> ViewSpec:
    """The dims in a new order. RuntimeError unless each is named once."""
    given = as_list(dims)
    if len(given) != self.dim():
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            "ordering of "
            f"dimensions i.e. input.dim() = {self.dim()} is not equal to len(dims) = {len(given)}"
        )
    order = [wrap_dim(dim, self.dim()) for dim in given]
    if len(set(order)) != len(order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return _reordered(self, order)


@rule()
def movedim(self: Any, source: Any, destination: Any) -> ViewSpec:
    """The source dims moved to the destinations; the others keep their order."""
    sources, targets = as_list(source), as_list(destination)
    if len(sources) != len(targets):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({shape_text(sources)} dims) should contain the same "
            "number of "
            f"dims as destination ({shape_text(targets)} dims)"
        )
    ndim = self.dim()
    moved = [wrap_dim(dim, ndim) for dim in sources]
    places = [wrap_dim(dim, ndim) for dim in targets]
    for name, dims, given in (("source", moved, sources), ("destination", places, targets)):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({shape_text(given)})")
    if not ndim:
        return alias(self)
    by_place = dict(zip(places, moved, strict=True))
    rest = iter(dim for dim in range(ndim) if dim not in moved)
    return _reordered(self, [by_place[at] if at in by_place else next(rest) for at in range(ndim)])


@rule()
def expand(self: Any, size: Sequence[int]) -> ViewSpec:
    """Dims of size 1, and new leading ones, repeated with a stride of 0. -1 keeps a size."""
    target = as_list(size)
    shape, stride = self.shape, self.stride()
    lead = len(target) - len(shape)
    if lead < 0:
        raise RuntimeError(
            f"expand({type_name(self.dtype)}{{{shape_text(shape)}}}, size={shape_text(target)}): the number of "
            "sizes provided "
            f"({len(target)}) must be greater or equal to the number of dimensions in the tensor ({len(shape)})"
        )
    strides = [0] * len(target)
    for at in range(len(target) - 1, -1, -1):
        wanted = target[at]
        if at < lead:
            if wanted < 0:
                raise RuntimeError(
                    f"The expanded size of the tensor ({wanted}) isn't allowed in a leading, non-existing dimension "
                    f"{at}"
                )
            if wanted == 1 and shape:  # continues the dimensions behind it
                strides[at] = target[at + 1] * strides[at + 1]
            continue
        length = shape[at - lead]
        if wanted == -1:
            wanted = target[at] = length
        if wanted == length:
            strides[at] = stride[at - lead]
        elif length != 1 or wanted < 0:
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing size ({length}) at non-singleton "
                f"dimension {at}."
                f"  Target sizes: {shape_text(as_list(size))}.  Tensor sizes: {shape_text(shape)}"
            )
    return ViewSpec(tuple(int(n) for n in target), tuple(strides))


@rule()
def broadcast_to(self: Any, size: Sequence[int]) -> ViewSpec:
    """As `expand`."""
    return expand(self, size)


@rule()
def squeeze(self: Any, dim: Any = None) -> ViewSpec:
    """Without the dims of size 1: all of them, or those of `dim` (an int or a list)."""
    shape, stride = self.shape, self.stride()
    chosen = range(len(shape)) if dim is None else wrap_dims(as_list(dim), len(shape))
    kept = [at for at, size in enumerate(shape) if size != 1 or at not in chosen]
    return _reordered(self, kept) if len(kept) != len(shape) else ViewSpec(tuple(shape), tuple(stride))


@rule()
def unsqueeze(self: Any, dim: int) -> ViewSpec:
    """A new dim of size 1 at `dim`."""
    shape, stride = self.shape, self.stride()
    at = wrap_dim(dim, len(shape) + 1)
    step = shape[at] * stride[at] if at < len(shape) else 1
    return ViewSpec((*shape[:at], 1, *shape[at:]), (*stride[:at], step, *stride[at:]))


@rule()
def alias(self: Any) -> ViewSpec:
    """The same geometry."""
    return ViewSpec(tuple(self.shape), tuple(self.stride()))


@rule()
def view_dtype(self: Any, dtype: dtype) -> ViewSpec:
    """The same bytes as another type. The last dimension grows or shrinks with the size of an element."""
    shape, stride = list(self.shape), list(self.stride())
    old, new = self.dtype.itemsize, dtype.itemsize
    if old == new:
        return ViewSpec(tuple(shape), tuple(stride), 0, dtype)
    text = f"to view {self.dtype.cpp} as {dtype.cpp} (different element sizes), but got"
    if not shape:
        raise RuntimeError(f"self.dim() cannot be 0 {text.removesuffix(', but got')}")
    if old > new:
        ratio = old // new
        if stride[-1] != 1:
            raise RuntimeError(f"self.stride(-1) must be 1 {text} {stride[-1]}")
        shape[-1] *= ratio
        return ViewSpec(tuple(shape), (*(step * ratio for step in stride[:-1]), 1), 0, dtype)
    ratio = new // old
    if shape[-1] % ratio:
        raise RuntimeError(f"self.size(-1) must be divisible by {ratio} {text} {shape[-1]}")
    if self.storage_offset() % ratio:
        raise RuntimeError(f"self.storage_offset() must be divisible by {ratio} {text} {self.storage_offset()}")
    if stride[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {text} {stride[-1]}")
    for at, step in enumerate(stride[:-1]):
        if step % ratio:
            raise RuntimeError(f"self.stride({at}) must be divisible by {ratio} {text} {step}")
    shape[-1] //= ratio
    return ViewSpec(tuple(shape), (*(step // ratio for step in stride[:-1]), 1), 0, dtype)


@rule()
def view_as_real(self: Any) -> ViewSpec:
    """Complex numbers as pairs of real ones in a new last dimension."""
    if not self.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return ViewSpec((*self.shape, 2), (*(2 * step for step in self.stride()), 1), 0, self.dtype.to_real())


@rule()
def view_as_complex(self: Any) -> ViewSpec:
    """Pairs of real numbers in the last dimension as complex ones."""
    if self.dtype not in (_d.float16, _d.float32, _d.float64):
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{self.dtype.cpp}"
        )
    if not self.dim():
        raise RuntimeError("Input tensor must have one or more dimensions")
    stride = self.stride()
    if self.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    # The strides of a tensor without elements are numpy's own on the CPU: they say nothing.
    if self.numel() and stride[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if self.numel() and any(step % 2 for size, step in zip(self.shape[:-1], stride) if size > 1):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if self.storage_offset() % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return ViewSpec(tuple(self.shape[:-1]), tuple(step // 2 for step in stride[:-1]), 0, self.dtype.to_complex())


def real(self: Any) -> ViewSpec:
    """The real parts; a real tensor itself."""
    if not self.dtype.is_complex:
        return alias(self)
    return ViewSpec(tuple(self.shape), tuple(2 * step for step in self.stride()), 0, self.dtype.to_real())


def imag(self: Any) -> ViewSpec:
    """The imaginary parts. RuntimeError for a real tensor."""
    if not self.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return ViewSpec(tuple(self.shape), tuple(2 * step for step in self.stride()), 1, self.dtype.to_real())
