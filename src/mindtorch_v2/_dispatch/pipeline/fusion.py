"""Chains and trees of pointwise operators over one shape, run block by block so that what is between them stays in the cache.

A group is the shape, strides and dtype that the entries of a chain share. The loops are those that the schema gives an operator (`block:`), which
the extension's interpreter runs; without the extension the operators' numpy kernels run on the blocks. Values that the chain alone uses live in
block buffers, of which each is used again once its value has been read for the last time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import errstate, ndarray

from ..._backends.common.convert import number
from ..._dtype import DTYPES
from ..._memory import empty_strided
from ..._payload import contiguous_strides
from ..._tensor import Tensor
from .. import native
from ..operator import Block, Operator
from .blocks import Chain, run_in_c, run_in_numpy
from .values import Entry, Value, Window, as_tensor

LONGEST = 48
"""Operators of a chain."""

_FLOATS = (DTYPES["float32"], DTYPES["float64"])
_BOOL = DTYPES["bool"]
_EXACT = 1 << 53  # integers up to here are float64's too


def group_of(entry: Entry) -> tuple | None:
    """(shape, stride, dtype of the computation) when an entry can be part of a chain, else None. Notes the loop in the entry."""
    op, spec = entry.op, entry.spec
    if not op.block or entry.form != "run" or entry.where.type != "cpu" or 0 in entry.shape:
        return None
    kind = spec.dtype if spec.dtype in _FLOATS else None
    masks = False
    for index in op.tensors:
        arg = entry.args[index]
        if isinstance(arg, (Value, Window, Tensor)) and arg.dtype is not kind:
            if kind is None and arg.dtype in _FLOATS:
                kind = arg.dtype
            elif arg.dtype is _BOOL:
                masks = masks or index in op.cast
            else:
                return None
    if kind is None or (spec.dtype is not kind and spec.dtype is not _BOOL) or spec.compute not in (None, kind):
        return None
    if native.extension is None:
        if masks or not op.takes_out.get("cpu", False):
            return None
    else:
        entry.block = entry.block or _block_of(op, entry.args)
        if entry.block is None:
            return None
    return (entry.shape, entry.stride, kind)


def _block_of(op: Operator, args: tuple) -> Block | None:
    """The loop that the extension would choose, if its operands can be those of a chain."""
    chosen = native.blocked(op).choose(args)
    return None if chosen < 0 or not all(_is_operand(args[i]) for i in op.block[chosen].operands) else op.block[chosen]


def _is_operand(arg: Any) -> bool:
    if arg.__class__ is int:
        return -_EXACT <= arg <= _EXACT
    return arg.__class__ is float or isinstance(arg, (Value, Window, Tensor))


def joins(entry: Entry, group: tuple, step: Any) -> bool:
    """Whether an entry can go on with the chain of a step: it has its geometry, and reads what the chain makes as a whole."""
    if group != step.group or len(step.entries) >= LONGEST:
        return False
    for index in entry.op.tensors:
        arg = entry.args[index]
        if arg.__class__ is Window and arg.value.step is step:
            return False
    return True


def run(step: Any) -> None:
    """Compute the entries of a step; those that are kept get payloads."""
    shape, stride, kind = step.group
    order = tuple(sorted(range(len(shape)), key=lambda d: (-stride[d], d)))  # the dimensions as they lie in memory
    dense = stride == contiguous_strides(shape)
    chain = Chain(tuple(shape[d] for d in order), kind)
    places: dict[int, int] = {}  # of the arguments that come from outside, by identity
    inside = {id(entry): i for i, entry in enumerate(step.entries)}
    payloads: list[ndarray | None] = []
    for entry in step.entries:
        given: list[tuple[bool, int]] = []
        for index, arg in enumerate(entry.args):
            made = inside.get(id(arg)) if isinstance(arg, Value) else None
            if made is not None:
                given.append((True, made))
                continue
            place = places.get(id(arg))
            if place is None:
                place = places[id(arg)] = len(chain.sources)
                chain.sources.append(_source(arg, shape, order, kind, index in entry.op.cast))
            given.append((False, place))
        payload = empty_strided(shape, stride, entry.dtype.np) if entry.kept else None
        target = None if payload is None else payload if dense else payload.transpose(order)
        chain.add(entry.op, entry.block, given, target, entry.dtype.np)
        payloads.append(payload)
    with errstate(all="ignore"):
        (run_in_numpy if native.extension is None else run_in_c)(chain)
    for entry, payload in zip(step.entries, payloads):  # only now: other threads look whether it is there
        entry.payload = payload


def _source(arg: Any, shape: tuple, order: tuple, kind: Any, is_operand: bool) -> Any:
    """An argument as the runners take it: arrays in the order of memory, stretched to the shape; numbers as they are or, for numpy, as arrays."""
    if isinstance(arg, (Value, Window, Tensor)):
        array = as_tensor(arg)._payload
        return array if array.ndim == 0 else np.broadcast_to(array, shape).transpose(order)
    if native.extension is None and is_operand and not isinstance(arg, ndarray):
        return number(arg, kind)
    return arg
