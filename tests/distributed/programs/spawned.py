"""Runs `collectives.py` in processes of `mp.spawn`, which find each other as the argument says: a URL, or `env`. ENGINE is what they exchange by."""

import os
import sys

import collectives
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def first(rank, size, path, engine):
    """Meet once before: the second meeting finds what MPI has begun."""
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=size)
    assert type(dist.group.WORLD.engine).__name__ == engine
    dist.barrier()
    if rank == 0:
        dist.isend(torch.arange(300000.0), 1)  # it arrives, though nobody waits for it here
    elif rank == 1:
        x = torch.empty(300000)
        dist.recv(x, 0)
        assert torch.equal(x, torch.arange(300000.0))
    dist.destroy_process_group()


def run(rank, size, method, port, path, engine):
    first(rank, size, path, engine)
    assert not [name for name in os.environ if name.startswith("PMI")]
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=port, RANK=str(rank), WORLD_SIZE=str(size))
    if method == "env":
        collectives.main(few=True)
    else:
        collectives.main(few=True, init_method=method, rank=rank, world_size=size)


if __name__ == "__main__":
    method, size, *more = sys.argv[1:]
    mp.spawn(run, (int(size), method, *more), int(size))
