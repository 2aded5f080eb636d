"""Where the elements of a sharded tensor are: its shape, its mesh, and a placement for each of the mesh's dimensions.

Note [The order of parts]
Where several dimensions of a mesh divide one dimension of a tensor, the first divides the whole, the next one each of the parts, and so on; `_StridedShard` says of a dimension that it
comes after those that are not strided. So every rank has one piece, from an offset on, and what is undone is undone in the reverse order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import mindtorch_v2 as torch

from ..device_mesh import DeviceMesh
from ..placements import Placement, Replicate, Shard, _StridedShard, part_of


class TensorMeta(NamedTuple):
    """The shape, strides and dtype of the whole tensor."""

    shape: torch.Size
    stride: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True)
class DTensorSpec:
    """A mesh, a placement for each of its dimensions, and what the whole tensor is."""

    mesh: DeviceMesh
    placements: tuple[Placement, ...]
    tensor_meta: Any = None

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh."""
        return self.mesh

    @property
    def shape(self) -> torch.Size:
        """The shape of the whole tensor."""
        return self.tensor_meta.shape

    @property
    def stride(self) -> tuple[int, ...]:
        """The strides of the whole tensor."""
        return self.tensor_meta.stride

    @property
    def ndim(self) -> int:
        """How many dimensions the tensor has."""
        return len(self.tensor_meta.shape)

    def is_replicated(self) -> bool:
        """Whether every rank has all of it."""
        return all(p.is_replicate() for p in self.placements)

    def __str__(self) -> str:
        shown = "".join(str(p) for p in self.placements)
        return f"Spec({self.tensor_meta.dtype}{tuple(self.shape)}({shown}) on {self.mesh})"


def order(placements: Sequence[Placement], dim: int) -> list[int]:
    """The dimensions of the mesh that divide a dimension of the tensor, in the order in which they do: see Note [The order of parts]."""
    found = [number for number, p in enumerate(placements) if isinstance(p, Shard) and p.dim == dim]
    return sorted(found, key=lambda number: isinstance(placements[number], _StridedShard))


def local_part(
    shape: Sequence[int], mesh: Sequence[int], placements: Sequence[Placement], place: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of the piece at a place of the mesh, and where it begins in the whole.

    Args:
        mesh: the sizes of the mesh's dimensions.
    """
    sizes, offsets = list(shape), [0] * len(shape)
    for dim in {p.dim for p in placements if isinstance(p, Shard)}:
        for number in order(placements, dim):
            start, sizes[dim] = part_of(sizes[dim], mesh[number], place[number])
            offsets[dim] += start
    return tuple(sizes), tuple(offsets)


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a contiguous tensor."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def normal(placements: Sequence[Placement], ndim: int) -> tuple[Placement, ...]:
    """The placements with dimensions counted from the front. IndexError for one that the tensor does not have."""
    found = []
    for p in placements:
        if isinstance(p, Shard):
            dim = p.dim + ndim if p.dim < 0 else p.dim
            if not 0 <= dim < max(ndim, 1):
                raise IndexError(f"{p!r} of a tensor with {ndim} dimensions")
            if dim != p.dim:
                p = _StridedShard(dim, p.split_factor) if isinstance(p, _StridedShard) else Shard(dim)
        elif not isinstance(p, Placement):
            raise TypeError(f"placements are Shard, Replicate or Partial, not {p!r}")
        found.append(p)
    return tuple(found)


def for_gradient(placements: Sequence[Placement]) -> tuple[Placement, ...]:
    """How the gradient of a tensor lies: as it does, and whole where it has terms, since each of them has the gradient of their sum."""
    return tuple(Replicate() if p.is_partial() else p for p in placements)
