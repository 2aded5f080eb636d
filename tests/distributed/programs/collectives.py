"""Run by several ranks: every collective against numpy, over dtypes, layouts, reductions, groups and zero sizes; prints `ok` from each rank."""

import datetime
import itertools
import sys

import numpy as np
import torch
import torch.distributed as dist

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
SHAPES = [(), (0,), (1,), (7,), (3, 5), (0, 4)]
NUMPY = {
    dist.ReduceOp.SUM: np.add,
    dist.ReduceOp.PRODUCT: np.multiply,
    dist.ReduceOp.MIN: np.minimum,
    dist.ReduceOp.MAX: np.maximum,
    dist.ReduceOp.BAND: np.bitwise_and,
    dist.ReduceOp.BOR: np.bitwise_or,
    dist.ReduceOp.BXOR: np.bitwise_xor,
}


def data(rank, shape, dtype, seed=0):
    numbers = np.random.default_rng([rank, seed, len(shape)]).integers(1, 4, shape)
    if dtype is torch.bool:
        return torch.tensor(numbers > 2)
    made = torch.tensor(numbers).to(dtype)
    return made + 1j * made if dtype.is_complex else made


def strided(tensor):
    """The same elements, not contiguous."""
    if not tensor.dim():
        return torch.stack([tensor, tensor])[1]
    return torch.stack([tensor, tensor], -1)[..., 0]


def same(got, wanted):
    assert got.dtype == wanted.dtype and got.shape == wanted.shape, (got, wanted)
    assert torch.equal(got, wanted), (got, wanted)


def reduced(op, tensors):
    if op == dist.ReduceOp.AVG:
        return sum(tensors[1:], tensors[0].clone()) / len(tensors)
    total = tensors[0].numpy() if tensors[0].dtype not in (torch.bfloat16,) else tensors[0].float().numpy()
    for tensor in tensors[1:]:
        total = NUMPY[op](total, tensor.numpy() if tensor.dtype not in (torch.bfloat16,) else tensor.float().numpy())
    if tensors[0].dtype is torch.bool:
        total = total.astype(bool)
    return torch.tensor(total).to(tensors[0].dtype).reshape(tensors[0].shape)


def check_group(group, members, rank, few=False):
    size, mine = len(members), members.index(rank)
    half = {torch.float16, torch.bfloat16}
    dtypes = [*FLOATS, *INTEGERS, torch.bool, torch.complex64, torch.complex128]
    cases = list(itertools.product(dtypes, SHAPES))
    for number, (dtype, shape) in enumerate(cases[:: 29 if few else 1]):
        values = [data(member, shape, dtype) for member in range(size)]
        for op in (dist.ReduceOp.AVG, *NUMPY):
            if op in (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR) and (
                dtype.is_floating_point or dtype.is_complex
            ):
                continue
            if (op == dist.ReduceOp.AVG and not dtype.is_floating_point) or (
                dtype.is_complex and op != dist.ReduceOp.SUM
            ):
                continue
            if dtype is torch.uint8 and op == dist.ReduceOp.PRODUCT:
                continue
            wanted = reduced(op, values)
            tensor = strided(values[mine]) if number % 2 else values[mine].clone()
            version = tensor._version
            work = dist.all_reduce(tensor, op, group, async_op=True)
            assert work.wait() and work.is_completed() and tensor._version > version
            if op == dist.ReduceOp.AVG and dtype in half:
                torch.testing.assert_close(tensor, wanted)
            else:
                same(tensor, wanted)
            root = number % size
            tensor = values[mine].clone()
            dist.reduce(tensor, op=op, group=group, group_dst=root)
            if mine == root and not (op == dist.ReduceOp.AVG and dtype in half):
                same(tensor, wanted)
        root = number % size
        tensor = strided(values[mine])
        dist.broadcast(tensor, group_src=root, group=group)
        same(tensor.contiguous(), values[root])
        taken = [strided(torch.zeros(shape, dtype=dtype)) for _ in values]
        dist.all_gather(taken, strided(values[mine]), group=group)
        for one, wanted in zip(taken, values):
            same(one.contiguous(), wanted)
        taken = [torch.zeros(shape, dtype=dtype) for _ in values] if mine == root else None
        dist.gather(values[mine], taken, group_dst=root, group=group)
        for one, wanted in zip(taken or [], values):
            same(one, wanted)
        one = torch.zeros(shape, dtype=dtype)
        dist.scatter(one, [strided(value) for value in values] if mine == root else None, group_src=root, group=group)
        same(one, values[mine])
        given = [data(mine * size + other, shape, dtype) for other in range(size)]
        taken = [torch.zeros(shape, dtype=dtype) for _ in values]
        dist.all_to_all(taken, given, group=group)
        for other, one in enumerate(taken):
            same(one, data(other * size + mine, shape, dtype))
        if shape and dtype not in half and dtype is not torch.bool and not dtype.is_complex:
            one = torch.zeros(shape, dtype=dtype)
            dist.reduce_scatter(one, given, group=group)
            wanted = reduced(dist.ReduceOp.SUM, [data(other * size + mine, shape, dtype) for other in range(size)])
            same(one, wanted)
            one = torch.zeros(shape, dtype=dtype)
            dist.reduce_scatter_single(one, torch.cat(given), group=group)
            same(one, wanted)
        if shape:
            whole = torch.zeros((shape[0] * size, *shape[1:]), dtype=dtype)
            dist.all_gather_single(whole, values[mine], group=group)
            same(whole, torch.cat(values))
    # uneven parts
    parts = [(mine + other) % 3 for other in range(size)]
    counts = [(other + mine) % 3 for other in range(size)]
    given = torch.arange(sum(parts) * 2.0).reshape(-1, 2) + 100 * mine
    taken = torch.zeros(sum(counts), 2)
    dist.all_to_all_single(taken, given, counts, parts, group=group)
    wanted = []
    for other in range(size):
        theirs = [(other + k) % 3 for k in range(size)]
        start = sum(theirs[:mine])
        wanted.append((torch.arange(sum(theirs) * 2.0).reshape(-1, 2) + 100 * other)[start : start + theirs[mine]])
    same(taken, torch.cat(wanted))
    dist.barrier(group=group)
    dist.monitored_barrier(group=group, timeout=datetime.timedelta(seconds=60))
    premul = torch.ones(3) * (mine + 1)
    dist.all_reduce(premul, dist._make_nccl_premul_sum(2.0), group=group)
    same(premul, torch.full((3,), 2.0 * sum(range(1, size + 1))))


def check_messages(rank, size):
    if size == 1:
        return
    after, before = (rank + 1) % size, (rank - 1) % size
    sent, got = torch.full((3, 2), float(rank)).t(), torch.zeros(2, 3)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, after), dist.P2POp(dist.irecv, got, before)])
    for work in works:
        work.wait()
    same(got, torch.full((2, 3), float(before)))
    big = torch.full((100000,), float(rank), dtype=torch.bfloat16)
    taken = torch.zeros_like(big)
    work = dist.isend(big, after, tag=5)
    assert dist.recv(taken, before, tag=5) == before
    work.wait()
    same(taken, torch.full_like(big, before))
    if rank == 0:
        seen = {dist.recv(torch.zeros(1)) for _ in range(size - 1)}
        assert seen == set(range(1, size))
    else:
        dist.send(torch.ones(1), 0)
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank, "long": "x" * rank})
    assert objects == [{"rank": other, "long": "x" * other} for other in range(size)]
    listed = [f"from {rank}", rank]
    dist.broadcast_object_list(listed, src=size - 1)
    assert listed == [f"from {size - 1}", size - 1]
    gathered = [None] * size if rank == 1 else None
    dist.gather_object(rank**2, gathered, dst=1)
    assert gathered in (None, [other**2 for other in range(size)])
    out = [None]
    dist.scatter_object_list(out, [("to", other) for other in range(size)] if rank == 0 else None)
    assert out == [("to", rank)]
    if rank == 0:
        dist.send_object_list([1, "two"], dst=1)
    elif rank == 1:
        listed = [None, None]
        assert dist.recv_object_list(listed, src=0) == 0 and listed == [1, "two"]


def check_wrong(rank, size):
    """Calls that do not fit end in an error on every rank that waits, which names ranks and shapes."""
    if size == 1:
        return
    group = dist.new_group(timeout=datetime.timedelta(seconds=3))
    try:
        dist.all_reduce(torch.ones(3 + rank), group=group)
    except dist.DistBackendError as error:
        for other in range(size):
            assert f"rank {other}: all_reduce SUM of float32[{3 + other}] at " in str(error), error
        assert "collectives.py" in str(error), error
    else:
        raise AssertionError("other shapes were taken")
    dist.barrier()
    few, many = torch.ones(3), torch.ones(300)
    for here, there in (
        (lambda group: dist.all_reduce(few, group=group), lambda group: dist.all_reduce(many, group=group)),
        (lambda group: dist.all_reduce(many, group=group), lambda group: dist.all_reduce(few, group=group)),
        (lambda group: dist.all_reduce(few, group=group), lambda group: dist.barrier(group)),
        (lambda group: dist.all_reduce(few, group=group), lambda group: dist.broadcast(few, 0, group)),
        (lambda group: dist.all_reduce(few, dist.ReduceOp.MAX, group), lambda group: dist.all_reduce(few, group=group)),
        (lambda group: dist.all_reduce(few, group=group), lambda group: dist.all_reduce(few.double(), group=group)),
        (lambda group: dist.reduce(few, 0, group=group), lambda group: dist.reduce(few, 1, group=group)),
    ):  # fmt: skip
        group = dist.new_group(timeout=datetime.timedelta(seconds=3))
        try:
            (there if rank else here)(group)
        except dist.DistBackendError as error:
            assert "do not fit each other" in str(error) or "did not come" in str(error), error
        else:
            raise AssertionError("calls that do not fit each other ended")
    dist.barrier()
    group = dist.new_group(timeout=datetime.timedelta(seconds=1))
    if rank:
        try:
            dist.all_reduce(torch.ones(2), group=group)
        except dist.DistBackendError as error:
            assert f"rank {rank} waited 1 s in all_reduce SUM of float32[2]" in str(
                error
            ) and "ranks [0] did not come" in str(error), error
        else:
            raise AssertionError("a call without rank 0 ended")
    dist.barrier()


def check_few(rank, size):
    """Numbers of elements around what goes with the check of a call, by every way to call it."""
    for dtype, counts in (
        (torch.float32, (0, 1, 61, 62, 63, 64)),
        (torch.float64, (30, 31, 32)),
        (torch.int16, (124, 125)),
    ):
        for count in counts:
            mine = torch.arange(count).to(dtype) + rank
            every = [torch.arange(count).to(dtype) + other for other in range(size)]
            for op, wanted in (
                (dist.ReduceOp.SUM, sum(every)),
                (dist.ReduceOp.MAX, every[-1]),
                (dist.ReduceOp.MIN, every[0]),
                (dist.ReduceOp.AVG, sum(every) / size),
            ):
                if op is dist.ReduceOp.AVG and not dtype.is_floating_point:
                    continue
                for way in range(4):
                    x = mine.clone() if way != 2 else torch.stack([mine, mine], -1)[..., 0]
                    before = x._version
                    if way == 1:
                        work = dist.all_reduce(x, op, async_op=True)
                        work.wait()
                    elif way == 3:
                        with torch.no_grad():
                            dist.all_reduce(x.view(1, count), op)
                    else:
                        dist.all_reduce(x, op)
                    same(x, wanted.to(dtype))
                    assert x._version > before
            out = torch.empty(size * count, dtype=dtype)
            dist.all_gather_single(out, mine)
            same(out, torch.cat(every))
            part = torch.empty(count, dtype=dtype)
            dist.reduce_scatter_single(part, torch.cat([mine + other for other in range(size)]))
            same(part, (sum(every) + rank * size).to(dtype))


def check_groups(rank, size):
    """Groups that only some ranks make, or that a parent is split into, each time anew."""
    for _ in range(2):
        for first in range(0, size - 1):
            members = [first, size - 1]
            if rank in members:
                group = dist.new_group(members, use_local_synchronization=True)
                total = torch.tensor([float(rank)])
                dist.all_reduce(total, group=group)
                assert total.item() == sum(members)
                dist.destroy_process_group(group)
        parts = [list(range(0, size, 2)), list(range(1, size, 2))][: 1 if size == 1 else 2]
        group = dist.split_group(split_ranks=parts)
        mine = parts[rank % 2]
        total = torch.tensor([float(rank)])
        dist.all_reduce(total, group=group)
        assert total.item() == sum(mine) and dist.get_process_group_ranks(group) == mine
        if len(mine) == 2:
            inner = dist.split_group(group, split_ranks=[[1]])
            assert (inner is None) == (rank == mine[0])
    mine, groups = dist.new_subgroups(1)
    assert mine.size() == 1 and len(groups) == size


def main(backend="gloo", few=False, **method):
    dist.init_process_group(backend, **method)
    rank, size = dist.get_rank(), dist.get_world_size()
    assert dist.is_initialized() and dist.get_backend() == backend
    check_group(None, list(range(size)), rank, few)
    for members in ([0], list(range(size - 1)) or [0], list(range(0, size, 2)))[: 1 if few else 3]:
        group = dist.new_group(members)
        if rank in members:
            check_group(group, members, rank, True)
            assert dist.get_process_group_ranks(group) == members and dist.get_rank(group) == members.index(rank)
        else:
            assert group == dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(group) == -1
    check_few(rank, size)
    check_groups(rank, size)
    check_messages(rank, size)
    check_wrong(rank, size)
    dist.destroy_process_group()
    assert not dist.is_initialized()
    print("ok", rank, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:2])
