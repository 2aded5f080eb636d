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


class Decoder(nn.Module):
    """A tiny language model: embeddings that are the head's too, attention over what came before, norms."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, norm_first=True)
        self.table, self.layers = nn.Embedding(24, 16), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 24, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.head(self.norm(self.layers(self.table(tokens), mask=mask, is_causal=True)))


def loss_of(model, tokens):
    scores = model(tokens[:, :-1])
    return nn.functional.cross_entropy(scores.reshape(-1, 24), tokens[:, 1:].reshape(-1))


def train_decoder(rank, size):
    """Losses of AdamW with accumulated and clipped gradients, and noise by each rank's own seed, are those of one process on the joined batch."""
    torch.manual_seed(5)
    model = DistributedDataParallel(Decoder(), bucket_cap_mb=0.005)
    torch.manual_seed(5)
    plain = Decoder()
    optimizers = [torch.optim.AdamW(one.parameters(), 0.01) for one in (model, plain)]
    own = [torch.Generator().manual_seed(1000 + other) for other in range(size)]
    for _ in range(6):
        parts = [[torch.randint(0, 24, (2, 9), generator=one) for one in own] for _ in range(2)]
        for optimizer in optimizers:
            optimizer.zero_grad()
        with model.no_sync():
            first = loss_of(model, parts[0][rank]) / 2
            first.backward()
        second = loss_of(model, parts[1][rank]) / 2
        second.backward()
        losses = [loss_of(plain, torch.cat(part)) / 2 for part in parts]
        sum(losses).backward()
        got = (first + second).detach()
        dist.all_reduce(got, dist.ReduceOp.AVG)
        torch.testing.assert_close(got, sum(losses).detach(), rtol=1e-5, atol=1e-5)
        for one in (model, plain):
            nn.utils.clip_grad_norm_(one.parameters(), 0.5)
        for optimizer in optimizers:
            optimizer.step()
    for one, other in zip(model.module.parameters(), plain.parameters()):
        if one.dim() > 1:  # attention's bias of keys has no gradient but rounding, of which AdamW makes steps
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    train(rank, size)
    train(rank, size, bucket_cap_mb=1e-4)
    train(rank, size, find_unused_parameters=True)
    train(rank, size, hook=lambda state, bucket: dist.all_reduce(bucket.buffer() / size, async_op=True).get_future())
    train_decoder(rank, size)
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
