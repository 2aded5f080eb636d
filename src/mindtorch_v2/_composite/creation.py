"""New tensors made by other factories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindtorch_v2._device import get_default_device, placed
from mindtorch_v2._dtype import get_default_dtype
from mindtorch_v2._generated import functions as F
from mindtorch_v2._storage import UntypedStorage, view_of_root
from mindtorch_v2._tensor import Tensor, wrap


def empty_permuted(
    size: Sequence[int],
    physical_layout: Sequence[int],
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Tensor:
    """Uninitialised, with the dimensions in memory in the order of `physical_layout`.

    Raises RuntimeError unless the layout is a permutation of the dimensions.
    """
    ndim = len(size)
    if len(physical_layout) != ndim:
        raise RuntimeError(
            f"Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = {ndim} "
            f"is not equal to len(physical_layout) = {len(physical_layout)}"
        )
    strides = [0] * ndim
    seen = set()
    for place, dim in enumerate(physical_layout):
        if not 0 <= dim < ndim:
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {ndim - 1}, but got {dim} at index {place}).  "
                "NB: negative dims not currently supported; file an issue if you want it."
            )
        if dim in seen:
            raise RuntimeError("Duplicate dim not allowed")
        seen.add(dim)
    step = 1
    for dim in reversed(physical_layout):
        strides[dim] = step
        step *= max(size[dim], 1)
    return F.empty_strided(size, strides, dtype=dtype, layout=layout, device=device)


def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Fill the main diagonal in place; `wrap`: of a tall matrix the diagonals that begin below it, too, each with a row between.

    Raises:
        RuntimeError: for a vector, and for more than two dimensions of several sizes.
    """
    if self.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    if self.ndim > 2 and len(set(self.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    height, width = self.shape[:2]
    step, offset, count = sum(self.stride()), self.storage_offset(), min(height, width)
    self.as_strided((count,), (step,), offset).fill_(fill_value)
    if wrap and self.ndim == 2 and height > width + 1:
        rest = -(-self.numel() // (width + 1)) - count
        self.as_strided((rest,), (step,), offset + self.stride(0) * (width + 1)).fill_(fill_value)
    return self


def from_file(
    filename: str,
    shared: bool | None = None,
    size: int | None = 0,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Tensor:
    """The first `size` elements of a file, mapped into memory: a vector.

    shared: changes go to the file, which is made or lengthened when it is too small.

    Raises:
        RuntimeError: if the file cannot be read, or is too small; if the tensor shall lie in pinned memory.
        NotImplementedError: for a device other than the CPU.
    """
    if pin_memory:
        raise RuntimeError("tensors constructed from a file cannot be pinned")
    where = get_default_device() if device is None else placed(device)
    if where.type != "cpu":
        raise NotImplementedError(f"aten::from_file: a file cannot be mapped into the memory of {where}")
    dtype = get_default_dtype() if dtype is None else dtype
    count = size or 0
    storage = UntypedStorage.from_file(filename, bool(shared), count * dtype.itemsize)
    return wrap(view_of_root(storage._root, (count,), (1,), 0, dtype.np), dtype)


def zeros_of_features(self: Tensor, other: Tensor, self_num_batch_dims: int = 0) -> Tensor:
    """Zeros with the dtype, the geometry and as much memory as `other`, for each place in the first dimensions of self."""
    batch = list(self.shape[:self_num_batch_dims])
    room = other.untyped_storage().nbytes() // other.element_size()
    strides, step = [], room
    for size in reversed(batch):
        strides.insert(0, step)
        step *= size
    memory = F.zeros([step], dtype=other.dtype, device=other.device)
    return F.as_strided(memory, [*batch, *other.shape], [*strides, *other.stride()], other.storage_offset())
