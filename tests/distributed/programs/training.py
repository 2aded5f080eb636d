"""Run by several ranks: gradients and weights of DistributedDataParallel are those of one process on the joined batch."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.spare = nn.Linear(6, 8), nn.Linear(8, 3), nn.Linear(3, 3)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x, spare=False):
        x = self.second(torch.tanh(self.first(x)))
        return self.spare(x) if spare else x


def same(model, plain):
    for (name, one), other in zip(model.named_parameters(), plain.parameters()):
        torch.testing.assert_close(one, other, msg=name)
        assert (one.grad is None) == (other.grad is None), name
        if one.grad is not None:
            torch.testing.assert_close(one.grad, other.grad, msg=name)


def train(rank, size, hook=None, **options):
    torch.manual_seed(100 + rank)
    model = DistributedDataParallel(Net(), **options)
    if hook is not None:
        model.register_comm_hook(None, hook)
    torch.manual_seed(100)
    plain = Net()
    optimizers = [torch.optim.SGD(net.parameters(), 0.1, momentum=0.9) for net in (model, plain)]
    for step in range(4):
        data = torch.randn(size, 2, 6, generator=torch.Generator().manual_seed(step))
        spare = not options.get("find_unused_parameters") or step == 2
        for optimizer in optimizers:
            optimizer.zero_grad()
        if step == 3:
            with model.no_sync():
                model(data[rank] * 2, spare).square().mean().backward()
        model(data[rank], spare).square().mean().backward()
        batches = [data, data * 2] if step == 3 else [data]
        for batch in batches:
            plain(batch.reshape(-1, 6), spare).square().mean().backward()
        same(model.module, plain)
        for optimizer in optimizers:
            optimizer.step()
    same(model.module, plain)


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    train(rank, size)
    train(rank, size, bucket_cap_mb=1e-4)
    train(rank, size, find_unused_parameters=True)
    train(rank, size, hook=lambda state, bucket: dist.all_reduce(bucket.buffer() / size, async_op=True).get_future())
    model = DistributedDataParallel(Net())
    model(torch.ones(1, 6)).sum().backward()
    try:
        model(torch.ones(1, 6))
    except RuntimeError as error:
        assert "did not receive grad for rank" in str(error) and "4 5" in str(error), error
    else:
        raise AssertionError("a parameter that was left out was not missed")
    dist.destroy_process_group()
    print("ok", rank, flush=True)


if __name__ == "__main__":
    main()
