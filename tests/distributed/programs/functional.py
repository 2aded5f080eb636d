"""Run by several ranks: collectives that give their results, and their gradients, against what one process computes."""

import warnings

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
import torch.distributed.nn.functional as nn_collectives

ops = torch.ops._c10d_functional


def data(rank, *shape, dtype=torch.float64):
    made = torch.randn(*shape, generator=torch.Generator().manual_seed(100 + rank), dtype=torch.float64)
    return made.to(dtype)


def same(got, wanted):
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-12 if wanted.dtype is torch.float64 else 1e-2)


def gradients(function, rank, size, *shape):
    """The result and the gradient of `function(x)`, where each rank weighs its result by numbers of its own."""
    x = data(rank, *shape).requires_grad_()
    made = function(x)
    (made * data(50 + rank, *made.shape)).sum().backward()
    return made.detach(), x.grad


def check_operators(group, rank, members):
    size, mine, name = len(members), members.index(rank), group.group_name
    values = [data(member, size * 2, 3) for member in members]
    weights = [data(50 + member, size * 2, 3) for member in members]
    total = sum(values)
    got, grad = gradients(lambda x: ops.all_reduce(x, "sum", name), rank, size, size * 2, 3)
    same(got, total)
    same(grad, sum(weights))
    for op, wanted in (
        ("avg", total / size),
        ("max", torch.stack(values).amax(0)),
        ("min", torch.stack(values).amin(0)),
        ("product", torch.stack(values).prod(0)),
    ):
        same(ops.all_reduce(values[mine], op, name), wanted)
    got, grad = gradients(lambda x: ops.all_gather_into_tensor(x, size, name), rank, size, size * 2, 3)
    same(got, torch.cat(values))
    wide = [data(50 + member, size * size * 2, 3) for member in members]
    same(grad, sum(wide)[mine * size * 2 : (mine + 1) * size * 2])
    got, grad = gradients(lambda x: ops.reduce_scatter_tensor(x, "sum", size, name), rank, size, size * 2, 3)
    same(got, total[2 * mine : 2 * mine + 2])
    same(grad, torch.cat([data(50 + member, 2, 3) for member in members]))
    got, grad = gradients(lambda x: ops.all_to_all_single(x, [], [], name), rank, size, size * 2, 3)
    same(got, torch.cat([value[2 * mine : 2 * mine + 2] for value in values]))
    same(grad, torch.cat([weight[2 * mine : 2 * mine + 2] for weight in weights]))
    root = size - 1
    got, grad = gradients(lambda x: ops.broadcast(x, root, name), rank, size, size * 2, 3)
    same(got, values[root])
    same(grad, sum(weights) * (mine == root))
    assert ops.wait_tensor(got) is got
    x = values[mine].clone()
    assert ops.all_reduce_(x, "sum", name) is x
    same(x, total)
    same(ops.broadcast_(values[mine].clone(), 0, name), values[0])
    for made in ops.all_reduce_coalesced([values[mine], values[mine].t()], "sum", name)[:1]:
        same(made, total)
    for one, other in zip(ops.all_gather_into_tensor_coalesced([values[mine]] * 2, size, name), [values] * 2):
        same(one, torch.cat(other))
    same(ops.reduce_scatter_tensor_coalesced([values[mine]], "sum", size, name)[0], total[2 * mine : 2 * mine + 2])
    out = torch.empty(2, 3, dtype=torch.float64)
    assert ops.reduce_scatter_tensor_out(values[mine], "sum", size, name, out=out) is out
    same(out, total[2 * mine : 2 * mine + 2])
    twisted = values[mine].t().contiguous().t()
    same(ops.all_reduce(twisted, "sum", name), total)
    half = [value.to(torch.bfloat16) for value in values]
    torch.testing.assert_close(ops.all_reduce(half[mine], "sum", name), sum(half), rtol=0.05, atol=0.05)
    numbers = torch.complex(values[mine], -values[mine])
    same(ops.all_reduce(numbers, "sum", name), torch.complex(total, -total))
    assert ops.all_gather_into_tensor(torch.ones(0, 3), size, name).shape == (0, 3)


def check_functions(group, rank, members):
    size, mine = len(members), members.index(rank)
    values = [data(member, 4, size * 2) for member in members]
    got, grad = gradients(lambda x: collectives.all_gather_single(x, 1, group), rank, size, 4, size * 2)
    same(got, torch.cat(values, 1))
    wide = sum(data(50 + member, 4, size * size * 2) for member in members)
    same(grad, wide[:, mine * size * 2 : (mine + 1) * size * 2])
    got, grad = gradients(lambda x: collectives.reduce_scatter_single(x, "SUM", 1, group), rank, size, 4, size * 2)
    same(got, sum(values)[:, 2 * mine : 2 * mine + 2])
    same(grad, torch.cat([data(50 + member, 4, 2) for member in members], 1))
    around = [(other + 1) % size for other in range(size)]
    same(collectives.permute_tensor(values[mine], around, group.group_name), values[mine - 1])
    same(collectives.all_reduce(values[mine], "sum", group), sum(values))
    same(collectives.all_reduce_coalesced([values[mine]], "avg", group)[0], sum(values) / size)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        collectives.all_gather_tensor(values[mine], 0, group)
    assert "Please use `torch.distributed._functional_collectives.all_gather_single` instead." in str(said[-1].message)


def check_nn(rank, size):
    """The module's functions: a collective's gradient is what each rank's loss says of this rank's tensor, summed."""
    values = [data(other, 3) for other in range(size)]
    weight = [data(50 + other, 3) for other in range(size)]
    got, grad = gradients(lambda x: nn_collectives.all_reduce(x), rank, size, 3)
    same(got, sum(values))
    same(grad, sum(weight))
    got, grad = gradients(lambda x: nn_collectives.broadcast(x, 0), rank, size, 3)
    same(got, values[0])
    same(grad, sum(weight) * (rank == 0))
    got, grad = gradients(lambda x: nn_collectives.reduce(x, 0), rank, size, 3)
    same(grad, weight[0])
    got, grad = gradients(lambda x: torch.stack(nn_collectives.all_gather(x)), rank, size, 3)
    same(got, torch.stack(values))
    same(grad, sum(data(50 + other, size, 3)[rank] for other in range(size)))
    got, grad = gradients(lambda x: torch.stack(nn_collectives.gather(x)), rank, size, 3)
    same(grad, data(50, size, 3)[rank])
    if rank == 0:
        same(got, torch.stack(values))
    got, grad = gradients(lambda x: nn_collectives.scatter([x + other for other in range(size)]), rank, size, 3)
    same(got, values[0] + rank)
    same(grad, sum(weight) * (rank == 0))
    got, grad = gradients(
        lambda x: nn_collectives.reduce_scatter(
            torch.empty(3, dtype=x.dtype), [x * (other + 1) for other in range(size)]
        ),
        rank,
        size,
        3,
    )
    same(got, sum(values) * (rank + 1))
    same(grad, sum(one * (other + 1) for other, one in enumerate(weight)))
    outputs = [torch.empty(3, dtype=torch.float64) for _ in range(size)]
    got, grad = gradients(
        lambda x: torch.stack(nn_collectives.all_to_all(outputs, [x * (other + 1) for other in range(size)])),
        rank,
        size,
        3,
    )
    same(got, torch.stack(values) * (rank + 1))
    same(grad, sum(data(50 + other, size, 3)[rank] * (other + 1) for other in range(size)))
    got, grad = gradients(
        lambda x: nn_collectives.all_to_all_single(torch.empty(size * 3, dtype=x.dtype), x.repeat(size)), rank, size, 3
    )
    same(got, torch.cat(values))
    same(grad, sum(data(50 + other, size * 3)[3 * rank : 3 * rank + 3] for other in range(size)))


def check_group_objects(group, rank, members):
    """Every operator takes the group itself in place of its name, as it does here of one that is known by its name alone."""
    size, mine, name = len(members), members.index(rank), group.group_name
    x = data(rank, size * 2, 3)
    autograd = torch.ops._c10d_functional_autograd
    for call in (
        lambda group: ops.all_reduce(x, "sum", group),
        lambda group: ops.all_reduce_(x.clone(), "max", group),
        lambda group: ops.all_reduce_coalesced([x, x + 1], "sum", group),
        lambda group: ops.all_reduce_coalesced_([x.clone(), x + 1], "sum", group),
        lambda group: ops.all_gather_into_tensor(x, size, group),
        lambda group: ops.all_gather_into_tensor_out(x, size, group, out=x.new_empty(size * size * 2, 3)),
        lambda group: ops.all_gather_into_tensor_coalesced([x, x + 1], size, group),
        lambda group: ops.reduce_scatter_tensor(x, "sum", size, group),
        lambda group: ops.reduce_scatter_tensor_out(x, "sum", size, group, out=x.new_empty(2, 3)),
        lambda group: ops.reduce_scatter_tensor_coalesced([x, x + 1], "sum", size, group),
        lambda group: ops.all_to_all_single(x, [2] * size, [2] * size, group),
        lambda group: ops.broadcast(x, size - 1, group),
        lambda group: ops.broadcast_(x.clone(), size - 1, group),
        lambda group: autograd.all_gather_into_tensor(x, size, group),
        lambda group: autograd.reduce_scatter_tensor(x, "sum", size, group),
        lambda group: autograd.all_to_all_single(x, [2] * size, [2] * size, group),
    ):
        got, wanted = call(group), call(name)
        for one, other in zip(got, wanted) if isinstance(got, list) else [(got, wanted)]:
            same(one, other)
        try:
            call(3)
        except RuntimeError as error:
            assert (
                "argument 'group_name' must be either a string (group name) or a ProcessGroup object, but got int"
                in str(error)
            )
        else:
            raise AssertionError("a number was taken for a group")
    assert str(ops.all_reduce.default._schema).endswith("(Tensor input, str reduce_op, Any group_name) -> Tensor")
    assert mine == group.rank()


def check_messages(group, rank, members):
    """Both sides begin before either waits, with more bytes than a transport keeps for whoever comes late."""
    size, mine, name = len(members), members.index(rank), group.group_name
    if size == 1:
        return
    after, before = (mine + 1) % size, (mine - 1) % size
    x, into = data(rank, 500, 600), torch.zeros(500, 600, dtype=torch.float64)
    sent, taken = ops.isend(x, after, 3, name), ops.irecv(into, before, 3, name)
    assert sent.shape == (0,) and sent.dtype is x.dtype and taken is into
    assert ops.wait_tensor(taken) is into and ops.wait_tensor(sent) is sent
    same(into, data(members[before], 500, 600))
    several = [x.t(), torch.zeros(600, 500, dtype=torch.float64), x[:2], torch.zeros(2, 600, dtype=torch.float64)]
    kinds, peers = ["isend", "irecv"] * 2, [after, before] * 2
    made = ops.batch_p2p_ops(kinds, peers, [1, 1, 2, 2], several, name)
    assert [one.numel() for one in made] == [0, 300000, 0, 1200] and made[1] is several[1]
    for one in made:
        ops.wait_tensor(one)
    same(several[1], data(members[before], 500, 600).t())
    same(several[3], data(members[before], 500, 600)[:2])
    meta = torch.empty(2, 3, device="meta")
    assert ops.isend(meta, after, 0, name).shape == (0,) and ops.irecv(meta, before, 0, name) is meta
    ops.isend(x[:1], after, 7, name)  # nobody waits for this one, but the end of the group
    same(ops.wait_tensor(ops.irecv(into[:1], before, 7, name)), data(members[before], 500, 600)[:1])


def check_wrong(rank, size, name):
    for call, said in [
        (lambda: ops.all_reduce(torch.ones(2), "most", name), "Unrecognized reduce_op: most"),
        (lambda: ops.all_reduce(torch.ones(2), "sum", "none"), "Could not resolve the process group"),
        (
            lambda: ops.isend(torch.ones(2), 0, 0, dist.group.WORLD),
            "'group_name' but instead found type 'ProcessGroup'",
        ),
        (lambda: ops.batch_p2p_ops(["put"], [0], [0], [torch.ones(2)], name), "Unsupported async op put"),
        (lambda: ops.batch_p2p_ops(["isend"], [0, 0], [0], [torch.ones(2)], name), "different lengths: [1, 2]"),
        (lambda: ops.all_gather_into_tensor(torch.tensor(1.0), size, name), "has no rows to exchange"),
    ]:
        try:
            call()
        except RuntimeError as error:
            assert said in str(error), error
        else:
            raise AssertionError(f"{said}: nothing was said")
    x = torch.ones(2, requires_grad=True)
    try:
        ops.all_reduce(x, "max", name).sum().backward()
    except RuntimeError as error:
        assert "all_reduce backward only supports 'sum' reduction, got 'max'" in str(error)
    else:
        raise AssertionError("a maximum has no derivative here")
    meta = torch.empty(2 * size, 3, device="meta")
    assert ops.all_gather_into_tensor(meta, size, name).shape == (2 * size * size, 3)
    assert ops.reduce_scatter_tensor(meta, "sum", size, name).shape == (2, 3)
    assert ops.all_reduce(meta, "sum", name).is_meta


def main():
    warnings.simplefilter("ignore", FutureWarning)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    check_operators(dist.group.WORLD, rank, list(range(size)))
    check_functions(dist.group.WORLD, rank, list(range(size)))
    check_group_objects(dist.group.WORLD, rank, list(range(size)))
    check_messages(dist.group.WORLD, rank, list(range(size)))
    for members in (list(range(0, size, 2)), list(range(max(1, size - 1)))):
        group = dist.new_group(members)
        if rank in members:
            check_operators(group, rank, members)
            check_functions(group, rank, members)
            check_group_objects(group, rank, members)
            check_messages(group, rank, members)
    check_nn(rank, size)
    check_wrong(rank, size, dist.group.WORLD.group_name)
    dist.destroy_process_group()
    print("ok", rank, flush=True)


if __name__ == "__main__":
    main()
