"""Every axis that is said of an operator, on calls drawn by the strategies of the rules: what the pieces give is, put together, what the whole tensors give. No second process is needed."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch.resolver import resolve
from mindtorch_v2._generated import sharding
from mindtorch_v2._generated.tables import operators
from mindtorch_v2.distributed.placements import Partial, Replicate, Shard, _NormPartial
from mindtorch_v2.distributed.tensor import _axes, _dispatch, _redistribute, _spec, _strategy, locals as here

sys.path.insert(0, str(Path(__file__).parents[1] / "mindtorch_v2"))
from strategies import draw_case, read_rows
from strategies.outcomes import Failure, attempt
from strategies.picking import Picker

OPERATORS = {op.full_name: op for op in operators()}
ROWS = [row for row in read_rows() if row.name in sharding.RULES or row.name in sharding.KINDS]
DRAWN = {op.full_name for op in OPERATORS.values() if "random" in op.tags}


class Line:
    """A mesh of one dimension as one of its ranks sees it; nothing can be sent."""

    ndim = 1

    def __init__(self, count, number):
        self.shape, self.number = (count,), number

    def get_coordinate(self):
        return (self.number,)


def parts_of(tensor, mark, count, weights):
    """What each rank has of a tensor."""
    if isinstance(mark, int):
        return [_redistribute.cut(tensor, mark, count, number) for number in range(count)]
    if mark in (_axes.LINEAR, _axes.TERMS) or isinstance(mark, Partial):
        return [tensor * weight for weight in weights]
    return [tensor] * count


def joined(parts, mark, weights):
    """The whole of what the ranks give."""
    if mark is None:
        return parts[0]
    if isinstance(mark, int):
        return torch.cat([part.contiguous() for part in parts], mark)
    if mark is _axes.SAME or mark.reduce_op == "sum":
        return sum(parts[1:], parts[0])
    stacked = torch.stack(parts)
    if isinstance(mark, _NormPartial):
        return (stacked.abs() ** mark.norm_type).sum(0) ** (1 / mark.norm_type)
    if stacked.dtype is torch.bool:
        return stacked.any(0) if mark.reduce_op == "max" else stacked.all(0)
    return {"avg": lambda: stacked.mean(0), "max": lambda: stacked.amax(0), "min": lambda: stacked.amin(0), "product": lambda: stacked.prod(0)}[mark.reduce_op]()  # fmt: skip


def call_of(op, bound):
    """The call with operands in place of tensors, and the tensors."""
    operands, tensors = [], []

    def stand_in(value):
        if isinstance(value, (list, tuple)):
            return [stand_in(item) for item in value] if any(isinstance(i, torch.Tensor) for i in value) else value
        if not isinstance(value, torch.Tensor):
            return value
        operands.append(_axes.Operand(len(operands), value.shape, value.dtype, [Replicate()]))
        tensors.append(value)
        return operands[-1]

    stood = tuple(stand_in(value) for value in bound)
    spec = op.meta(*bound)
    return _axes.Call(op, stood, operands, spec if isinstance(spec, (list, tuple)) else [spec]), tensors


def check(row, case, count):
    """All axes of one call; how many there were."""
    positional, keywords = case.build(torch)
    op = OPERATORS[row.name]
    bound = attempt(lambda: resolve((op,), positional, keywords)[1])
    if isinstance(bound, Failure):
        return 0
    whole = attempt(lambda: _dispatch._plain(op, tuple(fresh(value) for value in bound), False))
    if isinstance(whole, Failure):
        return 0
    made = attempt(lambda: call_of(op, bound))
    if isinstance(made, Failure):
        return 0
    call, tensors = made
    tried = 0
    for axis in _dispatch._axes(call):
        if axis.local is here.mean_likelihood or op.name == "native_dropout":
            continue  # one sends something, the other has its own road: programs/sharding.py
        tried += attempt_axis(call, tensors, axis, whole, count, row)
    return tried


def fresh(value):
    if isinstance(value, torch.Tensor):
        return value.clone()
    return [fresh(item) for item in value] if isinstance(value, list) else value


def attempt_axis(call, tensors, axis, whole, count, row):
    chosen = _strategy.Chosen(call.operands, call.count, 1)
    for operand, tensor in zip(call.operands, tensors):
        mark = axis.inputs.get(operand)
        if mark in (_axes.LINEAR, _axes.TERMS) or isinstance(mark, Partial):
            if not tensor.dtype.is_floating_point:
                return 0
            operand.placements = [Partial()]
    if not _strategy._cost(call, (count,), 0, axis, chosen, None) < float("inf"):
        return 0
    chosen.axes.append(axis)
    for number, operand in enumerate(call.operands):
        chosen.inputs[number][0] = _strategy._wanted(axis, operand, operand.placements[0], None)
    for number in range(call.count):
        chosen.outputs[number][0] = _strategy._output(axis, number, call.operands, 0, None)
    weights = [0.25, 0.75] if count == 2 else [0.25, 0.25, 0.5]
    pieces = [parts_of(t, axis.inputs.get(o), count, weights) for o, t in zip(call.operands, tensors)]
    found = []
    for number in range(count):
        own = [piece[number].clone() for piece in pieces]
        found.append(_dispatch._on_pieces(call, Line(count, number), chosen, own, call.op.is_inplace))
    results = [one if isinstance(one, (list, tuple)) else [one] for one in found]
    wanted = whole if isinstance(whole, (list, tuple)) else [whole]
    for number, expected in enumerate(wanted):
        if not isinstance(expected, torch.Tensor):
            continue
        mark = axis.outputs[number]
        parts = [one[number] for one in results]
        if isinstance(mark, int):
            for place, part in enumerate(parts):
                shape = _spec.local_part(expected.shape, (count,), [Shard(mark)], (place,))[0]
                assert tuple(part.shape) == shape, (case_text(call), axis)
        same(joined(parts, mark, weights), expected, row, (case_text(call), axis))
    return 1


def case_text(call):
    return call.op.full_name, [(o.shape, o.dtype) for o in call.operands], call.given


def same(found, expected, row, what):
    assert found.dtype == expected.dtype or found.dtype.is_floating_point == expected.dtype.is_floating_point, what
    assert found.shape == expected.shape, what
    if row.name in DRAWN or row.base_name.startswith(("empty", "new_empty", "_empty")):
        return
    narrow = expected.dtype.itemsize < 4 or not (expected.dtype.is_floating_point or expected.dtype.is_complex)
    rough = 0.1 if narrow and expected.dtype.is_floating_point else 2e-4
    wide = torch.complex128 if expected.dtype.is_complex else torch.float64
    torch.testing.assert_close(found.to(wide), expected.to(wide), rtol=rough, atol=rough, equal_nan=True, msg=lambda text: f"{text}\n{what}")  # fmt: skip


FEW = set(
    "nll_loss2d_backward native_group_norm_backward native_batch_norm_backward multinomial native_dropout median nanmedian as_strided linalg_ldl_solve lu_unpack _cdist_backward".split()
)
"""Operators of whose drawn calls none has an axis that can be tried."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_axes(row):
    tried = 0
    for number in range(12 if row.name in FEW else 100):
        if number < 12 or not tried:
            picker = Picker(random.Random(f"{row.name} {number}").randint, variety=3)
            tried += check(row, draw_case(picker, row), 2 + number % 2)
    assert tried or row.name in FEW


def test_few_are_operators():
    assert not FEW - {row.name for row in ROWS}
