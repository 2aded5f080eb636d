"""Joining, repeating and padding made of other operators."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from mindtorch_v2 import _dtype
from mindtorch_v2._dispatch.backends import data_needed
from mindtorch_v2._generated import functions as F
from mindtorch_v2._layout import channels_last, channels_last_3d, contiguous_format, memory_format
from mindtorch_v2._rules._common import type_name, wrap_dim
from mindtorch_v2._rules.geometry import prefers_channels_last
from mindtorch_v2._tensor import Tensor

Tensors = tuple[Tensor, ...]

# Joining


def _stacked(name: str, tensors: Sequence[Tensor]) -> None:
    if not len(tensors):
        raise RuntimeError(f"{name} expects a non-empty TensorList")


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors side by side: along dimension 1, or 0 for 1-D ones."""
    _stacked("hstack", tensors)
    rows = [atleast_1d(t) for t in tensors]
    return F.cat(rows, 0 if rows[0].dim() == 1 else 1)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors one below the other."""
    _stacked("vstack", tensors)
    return F.cat([atleast_2d(t) for t in tensors], 0)


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors behind one another, along dimension 2."""
    _stacked("dstack", tensors)
    return F.cat([atleast_3d(t) for t in tensors], 2)


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """1-D tensors as the columns of a matrix, others side by side."""
    _stacked("column_stack", tensors)
    return hstack([F.reshape(t, [t.numel(), 1]) if t.dim() <= 1 else t for t in tensors])


def block_diag(tensors: Sequence[Tensor]) -> Tensor:
    """A matrix with the given matrices (or rows, or numbers) along its diagonal."""
    if not len(tensors):
        return F.empty([1, 0])
    blocks = []
    for place, tensor in enumerate(tensors):
        if tensor.dim() > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {place} has {tensor.dim()} dimensions"
            )
        blocks.append(atleast_2d(tensor))
    width = sum(b.shape[1] for b in blocks)
    left = 0
    rows = []
    for block in blocks:
        right = width - left - block.shape[1]
        rows.append(F.constant_pad_nd(block, [left, right], 0))
        left += block.shape[1]
    return F.cat(rows, 0)


def cartesian_prod(tensors: Sequence[Tensor]) -> Tensor:
    """All combinations of the elements of 1-D tensors, one a row."""
    for tensor in tensors:
        if tensor.dim() != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(tensor.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    grids = meshgrid(tensors)
    return F.stack([F.reshape(grid, [-1]) for grid in grids], 1)


def combinations(self: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All combinations of `r` elements of a 1-D tensor, one a row."""
    if self.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(self.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return F.empty([0], dtype=self.dtype, device=self.device)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = np.fromiter(itertools.chain.from_iterable(choose(range(self.shape[0]), r)), np.int64)
    chosen = F.index_select(self, 0, self.new_tensor(places, dtype=_dtype.int64))
    return F.reshape(chosen, [len(places) // r, r])


def meshgrid(tensors: Sequence[Tensor], indexing: str = "ij") -> Tensors:
    """Grids of the coordinates that 1-D (or 0-dim) tensors give; `xy` swaps the first two dimensions."""
    if not len(tensors):
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for tensor in tensors:
        if tensor.dim() > 1:
            given = _contents(tensor)
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {given}")
    if any(t.dtype is not tensors[0].dtype for t in tensors):
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    if any(t.device != tensors[0].device for t in tensors):
        raise RuntimeError("meshgrid expects all tensors to have the same device")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    swap = indexing == "xy" and len(tensors) >= 2
    given = [tensors[1], tensors[0], *tensors[2:]] if swap else list(tensors)
    shape = [t.numel() for t in given]
    grids = []
    for place, tensor in enumerate(given):
        view = [1] * len(shape)
        view[place] = shape[place]
        grids.append(F.expand(F.reshape(tensor, view), shape))
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def _contents(tensor: Tensor) -> str:
    """A tensor in an error message: its type and shape where it has no elements, else as it prints."""
    if tensor.numel():
        return str(tensor)
    return f"[ {type_name(tensor.dtype)}{{{','.join(map(str, tensor.shape))}}} ]"


def broadcast_tensors(tensors: Sequence[Tensor]) -> Tensors:
    """The tensors in their common shape: those that have it, and views of the others."""
    shapes = [tensor.shape for tensor in tensors]
    if all(one == shapes[0] for one in shapes):
        return tuple(tensors)
    shape: list[int] = []
    for one in shapes:
        shape = _broadcast(shape, one)
    return tuple([x if list(one) == shape else F.expand(x, shape) for x, one in zip(tensors, shapes, strict=True)])


def _broadcast(a: Sequence[int], b: Sequence[int]) -> list[int]:
    ndim = max(len(a), len(b))
    first, second = [1] * (ndim - len(a)) + list(a), [1] * (ndim - len(b)) + list(b)
    result = []
    for place, (m, n) in enumerate(zip(first, second, strict=True)):
        if m != n and m != 1 and n != 1:
            raise RuntimeError(
                f"The size of tensor a ({m}) must match the size of tensor b ({n}) at non-singleton dimension {place}"
            )
        result.append(n if m == 1 else m)
    return result


def atleast_1d(self: Tensor) -> Tensor:
    """self with one dimension at least."""
    return self if self.dim() else F.reshape(self, [1])


def atleast_2d(self: Tensor) -> Tensor:
    """self with two dimensions at least; a vector becomes a row."""
    if self.dim() == 0:
        return F.reshape(self, [1, 1])
    return F.unsqueeze(self, 0) if self.dim() == 1 else self


def atleast_3d(self: Tensor) -> Tensor:
    """self with three dimensions at least; a vector stands in the middle one."""
    if self.dim() == 0:
        return F.reshape(self, [1, 1, 1])
    if self.dim() == 1:
        return F.unsqueeze(F.unsqueeze(self, 0), -1)
    return F.unsqueeze(self, -1) if self.dim() == 2 else self


def all_atleast_1d(tensors: Sequence[Tensor]) -> Tensors:
    """`atleast_1d` of each."""
    return tuple([atleast_1d(t) for t in tensors])


def all_atleast_2d(tensors: Sequence[Tensor]) -> Tensors:
    """`atleast_2d` of each."""
    return tuple([atleast_2d(t) for t in tensors])


def all_atleast_3d(tensors: Sequence[Tensor]) -> Tensors:
    """`atleast_3d` of each."""
    return tuple([atleast_3d(t) for t in tensors])


# Repeating


def tile(self: Tensor, dims: Sequence[int]) -> Tensor:
    """self repeated along its last dimensions."""
    dims = list(dims)
    return self.repeat([1] * (self.dim() - len(dims)) + dims)


def repeat_interleave_counts(repeats: Tensor, output_size: int | None = None) -> Tensor:
    """Each position as often as its entry says. RuntimeError unless 1-D, integer and not negative."""
    if repeats.dim() != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.dtype not in (_dtype.int64, _dtype.int32):
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{repeats.dtype.cpp}'")
    if repeats.device.type == "meta":
        if output_size is None:
            raise data_needed("repeat_interleave")
        return F.empty([output_size], dtype=repeats.dtype, device=repeats.device)
    ends = F.cumsum(repeats, 0)
    if repeats.shape[0] == 0:
        return F.to(repeats, repeats.dtype, False, True)
    if bool(F.any(F.lt(repeats, 0))):
        raise RuntimeError("repeats can not be negative")
    total = int(ends[-1].item()) if output_size is None else output_size
    return F.to(F.searchsorted(ends, F.arange(total, device=repeats.device), right=True), repeats.dtype)


def repeat_interleave_tensor(
    self: Tensor, repeats: Tensor, dim: int | None = None, output_size: int | None = None
) -> Tensor:
    """Each slice of `self` along `dim` as often as its entry of `repeats` says."""
    if dim is None:
        self, dim = F.reshape(self, [-1]), 0
    if self.dim() == 0:
        self = F.reshape(self, [1])
    size = self.shape[wrap_dim(dim, self.dim())]
    if repeats.dim() == 0 or (repeats.dim() == 1 and repeats.shape[0] == 1):
        repeats = F.expand(F.reshape(repeats, [1]), [size])
    elif repeats.dim() == 1:
        if repeats.shape[0] != size:
            at = dim % self.dim()
            raise RuntimeError(
                f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats.shape[0]} and "
                f"input.size({at}) = {size}"
            )
    else:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    return F.index_select(self, dim, repeat_interleave_counts(repeats, output_size))


def repeat_interleave_int(self: Tensor, repeats: int, dim: int | None = None, output_size: int | None = None) -> Tensor:
    """Each slice of `self` along `dim` `repeats` times."""
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    if dim is None:
        self, dim = F.reshape(self, [-1]), 0
    at = wrap_dim(dim, self.dim())
    if self.dim() == 0:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    shape = list(self.shape)
    wide = F.unsqueeze(self, at + 1)
    total = shape[at] * repeats
    if output_size is not None and output_size != total:
        raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {total} but got {output_size}")
    spread = F.expand(wide, [*shape[: at + 1], repeats, *shape[at + 1 :]])
    copy = F.clone(spread, memory_format=contiguous_format)
    return F.reshape(copy, [*shape[:at], total, *shape[at + 1 :]])


# Rearranging


def fliplr(self: Tensor) -> Tensor:
    """Columns in reverse order."""
    if self.dim() < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return F.flip(self, [1])


def flipud(self: Tensor) -> Tensor:
    """Rows in reverse order."""
    if self.dim() < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return F.flip(self, [0])


def rot90(self: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """self turned by `k` right angles in the plane of two dimensions."""
    dims = list(dims)
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if self.dim() < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {self.dim()}")
    if len({wrap_dim(dim, self.dim()) for dim in dims}) == 1:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    k %= 4
    if k == 1:
        return F.transpose(F.flip(self, [dims[1]]), dims[0], dims[1])
    if k == 2:
        return F.flip(self, dims)
    if k == 3:
        return F.transpose(F.flip(self, [dims[0]]), dims[0], dims[1])
    return F.clone(self, memory_format=contiguous_format)


def diag(self: Tensor, diagonal: int = 0) -> Tensor:
    """A matrix with a vector on its diagonal, or a copy of the diagonal of a matrix."""
    if self.dim() == 1:
        return F.diag_embed(self, diagonal)
    if self.dim() == 2:
        return F.clone(F.diagonal(self, diagonal), memory_format=contiguous_format)
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {self.dim()}D")


def diagflat(self: Tensor, offset: int = 0) -> Tensor:
    """A matrix with the elements of `self` on its diagonal."""
    return F.diag_embed(F.reshape(self, [-1]), offset)


def channel_shuffle(self: Tensor, groups: int) -> Tensor:
    """Channels of the groups one after the other."""
    if self.dim() <= 2:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(self.shape)}")
    batch, channels, *spatial = self.shape
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
    split = F.reshape(self, [batch, groups, channels // groups, *spatial])
    shuffled = F.reshape(F.transpose(split, 1, 2), list(self.shape))
    return F.clone(shuffled, memory_format=_suggested(self))


def _suggested(self: Tensor) -> memory_format:
    """The memory format that the strides look like."""
    if prefers_channels_last(self.shape, self.stride()):
        return channels_last if self.dim() == 4 else channels_last_3d
    return contiguous_format


# Padding


def pad(self: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad the last dimensions, which `pad` lists from the last one on as (before, after)."""
    pad = list(pad)
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * self.dim():
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {self.dim()}"
        )
    if mode == "constant":
        return F.constant_pad_nd(self, pad, 0.0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    for count in (1, 2, 3):
        if len(pad) == 2 * count and self.dim() in (count + 1, count + 2):
            if mode == "reflect":
                return (F.reflection_pad1d, F.reflection_pad2d, F.reflection_pad3d)[count - 1](self, pad)
            if mode == "replicate":
                return (F.replication_pad1d, F.replication_pad2d, F.replication_pad3d)[count - 1](self, pad)
            if mode == "circular":
                return F._pad_circular(self, pad)
    raise NotImplementedError(
        f"Padding size {len(pad)} is not supported for {self.dim()}D input tensor.\n"
        "Supported combinations for non-constant padding:\n"
        "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
        "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
        "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
    )


def pad_circular(self: Tensor, pad: Sequence[int]) -> Tensor:
    """Pad with what stands at the other end."""
    count = len(pad) // 2
    if self.dim() - count not in (1, 2):
        least, most = 2 * (self.dim() - 1), 2 * (self.dim() - 2)
        raise RuntimeError(
            "Invalid padding size, expected 1 or 2 non-padded dimensions, which would be equivalent to padding of "
            f"length {least} or {most} respectively but got {len(pad)}"
        )
    self = F.contiguous(self)
    for place in range(count):
        before, after = pad[2 * place], pad[2 * place + 1]
        dim = self.dim() - 1 - place
        size = self.shape[dim]
        if before > size or after > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if size + before + after < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
        inner = F.slice(self, dim, max(-before, 0), size - max(-after, 0))
        parts = [inner]
        if before > 0:
            left = inner.shape[dim]
            parts.insert(0, F.slice(inner, dim, left - before, left))
        if after > 0:
            parts.append(F.slice(inner, dim, 0, after))
        self = F.cat(parts, dim) if len(parts) > 1 else inner
    return self


def chunk_cat(tensors: list[Tensor], dim: int, num_chunks: int) -> Tensor:
    """Every tensor in `num_chunks` chunks along `dim`, filled up with zeros; the first chunks of all side by side, then the second ones."""
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    if num_chunks < 1:
        raise RuntimeError("_chunk_cat expects positive num_chunks")
    first = tensors[0]
    at = wrap_dim(dim, first.dim())
    for tensor in tensors:
        if not tensor.numel():
            raise RuntimeError("_chunk_cat expects non-empty tensor")
        if tensor.dtype is not first.dtype:
            raise RuntimeError("_chunk_cat expects all input tensors with the same dtype")
        if tensor.dim() <= at:
            raise RuntimeError("_chunk_cat expects dim < ndim for all input tensors")
        if tensor.shape[:at] != first.shape[:at]:
            raise RuntimeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors")
    rows = []
    for tensor in tensors:
        size = tensor.shape[at]
        missing = -size % num_chunks
        if missing:
            tensor = F.constant_pad_nd(tensor, [0] * (2 * (tensor.dim() - at - 1)) + [0, missing])
        rows.append(tensor.reshape((*tensor.shape[:at], num_chunks, -1)))
    return F.cat(rows, at + 1)
