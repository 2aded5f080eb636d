"""One of several processes that a shell starts: URL RANK SIZE HOW."""

import sys
from datetime import timedelta

import torch
import torch.distributed as dist

if __name__ == "__main__":
    method, rank, size, how = sys.argv[1:]
    timeout = timedelta(seconds=3 if how == "fails" else 100)
    dist.init_process_group("gloo", init_method=method, rank=int(rank), world_size=int(size), timeout=timeout)
    total = torch.ones(3) * int(rank)
    dist.all_reduce(total)
    assert total.tolist() == [sum(range(int(size)))] * 3
    if how == "fails" and int(rank) == 1:
        raise ValueError("no more")
    dist.all_reduce(torch.ones(100000))
    print(type(dist.group.WORLD.engine).__name__)
    dist.destroy_process_group()
