"""From one placement of a tensor to another: the collectives on its pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindtorch_v2 as torch

from .._collectives import all_gather_single, all_reduce, all_to_all, reduce_scatter_single
from .._reduction import ReduceOp
from ..device_mesh import DeviceMesh
from ..placements import Partial, Placement, Replicate, Shard, _NormPartial, part_of
from ._spec import local_part, order

Tensor = torch.Tensor

_REDUCTIONS = {"sum": ReduceOp.SUM, "avg": ReduceOp.AVG, "product": ReduceOp.PRODUCT, "max": ReduceOp.MAX, "min": ReduceOp.MIN,
               "band": ReduceOp.BAND, "bor": ReduceOp.BOR, "bxor": ReduceOp.BXOR}  # fmt: skip
LINEAR = ("sum", "avg")


def reduced(local: Tensor, placement: Partial, group: Any) -> Tensor:
    """What the terms of all ranks of a group are together."""
    if isinstance(placement, _NormPartial):
        power = placement.norm_type
        total = (local**power).contiguous()
        all_reduce(total, ReduceOp.SUM, group)
        return total ** (1 / power)
    if placement.reduce_op not in _REDUCTIONS:
        raise ValueError(f"unknown reduction {placement.reduce_op!r} of a Partial")
    whole = local.clone(memory_format=torch.contiguous_format)
    all_reduce(whole, _REDUCTIONS[placement.reduce_op], group)
    return whole


def term(local: Tensor, placement: Partial, number: int) -> Tensor:
    """A term of the rank with a number, so that all terms together are what every rank has."""
    if placement.reduce_op in ("sum", "bxor", "norm"):
        return local if number == 0 else torch.zeros_like(local)
    if placement.reduce_op == "product":
        return local if number == 0 else torch.ones_like(local)
    return local


def _padded(local: Tensor, dim: int, length: int) -> Tensor:
    short = length - local.shape[dim]
    if short:
        shape = list(local.shape)
        shape[dim] = short
        local = torch.cat([local, local.new_zeros(shape)], dim)
    return local.contiguous()


def gathered(local: Tensor, dim: int, size: int, group: Any, count: int) -> Tensor:
    """The parts of all ranks joined to `size` elements in a dimension."""
    if count == 1:
        return local
    length = -(-size // count)
    given = _padded(local, dim, length)
    taken = given.new_empty((count, *given.shape))
    all_gather_single(taken, given, group)
    if dim == 0:
        return taken.view(count * length, *given.shape[1:])[:size]
    moved = taken.movedim(0, dim)
    shape = list(given.shape)
    shape[dim] = count * length
    return moved.reshape(shape).narrow(dim, 0, size).contiguous()  # as one process has it, of which views are taken


def _scattered(local: Tensor, dim: int, placement: Partial, group: Any, count: int, number: int) -> Tensor:
    """The reduction's own part in a dimension."""
    size = local.shape[dim]
    length = -(-size // count)
    front = _padded(local, dim, count * length).movedim(dim, 0).contiguous()
    taken = front.new_empty((length, *front.shape[1:]))
    reduce_scatter_single(taken, front, _REDUCTIONS[placement.reduce_op], group)
    kept = part_of(size, count, number)[1]
    return taken[:kept].movedim(0, dim).contiguous()


def _exchanged(local: Tensor, before: int, after: int, size: int, group: Any, count: int, number: int) -> Tensor:
    """The part in another dimension: every rank sends each its piece of what it has."""
    here = local.shape[after]
    given = [local.narrow(after, *part_of(here, count, other)).contiguous() for other in range(count)]
    own = part_of(here, count, number)[1]
    taken = []
    for other in range(count):
        shape = list(local.shape)
        shape[before], shape[after] = part_of(size, count, other)[1], own
        taken.append(local.new_empty(shape))
    all_to_all(taken, given, group)
    return torch.cat(taken, before)


def cut(local: Tensor, dim: int, count: int, number: int) -> Tensor:
    """A part of what every rank has, in memory of its own."""
    return local.narrow(dim, *part_of(local.shape[dim], count, number)).clone(memory_format=torch.contiguous_format)


def redistribute(
    local: Tensor,
    shape: Sequence[int],
    mesh: DeviceMesh,
    current: Sequence[Placement],
    target: Sequence[Placement],
) -> Tensor:
    """The piece of a tensor of a shape under other placements. The result may be the piece that is given."""
    if tuple(current) == tuple(target):
        return local
    place = mesh.get_coordinate()
    if place is None:
        return local
    now: list[Placement] = list(current)
    sizes = mesh.shape
    changed = _changed(len(shape), now, target)
    # What was divided is joined, the last division first.
    for number in sorted(changed, key=lambda m: _depth(now, m), reverse=True):
        source, wanted = now[number], target[number]
        if not isinstance(source, Shard):
            continue
        rest = [Replicate() if m == number else p for m, p in enumerate(now)]
        size = local_part(shape, sizes, rest, place)[0][source.dim]
        alone = [m for m in changed if m != number and isinstance(now[m], Shard)]
        if (
            isinstance(wanted, Shard) and wanted.dim != source.dim and not alone and sizes[number] > 1
            and order(target, wanted.dim)[-1] == number and order(rest, wanted.dim) == order(target, wanted.dim)[:-1]
        ):  # fmt: skip
            local = _exchanged(
                local, source.dim, wanted.dim, size, mesh.get_group(number), sizes[number], place[number]
            )
            now[number] = wanted
            continue
        local = gathered(local, source.dim, size, mesh.get_group(number), sizes[number])
        now[number] = Replicate()
    for number in changed:
        source, wanted = now[number], target[number]
        if not isinstance(source, Partial) or source == wanted:
            continue
        if isinstance(wanted, Shard) and sizes[number] > 1 and source.reduce_op in _REDUCTIONS:
            before = order(target, wanted.dim)
            if order(now, wanted.dim) == before[: before.index(number)]:
                local = _scattered(local, wanted.dim, source, mesh.get_group(number), sizes[number], place[number])
                now[number] = wanted
                continue
        local = reduced(local, source, mesh.get_group(number)) if sizes[number] > 1 else local
        now[number] = Replicate()
    for number in sorted(changed, key=lambda m: _depth(target, m)):
        wanted = target[number]
        if now[number] == wanted:
            continue
        if isinstance(wanted, Shard):
            local = cut(local, wanted.dim, sizes[number], place[number])
        elif isinstance(wanted, Partial):
            local = term(local, wanted, place[number])
        now[number] = wanted
    return local


def _depth(placements: Sequence[Placement], number: int) -> int:
    """After how many others a dimension of the mesh divides what it divides."""
    p = placements[number]
    return order(placements, p.dim).index(number) if isinstance(p, Shard) else 0


def _changed(ndim: int, current: Sequence[Placement], target: Sequence[Placement]) -> list[int]:
    """The dimensions of the mesh whose placement changes, or that divide what one of these divided before."""
    kept = {m for m, (p, q) in enumerate(zip(current, target)) if p == q and not isinstance(p, Shard)}
    for dim in range(ndim):
        for before, after in zip(order(current, dim), order(target, dim)):
            if before != after:
                break
            kept.add(before)
    return [m for m in range(len(current)) if m not in kept]
