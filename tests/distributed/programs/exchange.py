"""What programs on several machines have in common: messages of every size, and training."""

from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch import nn


def sizes() -> Iterator[torch.Tensor]:
    """For a small and a large count of numbers: reduce them over all ranks, pass them around the ring, and give what came from the rank before."""
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
        yield y


def train() -> None:
    """A step's gradients are the mean of all ranks'."""
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(300, 300))
    model(torch.ones(2, 300) * (rank + 1)).sum().backward()
    assert torch.equal(model.module.weight.grad, torch.full((300, 300), size + 1.0))
