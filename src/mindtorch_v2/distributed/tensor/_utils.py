"""What programs that read and write pieces by themselves ask: which piece of a tensor a rank has, and how it lies."""

from __future__ import annotations

from collections.abc import Sequence

from ..device_mesh import DeviceMesh
from ..placements import Placement, Shard
from ._spec import local_part


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement], skip_offset: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this rank's piece, and where it begins in the whole; `skip_offset` leaves that out.

    A piece without elements begins behind the last element. Who is not in the mesh has the shape (0,), which begins nowhere.
    """
    place = mesh.get_coordinate()
    if place is None:
        return (0,), ()
    divided = {p.dim: global_shape[p.dim] for p in placements if isinstance(p, Shard)}
    shape, offset = local_part(global_shape, mesh.shape, placements, place)
    if skip_offset:
        return shape, ()
    return shape, tuple(
        divided.get(dim, start) if not size else start
        for dim, (size, start) in enumerate(zip(shape, offset, strict=True))
    )
