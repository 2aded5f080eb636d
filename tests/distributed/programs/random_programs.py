"""Run by several ranks: random programs of collectives on subgroups, against numpy: COUNT [SEED].

A program has a few tensors on each rank. Each step is a collective of some ranks, which reads and writes one of them; some are waited for later, in another order. Every rank draws the same program, and computes by
numpy what all ranks have.
"""

import itertools
import random
import sys

import numpy as np
import torch
import torch.distributed as dist

SHAPES = [(), (0,), (1,), (6,), (3, 5), (0, 4), (2, 3, 2), (70, 300)]
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
DTYPES = [*FLOATS, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
OPS = {
    dist.ReduceOp.SUM: np.add,
    dist.ReduceOp.PRODUCT: np.multiply,
    dist.ReduceOp.MIN: np.minimum,
    dist.ReduceOp.MAX: np.maximum,
    dist.ReduceOp.BAND: np.bitwise_and,
    dist.ReduceOp.BOR: np.bitwise_or,
    dist.ReduceOp.BXOR: np.bitwise_xor,
}
BITS = (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR)


class Slot:
    """A tensor of this rank, and what numpy says that every rank has: numbers from 0 to 2, which all dtypes hold."""

    def __init__(self, draw, rank, size):
        self.shape = draw.choice(SHAPES if draw.random() < 0.9 else SHAPES[-1:])
        self.dtype = draw.choice(DTYPES)
        seed = draw.randrange(1 << 30)
        self.all = [np.random.default_rng([seed, other]).integers(0, 3, self.shape) for other in range(size)]
        self.rank = rank
        self.tensor = torch.tensor(self.all[rank]).to(self.dtype)
        if draw.random() < 0.4 and len(self.shape) > 1:
            self.tensor = self.tensor.transpose(0, -1).contiguous().transpose(0, -1)
        if draw.random() < 0.2 and self.shape:
            self.tensor = torch.stack([self.tensor, self.tensor], -1)[..., 1]
        self.pending = None

    def plus(self, number):
        """What the tensor is with a number added, as a new one."""
        return (self.tensor + number) % 3

    def put(self, tensor):
        self.tensor.copy_(tensor)

    def small(self):
        """Numbers from 0 to 2 again."""
        self.tensor.remainder_(3)

    def settle(self):
        """Wait for what writes it."""
        if self.pending is not None:
            work, finish = self.pending
            self.pending = None
            if work is not None:
                work.wait()
            finish()


def number(array):
    return np.asarray(array) % 3


def reduced(op, arrays):
    total = arrays[0]
    for array in arrays[1:]:
        total = OPS[op](total, array)
    return number(total)


def step(draw, slot, groups, rank, size):
    """One collective: what this rank calls, and what numpy says."""
    members = draw.choice(list(groups))
    count = len(members)
    here = rank in members
    group = groups[members]
    slot.settle()
    given = list(slot.all)
    mine = members.index(rank) if here else -1
    later = draw.random() < 0.5
    root = draw.randrange(count)
    pick = draw.randrange(count)
    ops = [op for op in OPS if op not in BITS or slot.dtype not in FLOATS]
    op = draw.choice(ops)
    kinds = ["all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter", "reduce_scatter", "all_to_all"]
    kinds += ["all_gather_single", "reduce_scatter_single", "all_to_all_single", "ring", "send", "objects", "barrier"]
    kind = draw.choice(kinds)
    work, finish = None, slot.small
    like = [torch.zeros(slot.shape, dtype=slot.dtype) for _ in members] if here else []
    if kind == "all_reduce":
        for member in members:
            slot.all[member] = reduced(op, [given[other] for other in members])
        work = here and dist.all_reduce(slot.tensor, op, group, async_op=later)
    elif kind == "broadcast":
        for member in members:
            slot.all[member] = given[members[root]]
        work = here and dist.broadcast(slot.tensor, group_src=root, group=group, async_op=later)
    elif kind == "reduce":
        slot.all[members[root]] = reduced(op, [given[other] for other in members])
        held = slot.tensor.clone() if here else None
        work = here and dist.reduce(held, op=op, group=group, group_dst=root, async_op=later)

        def finish():
            if mine == root:
                slot.put(held % 3)

    elif kind in ("all_gather", "gather"):
        targets = members if kind == "all_gather" else [members[root]]
        for member in targets:
            slot.all[member] = given[members[pick]]
        if here and kind == "all_gather":
            work = dist.all_gather(like, slot.tensor, group=group, async_op=later)
        elif here:
            taken = like if mine == root else None
            work = dist.gather(slot.tensor, taken, group_dst=root, group=group, async_op=later)

        def finish():
            if rank in targets:
                slot.put(like[pick])

    elif kind == "scatter":
        for place, member in enumerate(members):
            slot.all[member] = number(given[members[root]] + place)
        parts = [slot.plus(place) for place in range(count)] if mine == root else None
        work = here and dist.scatter(slot.tensor, parts, group_src=root, group=group, async_op=later)
    elif kind == "reduce_scatter":
        for place, member in enumerate(members):
            slot.all[member] = reduced(op, [number(given[other] + place) for other in members])
        parts = [slot.plus(place) for place in range(count)] if here else []
        work = here and dist.reduce_scatter(slot.tensor, parts, op, group=group, async_op=later)
    elif kind == "all_to_all":
        for place, member in enumerate(members):
            slot.all[member] = number(given[members[pick]] + place)
        parts = [slot.plus(place) for place in range(count)] if here else []
        work = here and dist.all_to_all(like, parts, group=group, async_op=later)

        def finish():
            if here:
                slot.put(like[pick])

    elif kind in ("all_gather_single", "reduce_scatter_single") and slot.shape:
        whole = torch.zeros((slot.shape[0] * count, *slot.shape[1:]), dtype=slot.dtype)
        rows = slot.shape[0]
        if kind == "all_gather_single":
            for member in members:
                slot.all[member] = given[members[pick]]
            work = here and dist.all_gather_single(whole, slot.tensor, group=group, async_op=later)
            finish = lambda: here and slot.put(whole[pick * rows : (pick + 1) * rows])  # noqa: E731
        else:
            for place, member in enumerate(members):
                slot.all[member] = reduced(op, [number(given[other] + place) for other in members])
            if here:
                whole = torch.cat([slot.plus(place) for place in range(count)])
                work = dist.reduce_scatter_single(slot.tensor, whole, op, group=group, async_op=later)
    elif kind == "all_to_all_single":
        sizes = [[draw.randrange(3) for _ in members] for _ in members]  # rows from one to another
        if here:
            source = torch.full((sum(sizes[mine]), 2), float(mine + 1))
            taken = torch.zeros(sum(row[mine] for row in sizes), 2)
            counts = [row[mine] for row in sizes]
            work = dist.all_to_all_single(taken, source, counts, sizes[mine], group=group, async_op=later)

        def finish():
            if here:
                wanted = [float(other + 1) for other, row in enumerate(sizes) for _ in range(2 * row[mine])]
                assert taken.flatten().tolist() == wanted, (taken, wanted)

    elif kind == "ring" and count > 1:
        for place, member in enumerate(members):
            slot.all[member] = given[members[place - 1]]
        if here:
            taken = like[0]
            after, before = (mine + 1) % count, (mine - 1) % count
            calls = [
                dist.P2POp(dist.isend, slot.tensor.clone(), group=group, group_peer=after),
                dist.P2POp(dist.irecv, taken, group=group, group_peer=before),
            ]
            for one in dist.batch_isend_irecv(calls):
                one.wait()
            slot.put(taken)
        finish = lambda: None  # noqa: E731
    elif kind == "send" and count > 1:
        source, target = root, (root + 1 + draw.randrange(count - 1)) % count
        tag = draw.randrange(3)
        slot.all[members[target]] = given[members[source]]
        if mine == source:
            work = dist.isend(slot.tensor, group=group, group_dst=target, tag=tag)
            finish = lambda: None  # noqa: E731
        elif mine == target:
            dist.recv(like[0], group=group, group_src=source, tag=tag)
            slot.put(like[0])
    elif kind == "objects":
        said = [None] * count
        if here:
            dist.all_gather_object(said, (rank, "x" * rank), group=group)
            assert said == [(member, "x" * member) for member in members]
    elif kind == "barrier":
        work = here and dist.barrier(group=group, async_op=later)
    slot.pending = (work or None, finish if here else lambda: None)
    if not later:
        slot.settle()
    return kind


def main(count="40", seed="0"):
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    groups = {}
    for length in range(1, size + 1):
        for members in itertools.combinations(range(size), length):
            groups[members] = dist.new_group(list(members))
    seen = {}
    for program in range(int(count)):
        draw = random.Random(f"{seed}/{program}")
        slots = [Slot(draw, rank, size) for _ in range(draw.randrange(1, 5))]
        kinds = []
        for _ in range(draw.randrange(2, 9)):
            kinds.append(step(draw, draw.choice(slots), groups, rank, size))
            seen[kinds[-1]] = seen.get(kinds[-1], 0) + 1
        draw.shuffle(slots)
        for slot in slots:
            slot.settle()
            got = slot.tensor.double().numpy()
            assert got.shape == slot.all[rank].shape, (program, kinds, got.shape)
            assert np.array_equal(got, slot.all[rank]), (program, kinds, slot.dtype, got, slot.all[rank])
    dist.destroy_process_group()
    assert int(count) < 40 or len(seen) == 15, seen
    print("ok", rank, count, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
