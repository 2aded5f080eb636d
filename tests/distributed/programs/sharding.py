"""Run by several ranks: what programs on sharded tensors compute is what they compute on whole ones."""

import contextlib
import io
import itertools

import torch
import torch.distributed as dist
import torch.distributed.tensor
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    full,
    ones,
    rand,
    randn,
    zeros,
)
from torch.distributed.tensor.debug import CommDebugMode, visualize_sharding
from torch.distributed.tensor.experimental import implicit_replication
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.distributed.tensor.placement_types import _StridedShard
from torch.utils.checkpoint import checkpoint


def close(found, wanted, what=""):
    if isinstance(found, DTensor):
        found = found.full_tensor()
    # Sums of parts round otherwise than the whole: next to the others' size where they cancel.
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=4e-6, msg=lambda text: f"{text}\n{what}")


def refused(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"{text}: taken")


def check_placements(mesh):
    """From every placement to every other one, of sizes that divide and of sizes that do not."""
    for shape in [(4, 8), (5, 3), (1, 2), (7,), (3, 0)]:
        whole = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
        places = [Replicate(), *(Shard(dim) for dim in range(len(shape)))]
        every = list(itertools.product(places, repeat=mesh.ndim))
        if mesh.ndim == 2:
            every.append((_StridedShard(0, split_factor=mesh.size(1)), Shard(0)))
        for before in every:
            made = distribute_tensor(whole, mesh, before)
            close(made, whole, (shape, before))
            for after in every:
                moved = made.redistribute(placements=after)
                assert moved.to_local().is_contiguous() or any(p.is_shard() for p in after)
                assert moved.placements == tuple(after) and moved.shape == whole.shape
                close(moved, whole, (shape, before, after))
                same = distribute_tensor(whole, mesh, after)
                close(moved.to_local(), same.to_local(), (shape, before, after))
        for after in every:
            terms = DTensor.from_local(whole, mesh, [Partial()] * mesh.ndim)
            close(terms.redistribute(placements=after), whole * mesh.size())
            terms = DTensor.from_local(whole, mesh, [Partial("avg")] * mesh.ndim)
            close(terms.redistribute(placements=after), whole)


def check_gradients(mesh, rank, size):
    """Of pieces that are put together and taken apart."""
    torch.manual_seed(3)
    data, factor = torch.randn(size * 2, 3), torch.randn(size * 2, 3)
    own = data[rank * 2 : rank * 2 + 2].clone().requires_grad_()
    whole = DTensor.from_local(own, mesh, [Shard(0)])
    assert whole.shape == (size * 2, 3) and whole.stride() == (3, 1) and whole.grad_fn is not None
    (whole.redistribute(placements=[Replicate()]).to_local() * factor).sum().backward()
    close(own.grad, factor[rank * 2 : rank * 2 + 2])
    leaf = distribute_tensor(data.clone().requires_grad_(), mesh, [Shard(0)])
    assert leaf.is_leaf and leaf.requires_grad
    (leaf.full_tensor(grad_placements=[Partial()]) * (factor / size)).sum().backward()
    assert leaf.grad.placements == (Shard(0),)
    close(leaf.grad, factor)
    own = torch.ones(2, requires_grad=True)
    total = DTensor.from_local(own * (rank + 1), mesh, [Partial()])
    close(total.redistribute(placements=[Replicate()]).to_local(), torch.full((2,), size * (size + 1) / 2))
    total.full_tensor().sum().backward()
    close(own.grad, torch.full((2,), rank + 1.0))


def program(x, w, b, g, t):
    """A little of what a transformer does."""
    y = F.linear(x, w, b)
    y = F.rms_norm(F.layer_norm(y, (16,), g, b), (16,), g)
    q = y.view(4, 6, 4, 4).transpose(1, 2)
    o = F.dropout(F.scaled_dot_product_attention(q, q, q, is_causal=True), 0.25)
    z = o.transpose(1, 2).reshape(24, 16)
    z = torch.cat([z[:, :8], F.silu(z[:, 8:])], -1) + F.embedding(t, w)[:, :1]
    z = (
        torch.stack([part.softmax(-1) for part in z.split([4, 12], -1)[1].chunk(3, -1)]).mean(0) @ w[:4]
        + z.norm()
        + z.amax()
    )
    return F.cross_entropy(z, t % 8, ignore_index=3)


def check_programs(mesh):
    torch.manual_seed(0)
    x, w, b, g = torch.randn(4, 6, 8), torch.randn(16, 8), torch.randn(16), torch.randn(16)
    t = torch.randint(0, 16, (24,))
    plain = [value.clone().requires_grad_() for value in (w, b, g)]
    torch.manual_seed(1)
    loss = program(x, *plain, t)
    loss.backward()
    every = [Replicate(), Shard(0), Shard(1), Shard(2)]
    for px, pw in itertools.product(itertools.product(every, repeat=mesh.ndim), [Replicate(), Shard(0), Shard(1)]):
        rows = [pw, *[Replicate()] * (mesh.ndim - 1)]
        of_bias = [Shard(0) if p == Shard(0) else Replicate() for p in rows]
        parts = [
            distribute_tensor(v.clone().requires_grad_(), mesh, p) for v, p in ((w, rows), (b, of_bias), (g, of_bias))
        ]
        torch.manual_seed(1)
        found = program(distribute_tensor(x, mesh, px), *parts, distribute_tensor(t, mesh))
        close(found, loss.detach(), (px, pw))
        found.backward()
        for part, one in zip(parts, plain):
            close(part.grad, one.grad, (px, pw))
        if mesh.ndim == 2 and px[0] != px[1] and pw == Shard(1):
            break


def check_saved(mesh):
    """What is computed again, and what hooks get of what is saved, are tensors in pieces."""
    torch.manual_seed(2)
    data = torch.randn(6, 5, dtype=torch.float64)
    for place, reenter in itertools.product([Replicate(), Shard(0), Shard(1)], [False, True]):
        plain = data.clone().requires_grad_()
        sharded = distribute_tensor(data, mesh, [place]).requires_grad_()
        for x in (plain, sharded):
            made = checkpoint(lambda y: F.softmax((y * y).sin().exp(), -1), x, use_reentrant=reenter)
            (made * made).sum().backward()
        close(sharded.grad, plain.grad, (place, reenter))
        seen = []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t, seen=seen: seen.append(type(t)) or t.detach(), lambda t: t
        ):
            made = sharded.sin().exp()
        assert seen == [DTensor, DTensor]
        sharded.grad = None
        made.sum().backward()
        close(sharded.grad, (data.cos() * data.sin().exp()), place)


def check_algebra(mesh):
    torch.manual_seed(4)
    data = torch.randn(4, 4, dtype=torch.float64)
    square = data @ data.t() + torch.eye(4, dtype=torch.float64)
    for place in [Replicate(), Shard(0), Shard(1)]:
        for function in (
            torch.linalg.inv,
            torch.linalg.det,
            torch.linalg.cholesky,
            lambda x: torch.linalg.solve(x, x.t()),
            lambda x: torch.linalg.inv(torch.stack([x, x + x])),
        ):
            plain = square.clone().requires_grad_()
            sharded = distribute_tensor(square, mesh, [place]).requires_grad_()
            close(function(sharded), function(plain), place)
            function(plain).sin().sum().backward()
            function(sharded).sin().sum().backward()
            close(sharded.grad, plain.grad, place)
        singular = distribute_tensor(torch.zeros(3, 3), mesh, [place])
        refused(RuntimeError, "is singular", lambda: torch.linalg.inv(singular))  # noqa: B023


def check_counts(mesh, size):
    """Collectives by operator and module, as PyTorch counts them."""
    functional, c10d = torch.ops.c10d_functional, torch.ops.c10d

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(4, 12), nn.Linear(12, 4)

        def forward(self, x):
            return self.two(self.one(x).relu())

    net = parallelize_module(Net(), mesh, {"one": ColwiseParallel(), "two": RowwiseParallel()})
    with CommDebugMode() as counted:
        net(torch.ones(3, 4)).sum().backward()
    few = {functional.all_reduce: 1} if size > 1 else {}
    assert dict(counted.get_comm_counts()) == few and counted.get_total_counts() == len(few)
    for name in ("Global", "Net", "Net.two") if size > 1 else ():
        counts = counted.comm_module_counts[name]
        assert dict(counts["forward"]) == few and not counts["backward"], name
    assert "Net.one" not in counted.comm_module_counts
    assert counted.get_sharding_info() == {
        "Net.one.weight": (Shard(0),),
        "Net.one.bias": (Shard(0),),
        "Net.two.weight": (Shard(1),),
        "Net.two.bias": (Replicate(),),
    }
    assert sorted(counted.get_parameter_info()["Net.two"]) == ["bias", "weight"]
    table = counted.generate_comm_debug_tracing_table(noise_level=1)
    assert "*module type: class" in table and "*weight: (Shard(dim=1),)" in table and "BACKWARD PASS" in table
    assert ("*c10d_functional.all_reduce: 1" in table) == (size > 1)
    data = distribute_tensor(torch.ones(4, 4), mesh, [Shard(0)])
    terms = DTensor.from_local(torch.ones(4, 4), mesh, [Partial()])
    with counted:
        data.redistribute(placements=[Replicate()])
        terms.redistribute(placements=[Shard(0)])
        dist.all_reduce(torch.ones(1))
        dist.all_gather_single(torch.empty(size), torch.ones(1))
        functional.all_reduce(torch.ones(1), "sum", "", list(range(size)), size)
    wanted = {c10d.allreduce_: 1, c10d._allgather_base_: 1, functional.all_reduce: 1}
    if size > 1:
        wanted |= {functional.all_gather_into_tensor: 1, functional.reduce_scatter_tensor: 1}
    assert dict(counted.get_comm_counts()) == wanted, counted.get_comm_counts()
    dist.all_reduce(torch.ones(1))
    assert counted.get_total_counts() == len(wanted)
    with counted:
        torch.ones(2, 3).t().double().sin()
    for noise_level, names in ((2, ["ones", "sin"]), (3, ["ones", "t", "_to_copy", "sin"])):
        lines = counted.generate_comm_debug_tracing_table(noise_level).splitlines()
        assert [line.split("**aten.")[1].split(".")[0] for line in lines if "**" in line] == names
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        visualize_sharding(distribute_tensor(torch.ones(4 * size, 2), mesh, [Shard(0)]), header="parts")
    lines = printed.getvalue().splitlines()
    if mesh.get_local_rank():
        assert not lines
    else:
        assert lines[0] == "parts" and lines[1].split() == ["Col", "0-1"] and len(lines) == size + 2
        assert lines[2].split() == ["Row", "0-3", "cpu:0"]


def check_steps(mesh, size):
    """Optimizers, gradient clipping and modules, over whole and divided parameters."""

    def net():
        torch.manual_seed(5)
        return nn.Sequential(nn.Linear(6, 7), nn.GELU(), nn.Linear(7, 5))

    def divided(name, module, mesh):
        if name == "0":
            for key, value in list(module._parameters.items()):
                module._parameters[key] = nn.Parameter(distribute_tensor(value.data, mesh, [Shard(0)]))

    for make in (torch.optim.SGD, torch.optim.AdamW, torch.optim.Adagrad):
        for foreach in (False, True):
            plain, sharded = net(), distribute_module(net(), mesh, divided)
            optimizers = [make(m.parameters(), lr=0.1, foreach=foreach) for m in (plain, sharded)]
            for step in range(3):
                x = torch.randn(4, 6, generator=torch.Generator().manual_seed(step))
                for model, given, optimizer in zip(
                    (plain, sharded), (x, distribute_tensor(x, mesh, [Shard(0)])), optimizers
                ):
                    optimizer.zero_grad()
                    model(given).square().mean().backward()
                norms = [nn.utils.clip_grad_norm_(m.parameters(), 0.5) for m in (plain, sharded)]
                close(norms[1], norms[0])
                for optimizer in optimizers:
                    optimizer.step()
            for one, other in zip(sharded.parameters(), plain.parameters()):
                close(one.detach(), other.detach(), (make, foreach))
    assert isinstance(sharded[0].weight, nn.Parameter) and sharded[0].weight.placements == (Shard(0),)
    assert (
        sharded[0].weight.to_local().shape[0] == len(torch.arange(7).chunk(size)[mesh.get_local_rank()])
        if size <= 4
        else True
    )


def check_random(mesh, rank):
    torch.manual_seed(100 + rank)
    torch.distributed.tensor.manual_seed(7, mesh)
    found = [rand(5, 4, device_mesh=mesh, placements=[Shard(0)]), randn((6,), device_mesh=mesh)]
    made = zeros(5, 3, device_mesh=mesh, placements=[Shard(1)])
    made.normal_(0, 2)
    found += [made, torch.bernoulli(full((8, 2), 0.5, device_mesh=mesh, placements=[Shard(0)])), torch.rand_like(made)]
    torch.manual_seed(7)
    wanted = [
        torch.rand(5, 4),
        torch.randn(6),
        torch.zeros(5, 3).normal_(0, 2),
        torch.bernoulli(torch.full((8, 2), 0.5)),
        torch.rand(5, 3),
    ]
    for one, other in zip(found, wanted):
        close(one, other)


def check_edges(mesh, rank, size):
    x = distribute_tensor(torch.arange(12.0).reshape(6, 2), mesh, [Shard(0)])
    refused(RuntimeError, "got mixed torch.Tensor and DTensor", lambda: x + torch.ones(6, 2))
    with implicit_replication():
        close(x + torch.ones(6, 2), torch.arange(1.0, 13).reshape(6, 2))
    refused(RuntimeError, "placements is needed for redistribute!", lambda: x.redistribute())
    refused(ValueError, "must have the same length", lambda: x.redistribute(placements=[Shard(0), Shard(1)]))
    refused(
        RuntimeError, "found non-leaf tensor!", lambda: distribute_tensor(torch.ones(2, requires_grad=True) * 2, mesh)
    )
    refused(IndexError, "Shard(dim=2)", lambda: distribute_tensor(torch.ones(2, 2), mesh, [Shard(2)]))
    refused(RuntimeError, "size of tensor a (2) must match", lambda: x + ones(6, 3, device_mesh=mesh))
    assert float(x.sum()) == 66 and x.sum().item() == 66 and x.max().item() == 11
    assert repr(x).startswith("DTensor(local_tensor=tensor([") and "placements=(Shard(dim=0),)" in repr(x)
    close(torch.sort(x, 0, descending=True)[0], torch.arange(12.0).reshape(6, 2).flip(0))
    close(x.nonzero(), torch.arange(12.0).reshape(6, 2).nonzero())
    x[1:3] = 5.0
    wanted = torch.arange(12.0).reshape(6, 2)
    wanted[1:3] = 5.0
    close(x, wanted)
    if size > 1:
        refused(RuntimeError, "redistribute the tensor before taking the view", lambda: x[1:3].zero_())
    x[:, 0].zero_()
    wanted[:, 0] = 0
    x.mul_(2).add_(distribute_tensor(torch.ones(6, 2), mesh, [Shard(1)]))
    assert x.placements == (Shard(0),)
    close(x, wanted * 2 + 1)
    y = torch.empty_like(x)
    torch.add(x, x, out=y)
    close(y, wanted * 4 + 2)
    z = x.view(3, 4)
    close(z, (wanted * 2 + 1).view(3, 4))
    import copy
    import pickle

    other = copy.deepcopy(nn.Parameter(x))
    assert isinstance(other, nn.Parameter) and isinstance(other, DTensor)
    close(other.detach(), wanted * 2 + 1)
    close(x.to(torch.float64), (wanted * 2 + 1).double())
    assert pickle.loads(pickle.dumps(mesh)) == mesh
    uneven = DTensor.from_local(
        torch.full((rank + 1, 2), float(rank)), mesh, [Shard(0)], shape=(size * (size + 1) // 2, 2), stride=(2, 1)
    )
    assert uneven.shape[0] == size * (size + 1) // 2


def main():
    rank, size = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (size,))
    check_placements(mesh)
    check_gradients(mesh, rank, size)
    check_programs(mesh)
    check_counts(mesh, size)
    check_saved(mesh)
    check_algebra(mesh)
    check_steps(mesh, size)
    check_random(mesh, rank)
    check_edges(mesh, rank, size)
    if size == 4:
        grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        assert grid["tp"].get_group().size() == 2 and grid["dp"].mesh.tolist() == [rank % 2, rank % 2 + 2]
        flat = grid["dp", "tp"]._flatten("all")
        assert flat.size() == 4 and flat.get_local_rank() == rank
        check_placements(grid)
        check_programs(grid)
    print("ok")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
