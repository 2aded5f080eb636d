"""Run by the ranks of several launchers, whose worlds of MPI are joined: every kind of call, groups across machines, and training."""

import exchange
import torch
import torch.distributed as dist


def main():
    dist.init_process_group("mpi")
    rank, size = dist.get_rank(), dist.get_world_size()
    assert type(dist.group.WORLD.engine).__name__ == "MpiEngine"
    for y in exchange.sizes():
        parts = [torch.empty_like(y) for _ in range(size)]
        dist.all_gather(parts, y)
        assert [int(part[0]) for part in parts] == [(each - 1) % size for each in range(size)]
    ends = dist.new_group([0, size - 1])  # one of each machine
    if rank in (0, size - 1):
        z = torch.ones(5) * (rank + 1)
        dist.all_reduce(z, group=ends)
        assert torch.equal(z, torch.full((5,), size + 1.0))
    told = [None] * size
    dist.all_gather_object(told, {"rank": rank})
    assert told == [{"rank": each} for each in range(size)]
    exchange.train()
    dist.barrier()
    dist.destroy_process_group()
    print("joined")


if __name__ == "__main__":
    main()
