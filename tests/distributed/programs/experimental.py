"""Run by several ranks: functions over pieces, and attention over parts of sequences, beside what one process computes."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, implicit_replication
from torch.distributed.tensor.experimental import context_parallel, local_map, register_sharding
from torch.distributed.tensor.experimental._attention import context_parallel_unshard, set_rotate_method
from torch.distributed.tensor.parallel import loss_parallel


def close(found, wanted):
    found = found.full_tensor() if isinstance(found, DTensor) else found
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)


def refused(kind, text, call, *args):
    try:
        call(*args)
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)


def check_functions(mesh):
    torch.manual_seed(0)
    a, b = torch.randn(24, 12, requires_grad=True), torch.randn(12, 3, requires_grad=True)
    (a @ b).square().sum().backward()
    rows, whole = [Shard(0)], [Replicate()]
    product = local_map(
        torch.mm, out_placements=rows, in_placements=(rows, whole), in_grad_placements=(rows, [Partial()])
    )
    da, db = (distribute_tensor(one.detach(), mesh, p).requires_grad_() for one, p in ((a, rows), (b, whole)))
    out = product(da, db)
    assert out.placements == (Shard(0),)
    close(out, a @ b)
    out.square().sum().backward()
    close(da.grad, a.grad)
    close(db.grad, b.grad)
    refused(ValueError, "mismatched placements", product, distribute_tensor(a.detach(), mesh, [Shard(1)]), db)
    refused(AssertionError, "in_placements length 2", product, da)
    refused(AssertionError, "expects None placements", product, da, 2)

    @local_map(
        out_placements=([Partial()], None), in_placements=([Shard(1)], [Shard(0)], None), redistribute_inputs=True
    )
    def terms(x, y, factor):
        return x @ y * factor, "word"

    total, word = terms(da, db, 2.0)
    assert word == "word" and total.placements == (Partial(),)
    close(total, a @ b * 2)
    assert torch.equal(local_map(torch.neg, out_placements=rows)(a), -a)


def check_attention(mesh):
    set_rotate_method("alltoall")
    refused(NotImplementedError, "rotation", set_rotate_method, "ring")
    size = mesh.size()
    for length in (4 * size, 3 * size):
        for causal in (True, False):
            torch.manual_seed(length)
            q, k, v, weight = (torch.randn(2, 2, length, 4) for _ in range(4))
            wanted = [one.clone().requires_grad_() for one in (q, k, v)]
            result = F.scaled_dot_product_attention(*wanted, is_causal=causal)
            (result * weight).sum().backward()
            plain = q.clone()
            with context_parallel(
                mesh, buffers=[q, k, v, weight], buffer_seq_dims=[2] * 4, no_restore_buffers={weight}
            ):
                assert q.shape[2] == length // size
                parts = [one.clone().requires_grad_() for one in (q, k, v)]
                out = F.scaled_dot_product_attention(*parts, is_causal=causal)
                (out * weight).sum().backward()
            assert torch.equal(q, plain) and weight.shape[2] == length // size
            whole = context_parallel_unshard(mesh, [out, *(one.grad for one in parts)], [2] * 4)
            close(whole[0], result)
            for found, one in zip(whole[1:], wanted):
                close(found, one.grad)
    if size > 1:
        refused(
            ValueError, "not divided", context_parallel(mesh, buffers=[torch.ones(1, 5)], buffer_seq_dims=[1]).__enter__
        )


def check_losses(mesh):
    torch.manual_seed(0)
    x, targets, weight = torch.randn(6, 11), torch.randint(0, 11, (6,)), torch.rand(11)
    targets[1] = -100
    for more in ({}, {"reduction": "sum"}, {"reduction": "none"}, {"weight": weight}):
        plain = x.clone().requires_grad_()
        wanted = F.cross_entropy(plain, targets, **more)
        wanted.sum().backward()
        with loss_parallel():
            parts = distribute_tensor(x, mesh, [Shard(1)]).requires_grad_()
            found = F.cross_entropy(parts, targets, **more)
            found.sum().backward()
        close(found, wanted)
        close(parts.grad, plain.grad)
    with implicit_replication():
        close(F.cross_entropy(distribute_tensor(x, mesh, [Shard(0)]), targets), F.cross_entropy(x, targets))


def check_registered(mesh):
    whole = torch.arange(float(8 * 3)).reshape(8, 3)
    rows, columns = (distribute_tensor(whole, mesh, [Shard(dim)]) for dim in (0, 1))
    asked = []

    @register_sharding([torch.ops.aten.cumprod.default, torch.ops.aten.cumsum.default])
    def summed(x, dim, *, dtype=None):
        asked.append((x.ndim, tuple(x.shape), dim, dtype))
        return [([Replicate()], [Replicate(), None, None]), ([Shard(1 - dim)], [Shard(1 - dim), None, None])]

    found = torch.cumsum(rows, 1)
    assert found.placements == (Shard(0),) and asked == [(2, (8, 3), 1, None)]
    close(found, whole.cumsum(1))
    close(torch.cumsum(columns, 1), whole.cumsum(1))

    @register_sharding(torch.ops.aten.cumsum.default)
    def wrong(x, dim, dtype=None):
        return [([Shard(0)], [Shard(0)])]

    refused(ValueError, "1 results and 3 arguments, its sharding placements for 1 and 1", torch.cumsum, rows, 1)

    @torch.library.custom_op("sharded::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    refused(
        NotImplementedError,
        "none of the library's operators",
        register_sharding(torch.ops.sharded.twice.default),
        wrong,
    )


def main():
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    check_functions(mesh)
    check_attention(mesh)
    check_losses(mesh)
    check_registered(mesh)
    dist.destroy_process_group()
    print("ok")


if __name__ == "__main__":
    main()
