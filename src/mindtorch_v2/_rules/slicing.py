"""Rules of views of a part: select, slice, split, diagonal, unfold, as_strided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._common import as_list, shape_text, wrap_dim, wrap_existing_dim
from .spec import ViewSpec, rule


@rule()
def select(self: Any, dim: int, index: int) -> ViewSpec:
    """One index of a dim, which goes. IndexError out of range."""
    if not self.dim():
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    at = wrap_dim(dim, self.dim())
    shape, stride = self.shape, self.stride()
    length = shape[at]
    where = int(index)
    if not -length <= where < length:
        raise IndexError(
            f"select(): index {where} out of range for tensor of size {shape_text(shape)} at dimension {at}"
        )
    if where < 0:
        where += length
    return ViewSpec((*shape[:at], *shape[at + 1 :]), (*stride[:at], *stride[at + 1 :]), where * stride[at])


def _part(self: Any, at: int, start: int, length: int, step: int = 1) -> ViewSpec:
    shape, stride = self.shape, self.stride()
    return ViewSpec(
        (*shape[:at], length, *shape[at + 1 :]),
        (*stride[:at], stride[at] * step, *stride[at + 1 :]),
        start * stride[at],
    )


@rule()
def slice(self: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> ViewSpec:
    """Every `step`-th index from start to end, both clipped to the size. RuntimeError unless step is positive."""
    if not self.dim():
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    at = wrap_dim(dim, self.dim())
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    length = self.shape[at]
    first = 0 if start is None else int(start)
    last = length if end is None else int(end)
    if first < 0:
        first += length
    if last < 0:
        last += length
    first = min(max(first, 0), length)
    last = min(max(last, first), length)
    return _part(self, at, first, (last - first + step - 1) // step, int(step))


@rule()
def narrow(self: Any, dim: int, start: int, length: int) -> ViewSpec:
    """`length` indices from `start`. RuntimeError beyond the end."""
    if not self.dim():
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    at = wrap_dim(dim, self.dim())
    size = self.shape[at]
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {int(start)})")
    first = start + size if start < 0 else start
    if first + length > size:
        raise RuntimeError(f"start ({first}) + length ({length}) exceeds dimension size ({size}).")
    return _part(self, at, int(first), int(length))


@rule()
def as_strided(self: Any, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> ViewSpec:
    """Any geometry within self's storage; `storage_offset` counts from the storage's first element (None: self's
    own)."""
    shape, strides = as_list(size), as_list(stride)
    if len(shape) != len(strides):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(step < 0 for step in strides):
        raise RuntimeError(
            f"as_strided: Negative strides are not supported at the moment, got strides: {shape_text(strides)}"
        )
    if any(length < 0 for length in shape):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={shape_text(shape)} and strides={shape_text(strides)}"
        )
    own = self.storage_offset()
    offset = own if storage_offset is None else int(storage_offset)
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if 0 not in shape:
        itemsize = self.dtype.itemsize
        last = offset + sum((length - 1) * step for length, step in zip(shape, strides, strict=True))
        available = self.untyped_storage().nbytes()
        if (last + 1) * itemsize > available:
            raise RuntimeError(
                f"setStorage: sizes {shape_text(shape)}, strides {shape_text(strides)}, storage offset {offset}, and "
                "itemsize "
                f"{itemsize} requiring a storage size of {(last + 1) * itemsize} are out of bounds for storage of size "
                f"{available}"
            )
    return ViewSpec(tuple(map(int, shape)), tuple(map(int, strides)), offset - own)


@rule()
def diagonal(self: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> ViewSpec:
    """The diagonal of two dims, which go, as a new last dim."""
    first, second = wrap_dim(dim1, self.dim()), wrap_dim(dim2, self.dim())
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    shape, stride = self.shape, self.stride()
    if offset >= 0:
        length = max(min(shape[first], shape[second] - offset), 0)
        start = offset * stride[second]
    else:
        length = max(min(shape[first] + offset, shape[second]), 0)
        start = -offset * stride[first]
    rest = [at for at in range(len(shape)) if at not in (first, second)]
    return ViewSpec(
        (*(shape[at] for at in rest), length),
        (*(stride[at] for at in rest), stride[first] + stride[second]),
        start if length else 0,
    )


@rule()
def unfold(self: Any, dimension: int, size: int, step: int) -> ViewSpec:
    """Windows of `size` along a dim, `step` apart, in a new last dim."""
    at = wrap_dim(dimension, self.dim())
    shape, stride = self.shape, self.stride()
    longest = shape[at] if shape else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > longest:
        raise RuntimeError(f"maximum size for tensor at dimension {at} is {longest} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not shape:
        return ViewSpec((size,), (1,))
    windows = (longest - size) // step + 1
    return ViewSpec(
        (*shape[:at], windows, *shape[at + 1 :], size),
        (*stride[:at], stride[at] * step, *stride[at + 1 :], stride[at]),
    )


@rule()
def split(self: Any, split_size: Any, dim: int = 0) -> list[ViewSpec]:
    """Parts of `split_size`, the last one shorter; a list gives the size of each."""
    if not isinstance(split_size, int):
        return split_with_sizes(self, split_size, dim)
    if not self.dim():
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    at = wrap_dim(dim, self.dim())
    length = self.shape[at]
    if not split_size and length:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {length}")
    if not length:
        return [_part(self, at, 0, 0)]
    return [_part(self, at, start, min(split_size, length - start)) for start in range(0, length, split_size)]


@rule()
def split_with_sizes(self: Any, split_sizes: Sequence[int], dim: int = 0) -> list[ViewSpec]:
    """Parts of the given sizes, which must add up to the dim's."""
    if not self.dim():
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    at = wrap_dim(dim, self.dim())
    sizes = as_list(split_sizes)
    if any(size < 0 for size in sizes):
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={shape_text(sizes)}"
        )
    length = self.shape[at]
    if sum(sizes) != length:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {length} (input tensor's size at dimension {dim}), "
            "but got "
            f"split_sizes={shape_text(sizes)}"
        )
    parts = []
    start = 0
    for size in sizes:
        parts.append(_part(self, at, start, size))
        start += size
    return parts


@rule()
def chunk(self: Any, chunks: int, dim: int = 0) -> list[ViewSpec]:
    """At most `chunks` parts of equal size, the last one shorter."""
    if not self.dim():
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    at = wrap_dim(dim, self.dim())
    length = self.shape[at]
    if not length:
        return [_part(self, at, 0, 0) for _ in range(chunks)]
    return split(self, (length + chunks - 1) // chunks, at)


@rule()
def tensor_split(self: Any, indices_or_sections: Any, dim: int = 0) -> list[ViewSpec]:
    """Exactly that many parts whose sizes differ by at most one, or parts between the given indices."""
    if not self.dim():
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    at = wrap_dim(dim, self.dim())
    length = self.shape[at]
    if isinstance(indices_or_sections, int):
        if indices_or_sections <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {indices_or_sections}")
        short, longer = divmod(length, indices_or_sections)
        return split_with_sizes(self, [short + (i < longer) for i in range(indices_or_sections)], at)
    bounds = [0, *as_list(indices_or_sections), None]
    return [slice(self, at, start, end) for start, end in zip(bounds[:-1], bounds[1:], strict=True)]


@rule()
def unbind(self: Any, dim: int = 0) -> list[ViewSpec]:
    """Each index of a dim."""
    at = wrap_existing_dim(dim, self.dim())
    return [select(self, at, index) for index in range(self.shape[at])]
