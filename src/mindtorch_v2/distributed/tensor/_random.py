"""Numbers that are drawn for sharded tensors.

Note [The same numbers on every rank]
A tensor that is sharded has the numbers that it would have on one process: every rank draws those of the whole tensor and keeps its piece, so results do not depend on how many ranks there are
or how a tensor lies. For this all ranks of a mesh draw from the same state. It is that of the mesh's first rank: the others take it over when the mesh first draws, and after
`torch.distributed.tensor.manual_seed`; from then on the ranks stay alike as long as each draws what the others draw.
"""

from __future__ import annotations

import mindtorch_v2 as torch

from .._collectives import broadcast
from ..device_mesh import DeviceMesh


def is_rng_supported_mesh(device_mesh: DeviceMesh) -> bool:
    """Whether random numbers can be drawn on a mesh: on every one."""
    return True


def align(mesh: DeviceMesh) -> None:
    """Have all ranks of a mesh draw from the state of its first rank, once for each mesh."""
    if mesh._dims in mesh._root.alike or mesh.get_coordinate() is None:
        return
    take_state(mesh)
    mesh._root.alike.add(mesh._dims)


def take_state(mesh: DeviceMesh) -> None:
    """Take the state of the generator of the mesh's first rank."""
    state = torch.get_rng_state()
    for number, count in enumerate(mesh.shape):
        if count > 1:
            broadcast(state, group=mesh.get_group(number), group_src=0)
    torch.set_rng_state(state)


def manual_seed(seed: int, device_mesh: DeviceMesh) -> None:
    """Seed the generator of each rank of a mesh alike. RuntimeError for a seed that is not the same on all of them."""
    given = torch.tensor([seed])
    for number, count in enumerate(device_mesh.shape):
        if count > 1:
            broadcast(given, group=device_mesh.get_group(number), group_src=0)
    if int(given) != seed:
        raise RuntimeError("calling manual_seed function with different seed values on the ranks of a mesh")
    torch.manual_seed(seed)
    device_mesh._root.alike.add(device_mesh._dims)
