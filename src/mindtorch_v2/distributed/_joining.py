"""One MPI world for the ranks of several machines, whose launchers started a world each.

Note [Joining worlds]
`torchrun` on several machines has each run an mpiexec of its own. The ranks say by the store whether theirs did; where all have, machine after machine joins those before it: rank 0 opens a port, whose name the store
has, and all that are joined accept while all ranks of the next machine connect. Merged, that is a communicator with the ranks of all, in the order of machines, which is that of RANK. An MPI that cannot open ports leaves
the exchange to the store, on all ranks alike.
"""

from __future__ import annotations

import os
from typing import Any

from ._mpi_engine import launched, mpi, world
from ._stores import PrefixStore, Store


def several_launchers(size: int) -> bool:
    """Whether torchrun started this rank on one of several machines of a job of so many ranks."""
    return (
        "TORCHELASTIC_RUN_ID" in os.environ
        and int(os.environ.get("GROUP_WORLD_SIZE", "1")) > 1
        and int(os.environ.get("WORLD_SIZE", "0")) == size
    )


def joined(store: Store, rank: int, size: int, available: bool) -> Any:
    """A communicator of all ranks, which all of them ask for; None where they cannot have one. RuntimeError where joining has begun and failed."""
    store = PrefixStore("joining", store)
    node, nodes = int(os.environ["GROUP_RANK"]), int(os.environ["GROUP_WORLD_SIZE"])
    found = launched()
    ready = available and found is not None and found["size"] == int(os.environ["LOCAL_WORLD_SIZE"])
    store.set(f"ready/{rank}", "1" if ready else "0")
    keys = [f"ready/{each}" for each in range(size)]
    store.wait(keys)
    if any(store.get(key) != b"1" for key in keys):
        return None
    MPI, comm = mpi(), world()
    if rank == 0:
        store.set("port", _open(MPI))
    port = store.get("port").decode()
    if not port:
        return None
    between: list[Any] = []
    try:
        for other in range(1, nodes):
            if node > other:
                continue
            if node == other:
                store.wait([f"accepts/{other}"])
                between.append(comm.Connect(port, MPI.INFO_NULL, 0))
            else:
                if rank == 0:
                    store.set(f"accepts/{other}", "1")
                between.append(comm.Accept(port, MPI.INFO_NULL, 0))
            comm = between[-1].Merge(high=node == other)
    except MPI.Exception as error:
        raise RuntimeError(
            f"rank {rank} could not join the MPI of the other machines: {error}; torchrun --engine store has ranks exchange tensors by the store"
        ) from None
    if rank == 0:
        MPI.Close_port(port)
    if (comm.Get_rank(), comm.Get_size()) != (rank, size):
        raise RuntimeError(f"rank {rank} of {size} is {comm.Get_rank()} of {comm.Get_size()} in the joined MPI")
    return comm


def _open(MPI: Any) -> str:
    """The name of a new port; none where this MPI opens none."""
    try:
        return MPI.Open_port()
    except MPI.Exception:
        return ""
