"""Run by the ranks of two launchers, which are taken for two machines: tensors of every size go between them."""

import os
import warnings

import torch
import torch.distributed as dist
from torch import nn

from mindtorch_v2.distributed import _store_engine

_store_engine._machine = lambda: f"machine {os.environ['GROUP_RANK']}"
_store_engine._files_of = lambda pid: f"/nowhere/{pid}"


def main():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        dist.init_process_group("gloo")
        rank, size = dist.get_rank(), dist.get_world_size()
        for count in (3, 100_003):
            x = torch.arange(float(count)) + rank
            dist.all_reduce(x)
            assert torch.equal(x, torch.arange(float(count)) * size + size * (size - 1) / 2)
            y = torch.empty(count)
            work = dist.isend(torch.full((count,), float(rank)), (rank + 1) % size)
            dist.recv(y, (rank - 1) % size)
            work.wait()
            assert torch.equal(y, torch.full((count,), float((rank - 1) % size)))
    slow = [str(one.message) for one in said if "through the store's server, which is slow" in str(one.message)]
    assert len(slow) == (1 if rank == 0 else 0), slow
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(300, 300))
    model(torch.ones(2, 300) * (rank + 1)).sum().backward()
    assert torch.equal(model.module.weight.grad, torch.full((300, 300), size + 1.0))
    dist.destroy_process_group()
    print("exchanged")


if __name__ == "__main__":
    main()
