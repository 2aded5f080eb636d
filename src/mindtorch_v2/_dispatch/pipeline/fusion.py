"""Chains and trees of pointwise operators over one shape, run block by block so that what is between them stays in the cache.

A group is the shape, strides and dtype that the entries of a chain share. Values that the chain alone uses live in block buffers, of which
each is used again once its value has been read for the last time.
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
from .values import Entry, Value, Window, as_tensor

BLOCK_BYTES = 1 << 16
"""Of a block buffer: several stay in the second-level cache, and a call of numpy has some work to do."""

LONGEST = 48
"""Operators of a chain."""

_FLOATS = (DTYPES["float32"], DTYPES["float64"])
_BOOL = DTYPES["bool"]


def group_of(entry: Entry) -> tuple | None:
    """(shape, stride, dtype of the computation) when an entry can be part of a chain, else None."""
    op, spec = entry.op, entry.spec
    if entry.form != "run" or entry.parts is not None or entry.where.type != "cpu" or not _is_blockwise(op):
        return None
    compute = spec.compute or spec.dtype
    if compute not in _FLOATS or (spec.dtype is not compute and spec.dtype is not _BOOL):
        return None
    if 0 in entry.shape:
        return None
    for index in op.tensors:
        arg = entry.args[index]
        if isinstance(arg, (Value, Window, Tensor)) and arg.dtype is not compute:
            return None
    return (entry.shape, entry.stride, compute)


def _is_blockwise(op: Any) -> bool:
    return (
        "pointwise" in op.tags
        and op.takes_out.get("cpu", False)
        and op.mutates is None
        and set(op.tensors) == set(op.cast)
    )


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
    shape, stride, compute = step.group
    order = _order(shape, stride)
    dims = tuple(shape[d] for d in order)
    dense = stride == contiguous_strides(shape)
    sources: list[Any] = []  # arrays in the order of memory, and what is no tensor
    places: dict[int, int] = {}
    inside: dict[int, int] = {id(entry): i for i, entry in enumerate(step.entries)}
    calls: list[tuple] = []
    last: dict[int, int] = {}
    for i, entry in enumerate(step.entries):
        given: list[tuple[int, int]] = []
        for index, arg in enumerate(entry.args):
            made = inside.get(id(arg)) if isinstance(arg, Value) else None
            if made is not None:
                last[made] = i
                given.append((1, made))
                continue
            key = id(arg)
            if key not in places:
                places[key] = len(sources)
                sources.append(_source(arg, shape, order, compute, index in entry.op.cast))
            given.append((0, places[key]))
        calls.append((entry.op.kernels["cpu"], given))
    results: list[ndarray | None] = []
    for entry in step.entries:
        payload = empty_strided(shape, stride, entry.dtype.np) if entry.kept else None
        results.append(payload)
    targets = [None if r is None else (r if dense else r.transpose(order)).reshape(-1) for r in results]
    with errstate(all="ignore"):
        _run_blocks(step.entries, calls, sources, targets, last, dims)
    for entry, payload in zip(step.entries, results):
        entry.payload = payload


def _order(shape: tuple, stride: tuple) -> tuple:
    """The dimensions from the outermost in memory to the innermost."""
    return tuple(sorted(range(len(shape)), key=lambda d: (-stride[d], d)))


def _source(arg: Any, shape: tuple, order: tuple, compute: Any, is_operand: bool) -> Any:
    if isinstance(arg, (Value, Window, Tensor)):
        array = as_tensor(arg)._data
        if array.ndim == 0:
            return array
        array = np.broadcast_to(array, shape).transpose(order)
        return array.reshape(-1) if array.flags.c_contiguous else array
    return number(arg, compute) if is_operand else arg


def _run_blocks(entries: list, calls: list, sources: list, targets: list, last: dict, dims: tuple) -> None:
    total = 1
    for n in dims:
        total *= n
    length = min(
        total,
        max(1, BLOCK_BYTES // np.dtype(entries[0].dtype.np if entries[0].dtype is not _BOOL else np.float32).itemsize),
    )
    free: dict[Any, list[ndarray]] = {}
    spread = [
        (i, s)
        for i, s in enumerate(sources)
        if s.__class__ is ndarray and s.ndim > 0 and not (s.ndim == 1 and s.size == total)
    ]
    straight = [i for i, s in enumerate(sources) if s.__class__ is ndarray and s.ndim == 1 and s.size == total]
    for start in range(0, total, length):
        stop = min(start + length, total)
        now = list(sources)
        for i in straight:
            now[i] = sources[i][start:stop]
        for i, array in spread:
            now[i] = _gather(array, start, stop)
        made: list[Any] = [None] * len(entries)
        for i, (kernel, given) in enumerate(calls):
            target = targets[i]
            kind = entries[i].dtype.np
            if target is None:
                pool = free.setdefault(kind, [])
                out = (pool.pop() if pool else np.empty(length, kind))[: stop - start]
            else:
                out = target[start:stop]
            kernel(*[made[n] if inner else now[n] for inner, n in given], out=out)
            made[i] = out
            for inner, n in given:
                if inner and last[n] == i and targets[n] is None and made[n] is not None:
                    buffer = made[n].base if made[n].base is not None else made[n]
                    free[entries[n].dtype.np].append(buffer)
                    made[n] = None
            if i not in last and target is None:
                free[kind].append(out.base if out.base is not None else out)


def _gather(array: ndarray, start: int, stop: int) -> ndarray:
    """Elements start to stop, in C order, of an array that is not contiguous."""
    flat = np.empty(stop - start, array.dtype)
    inner = array.shape[-1]
    if start % inner == 0 and stop % inner == 0 and array.ndim == 2:
        flat.reshape(-1, inner)[...] = array[start // inner : stop // inner]
        return flat
    return array.flat[start:stop]
