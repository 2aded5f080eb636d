"""Run by the ranks of several launchers, whose worlds of MPI are joined: every kind of call, groups across machines, and training."""

import torch
import torch.distributed as dist
from torch import nn


def main():
    dist.init_process_group("mpi")
    rank, size = dist.get_rank(), dist.get_world_size()
    assert type(dist.group.WORLD.engine).__name__ == "MpiEngine"
    for count in (3, 100_003):
        x = torch.arange(float(count)) + rank
        dist.all_reduce(x)
        assert torch.equal(x, torch.arange(float(count)) * size + size * (size - 1) / 2)
        y = torch.empty(count)
        work = dist.isend(torch.full((count,), float(rank)), (rank + 1) % size)
        dist.recv(y, (rank - 1) % size)
        work.wait()
        assert torch.equal(y, torch.full((count,), float((rank - 1) % size)))
        parts = [torch.empty(count) for _ in range(size)]
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
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(300, 300))
    model(torch.ones(2, 300) * (rank + 1)).sum().backward()
    assert torch.equal(model.module.weight.grad, torch.full((300, 300), size + 1.0))
    dist.barrier()
    dist.destroy_process_group()
    print("joined")


if __name__ == "__main__":
    main()
