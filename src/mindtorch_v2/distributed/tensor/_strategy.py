"""Which axis of a call the ranks of each of the mesh's dimensions divide among them: the one for which the fewest bytes have to be moved.

Note [Choosing axes]
The dimensions of the mesh choose one after the other. An axis says where each tensor has to lie; what it costs is what its collectives move, and very little for what is cut or replaced by
zeros where it is. So tensors that fit each other stay as they are, and where nothing is divided every rank computes everything. Results that would cost later what they save now are not
looked for: a program says by `redistribute` where it knows better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mindtorch_v2 as torch

from ..._dispatch.operator import Operator
from ..device_mesh import DeviceMesh
from ..placements import Partial, Placement, Replicate, Shard, _StridedShard, part_of
from ._axes import LINEAR, SAME, TERMS, UNREAD, WHOLE, Axis, Call, Operand
from ._redistribute import LINEAR as LINEAR_REDUCTIONS, reduced

_CUT = 1e-3  # what a byte costs that is left out, or replaced by zeros, beside one that is sent
_NEVER = math.inf


class Chosen:
    """What was chosen: the placements of each tensor and of each result, and the axes."""

    def __init__(self, operands: list[Operand], count: int, width: int) -> None:
        self.inputs: list[list[Placement]] = [list(operand.placements) for operand in operands]
        self.outputs: list[list[Placement]] = [[Replicate()] * width for _ in range(count)]
        self.axes: list[Axis] = []

    @property
    def is_whole(self) -> bool:
        """Whether every rank computes everything."""
        return all(axis is WHOLE for axis in self.axes)


class Here:
    """A call's pieces on this rank, for what runs in place of the operator: where they begin (`offsets`), what the first result's piece is like (`shape`), the operator itself (`run`)."""

    def __init__(self, op: Operator, mesh: DeviceMesh, axes: list[Axis], offsets: Any, run: Any, shape: Any) -> None:
        self.op = op
        self.mesh = mesh
        self.axes = axes
        self.offsets = offsets
        self.run = run
        self.shape = shape

    def summed(self, local: torch.Tensor) -> torch.Tensor:
        """The sum over all ranks that divide the axis which this stands for."""
        return self.reduced(local, Partial())

    def reduced(self, local: torch.Tensor, terms: Partial) -> torch.Tensor:
        """What these ranks' terms are together."""
        for number, axis in enumerate(self.axes):
            if axis.local is not None and self.mesh.shape[number] > 1:
                local = reduced(local, terms, self.mesh.get_group(number))
        return local


def choose(call: Call, mesh: DeviceMesh, axes: Sequence[Axis], target: Sequence[Placement] | None) -> Chosen | None:
    """The axes of all dimensions of the mesh.

    Args:
        target: where the first tensor lies, if the call writes to it, so that it and the result have to.

    Returns:
        None where there is none for a tensor that is written to.
    """
    chosen = Chosen(call.operands, call.count, mesh.ndim)
    sizes = mesh.shape
    for number in range(mesh.ndim):
        best, least = None, _NEVER
        for axis in (WHOLE, *axes):
            cost = _cost(call, sizes, number, axis, chosen, target)
            if cost < least:
                best, least = axis, cost
        if best is None:
            return None
        chosen.axes.append(best)
        kind = _template(best, call.operands, number)
        for place, operand in zip(chosen.inputs, call.operands):
            place[number] = _wanted(best, operand, place[number], kind)
        for index, place in enumerate(chosen.outputs):
            place[number] = _output(best, index, call.operands, number, kind)
    return chosen


def _template(axis: Axis, operands: list[Operand], number: int) -> Shard | None:
    """A strided part, where a tensor that is divided lies so already: its like is taken for all."""
    for operand, wanted in axis.inputs.items():
        p = operand.placements[number]
        if isinstance(wanted, int) and isinstance(p, _StridedShard) and p.dim == wanted:
            return p
    return None


def _shard(dim: int, kind: Shard | None) -> Shard:
    return _StridedShard(dim, kind.split_factor) if isinstance(kind, _StridedShard) else Shard(dim)


def _wanted(axis: Axis, operand: Operand, now: Placement, kind: Shard | None) -> Placement:
    wanted = axis.inputs.get(operand)
    if wanted is None:
        return Replicate()
    if isinstance(wanted, int):
        return _shard(wanted, kind)
    return wanted if isinstance(wanted, Placement) else now


def _output(axis: Axis, index: int, operands: list[Operand], number: int, kind: Shard | None) -> Placement:
    made = axis.outputs[index] if axis.outputs else None
    if made is None:
        return Replicate()
    if isinstance(made, int):
        return _shard(made, kind)
    if made is SAME:
        return next(o.placements[number] for o, mark in axis.inputs.items() if mark in (LINEAR, TERMS))
    return made


def _cost(
    call: Call, sizes: Sequence[int], number: int, axis: Axis, chosen: Chosen, target: Sequence[Placement] | None
) -> float:
    if axis.local is not None and any(one.local not in (None, axis.local) for one in chosen.axes):
        return _NEVER  # only one can run in place of the operator
    total = 0.0
    terms: set[Placement] = set()
    kind = _template(axis, call.operands, number)
    for operand, place in zip(call.operands, chosen.inputs):
        now, mark = operand.placements[number], axis.inputs.get(operand)
        if mark is LINEAR or mark is TERMS:
            if not isinstance(now, Partial) or (mark is LINEAR and now.reduce_op not in LINEAR_REDUCTIONS):
                return _NEVER
            terms.add(now)
            continue
        if mark is UNREAD:
            continue
        wanted = _wanted(axis, operand, now, kind)
        if isinstance(wanted, Shard) and not _fits(operand.shape[wanted.dim], place, wanted.dim, sizes, number, axis):
            return _NEVER
        if target is not None and operand.number == 0 and wanted != now:
            return _NEVER
        total += _moved(operand, place, sizes, number, now, wanted)
    if len(terms) > 1:
        return _NEVER
    for index, made in enumerate(axis.outputs):
        shape = call.shapes[index]
        if isinstance(made, int) and (
            shape is None or not _fits(shape[made], chosen.outputs[index], made, sizes, number, axis)
        ):
            return _NEVER
    if target is not None and _output(axis, 0, call.operands, number, kind) != target[number]:
        return _NEVER
    return total


def _fits(size: int, place: Sequence[Placement], dim: int, sizes: Sequence[int], number: int, axis: Axis) -> bool:
    """Whether a dimension may be divided by one more dimension of the mesh."""
    count = sizes[number]
    for before, p in enumerate(place[:number]):
        if isinstance(p, Shard) and p.dim == dim:
            count *= sizes[before]
    if axis.even and size % count:
        return False
    return not axis.filled or not size or part_of(size, count, count - 1)[1] > 0


def _moved(
    operand: Operand, place: Sequence[Placement], sizes: Sequence[int], number: int, now: Placement, wanted: Placement
) -> float:
    """About how many bytes a rank sends to have a tensor lie in another way in this dimension of the mesh."""
    if now == wanted:
        return 0.0
    count = sizes[number]
    bytes_here = float(math.prod(operand.shape) * operand.dtype.itemsize)
    for other, p in enumerate(place):
        if other != number and isinstance(p, Shard):
            bytes_here /= sizes[other]
    sent = bytes_here * (count - 1) / count + 1.0
    if isinstance(now, Replicate):
        return _CUT * sent
    if isinstance(now, Shard):
        if isinstance(wanted, Shard):
            return sent / count + 1.0
        return sent if isinstance(wanted, Replicate) else 2.0 * sent
    return sent if isinstance(wanted, Shard) else 2.0 * sent
