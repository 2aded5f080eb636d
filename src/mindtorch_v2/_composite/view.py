"""Views made of other views, and the forms that write through a view into a copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindtorch_v2._autograd.node import live_node
from mindtorch_v2._generated import functions as F
from mindtorch_v2._layout import contiguous_format, preserve_format
from mindtorch_v2._state import is_plain_class
from mindtorch_v2._tensor import Tensor, wrap

Tensors = tuple[Tensor, ...]


def ravel(self: Tensor) -> Tensor:
    """All elements in one dimension; a copy only where a view is impossible."""
    return F.reshape(contiguous(self), [-1])


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """self in other's shape."""
    return F.view(self, list(other.shape))


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """self in other's shape, copied where a view is impossible."""
    return F.reshape(self, list(other.shape))


def _apart(views: Tensors) -> Tensors:
    """The same memory and history as tensors that are no views, so that each may be written to; the others are not told."""
    made = []
    for view in views:
        if not is_plain_class(type(view)):  # what a subclass holds is its own matter
            made.append(view)
            continue
        one = wrap(view._payload, view._dtype)
        one._node = live_node(view)
        if view._nr:
            one._nr = view._nr
        made.append(one)
    return tuple(made)


def unsafe_split(self: Tensor, split_size: int, dim: int = 0) -> Tensors:
    """`split`, for whoever reads each part once."""
    return _apart(F.split(self, split_size, dim))


def unsafe_split_with_sizes(self: Tensor, split_sizes: Sequence[int], dim: int = 0) -> Tensors:
    """`split_with_sizes`, for whoever reads each part once."""
    return _apart(F.split_with_sizes(self, split_sizes, dim))


def unsafe_chunk(self: Tensor, chunks: int, dim: int = 0) -> Tensors:
    """`chunk`, for whoever reads each part once."""
    return _apart(F.chunk(self, chunks, dim))


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """self broadcast to other's shape."""
    return F.expand(self, list(other.shape))


def mH(self: Tensor) -> Tensor:
    """The conjugate transpose of the last two dimensions."""
    if self.dim() == 1:
        raise RuntimeError("tensor.mH is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return F.conj(F.mT(self))


def adjoint(self: Tensor) -> Tensor:
    """The conjugate transpose of the last two dimensions; of a number, its conjugate. RuntimeError for 1-D tensors."""
    if not self.dim():
        return F.conj(self)
    if self.dim() < 2:
        raise RuntimeError(
            f"tensor.adjoint() is only supported on matrices or batches of matrices. Got {self.dim()}-D tensor."
        )
    return F.conj(F.transpose(self, -2, -1))


def matrix_H(self: Tensor) -> Tensor:
    """The conjugate transpose of a matrix."""
    if self.dim() not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {self.dim()}-D tensor."
            + (" For batches of matrices, consider using tensor.mH" if self.dim() > 2 else "")
        )
    return F.conj(F.transpose(self, 0, 1)) if self.dim() else F.conj(self)


def narrow_tensor(self: Tensor, dim: int, start: Tensor, length: int) -> Tensor:
    """`narrow` from a 0-dim integer tensor on."""
    if start.dim() != 0 or start.dtype.category != 1:
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    first = int(start.item())
    if first < 0:
        first += self.shape[dim]
    return F.narrow(self, dim, first, length)


def narrow_copy(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A copy of `narrow`."""
    if dim >= self.dim() > 0:
        raise RuntimeError(
            f"Dimension out of range (expected to be in range of [{-self.dim()}, {self.dim() - 1}], but got {dim})"
        )
    return F.clone(F.narrow(self, dim, start, length), memory_format=contiguous_format)


def linalg_diagonal(A: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal of the last two dimensions."""
    return F.diagonal(A, offset, dim1, dim2)


def tensor_split_tensor(self: Tensor, tensor_indices_or_sections: Tensor, dim: int = 0) -> Tensors:
    """`tensor_split` whose sections or indices are given as an int64 CPU tensor."""
    given = tensor_indices_or_sections
    if given.device.type != "cpu":
        raise RuntimeError(f"tensor_split expected tensor_indices_or_sections to be on cpu, but it's on {given.device}")
    if str(given.dtype) != "torch.int64":
        raise RuntimeError(
            f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {given.dtype.cpp}"
        )
    if given.dim() > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but got a "
            f"tensor with {given.dim()} dims"
        )
    return F.tensor_split(self, given.tolist(), dim)


def hsplit(self: Tensor, indices: int | Sequence[int]) -> Tensors:
    """Parts along dimension 1, or 0 of a 1-D tensor. RuntimeError for 0-dim tensors and sections that do not divide."""
    if self.dim() < 1:
        raise RuntimeError(
            f"torch.hsplit requires a tensor with at least 1 dimension, but got a tensor with {self.dim()} dimensions!"
        )
    return _split("hsplit", self, indices, 0 if self.dim() == 1 else 1)


def vsplit(self: Tensor, indices: int | Sequence[int]) -> Tensors:
    """Parts along dimension 0."""
    if self.dim() < 2:
        raise RuntimeError(
            f"torch.vsplit requires a tensor with at least 2 dimension, but got a tensor with {self.dim()} dimensions!"
        )
    return _split("vsplit", self, indices, 0)


def dsplit(self: Tensor, indices: int | Sequence[int]) -> Tensors:
    """Parts along dimension 2."""
    if self.dim() < 3:
        raise RuntimeError(
            f"torch.dsplit requires a tensor with at least 3 dimension, but got a tensor with {self.dim()} dimensions!"
        )
    return _split("dsplit", self, indices, 2)


def _split(name: str, self: Tensor, indices: int | Sequence[int], dim: int) -> Tensors:
    size = self.shape[dim]
    if isinstance(indices, int) and (indices == 0 or size % indices):
        raise RuntimeError(
            f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {size} is not divisible by the "
            f"split_size {indices}!"
        )
    return F.tensor_split(self, indices, dim)


def lift(self: Tensor) -> Tensor:
    """self."""
    return self


def contiguous(self: Tensor, memory_format: Any = contiguous_format) -> Tensor:
    """self where it is contiguous in `memory_format` already, else a copy."""
    if memory_format is preserve_format and self.is_contiguous():
        return self
    if self.is_contiguous(memory_format=memory_format):
        return self
    return F.clone(self, memory_format=memory_format)


def real(self: Tensor) -> Tensor:
    """The real part as a view; a real tensor itself."""
    return F.select(F.view_as_real(self), -1, 0) if self.dtype.is_complex else self


def imag(self: Tensor) -> Tensor:
    """The imaginary part as a view. RuntimeError for real tensors."""
    if not self.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return F.select(F.view_as_real(self), -1, 1)


def _copied(self: Tensor) -> Tensor:
    """A copy with self's own strides; contiguous where elements of self share memory."""
    strides = self.stride()
    if any(step == 0 and size > 1 for size, step in zip(self.shape, strides)):
        return F.clone(self, memory_format=contiguous_format)
    return F.copy_(F.empty_strided(list(self.shape), list(strides), dtype=self.dtype, device=self.device), self)


def _written(self: Tensor, src: Tensor, view: Any) -> Tensor:
    """A copy of self in which the part that `view(copy)` shows is `src`."""
    copy = _copied(self)
    part = view(copy)
    if part.shape != src.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = {list(part.shape)}"
        )
    F.copy_(part, src)
    return copy


def select_scatter(self: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of self with `src` at `select(dim, index)`. RuntimeError unless the shapes agree."""
    return _written(self, src, lambda copy: F.select(copy, dim, index))


def slice_scatter(
    self: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy of self with `src` in a slice."""
    return _written(self, src, lambda copy: F.slice(copy, dim, start, end, step))


def diagonal_scatter(self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of self with `src` on a diagonal."""
    return _written(self, src, lambda copy: F.diagonal(copy, offset, dim1, dim2))


def as_strided_scatter(
    self: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """A copy of self with `src` in a strided view of it."""
    if self.is_contiguous():
        start = self.storage_offset()
        places = F.as_strided(
            F.arange(self.numel(), device=self.device), size, stride, max((storage_offset or start) - start, 0)
        )
        if places.shape != src.shape:
            raise RuntimeError(
                f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = "
                f"{list(places.shape)}"
            )
        flat = F.index_put(F.reshape(self, [-1]), [F.reshape(places, [-1])], F.reshape(src, [-1]))
        return F.reshape(flat, list(self.shape))
    start = self.storage_offset()
    offset = max((start if storage_offset is None else storage_offset) - start, 0)
    return _written(self, src, lambda copy: F.as_strided(copy, size, stride, offset))
