"""Run by several ranks: `torch.ops.c10d`, operators over ProcessGroup objects."""

import torch
import torch.distributed as dist

c10d = torch.ops.c10d


def same(tensor, wanted):
    assert torch.equal(tensor, torch.tensor(wanted, dtype=tensor.dtype)), (tensor, wanted)


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    group, total = dist.group.WORLD.boxed(), size * (size - 1) / 2

    x = torch.full((3,), float(rank))
    given, work = c10d.allreduce_([x], group, dist.ReduceOp.SUM, None)
    assert given[0] is x and work.wait()
    same(x, [total] * 3)
    x, y = torch.full((3,), float(rank)), torch.full((2, 2), float(rank))
    c10d.allreduce_coalesced_.default([x, y], group, dist.ReduceOp.MAX, async_op=False).wait()
    same(x, [size - 1.0] * 3), same(y, [[size - 1.0] * 2] * 2)
    x = torch.full((2,), float(rank))
    c10d.broadcast_([x], group, size - 1, 0, timeout=60_000)[1].wait()
    same(x, [size - 1.0] * 2)
    x = torch.full((2,), float(rank))
    c10d.reduce_([x], group, dist.ReduceOp.SUM, 0, 0).wait()
    if not rank:
        same(x, [total] * 2)
    every = [float(each) for each in range(size)]
    mine = torch.tensor([float(rank)])
    outputs = [[torch.empty(1) for _ in range(size)]]
    c10d.allgather_(outputs, [mine], group)[1].wait()
    same(torch.cat(outputs[0]), every)
    outputs = [[torch.empty(1)] for _ in range(size)]
    c10d.allgather_coalesced_(outputs, [mine], group).wait()
    same(torch.cat([row[0] for row in outputs]), every)
    whole = torch.empty(size)
    c10d._allgather_base_(whole, mine, group)[1].wait()
    same(whole, every)
    wholes = [torch.empty(size), torch.empty(size)]
    c10d.allgather_into_tensor_coalesced_(wholes, [mine, mine + 1], group).wait()
    same(wholes[0], every), same(wholes[1], [each + 1 for each in every])
    part = torch.empty(1)
    c10d.reduce_scatter_([part], [[mine + each for each in range(size)]], group, dist.ReduceOp.SUM)[1].wait()
    same(part, [total + size * rank])
    c10d._reduce_scatter_base_(part, torch.cat([mine] * size), group, dist.ReduceOp.SUM)[1].wait()
    same(part, [total])
    parts = [torch.empty(1), torch.empty(1)]
    c10d.reduce_scatter_tensor_coalesced_(
        parts, [torch.cat([mine] * size), torch.ones(size)], group, dist.ReduceOp.SUM
    ).wait()
    same(torch.cat(parts), [total, float(size)])
    outputs = [[torch.empty(1) for _ in range(size)]] if not rank else []
    c10d.gather_(outputs, [mine], group, 0).wait()
    if not rank:
        same(torch.cat(outputs[0]), every)
    lists = [[torch.tensor([2.0 * each]) for each in range(size)]] if not rank else []
    c10d.scatter_([part], lists, group, 0)[1].wait()
    same(part, [2.0 * rank])
    outputs = [torch.empty(1) for _ in range(size)]
    c10d.alltoall_(outputs, [mine + 10 * each for each in range(size)], group)[1].wait()
    same(torch.cat(outputs), [each + 10.0 * rank for each in range(size)])
    c10d.alltoall_base_(whole, torch.arange(float(size)), group, [], []).wait()
    same(whole, [float(rank)] * size)
    c10d.barrier(torch.empty(0), group, []).wait()
    c10d.monitored_barrier_(torch.empty(0), group, [], 30_000, True)
    if size > 1:
        to, of = (rank + 1) % size, (rank - 1) % size
        work = c10d.send([mine], group, to, 3)
        c10d.recv_([part], group, of, 3).wait()
        same(part, [float(of)])
        work.wait()
        work = c10d.send([mine], group, to, 4)
        c10d.recv_any_source_([part], group, 4).wait()
        same(part, [float(of)])
        work.wait()
    c10d.check_for_nan(x)
    try:
        c10d.check_for_nan(torch.tensor([1.0, float("nan")]))
    except RuntimeError as error:
        assert str(error) == "NaN found in input tensor."
    else:
        raise AssertionError("a NaN was taken")
    dist.destroy_process_group()
    print("ok", rank)


if __name__ == "__main__":
    main()
