"""Running a chain of pointwise operators over blocks: by the extension's interpreter, or by numpy."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy import ndarray

from .. import native

BLOCK_BYTES = 1 << 16
"""Of numpy's block buffers: several stay in the second-level cache, and a call of numpy has some work to do."""


@dataclass
class Call:
    """One operator. given: for each argument whether it is a result of the chain, and the number of the call or of the source."""

    op: Any
    block: Any
    given: list[tuple[bool, int]]
    target: Any
    dtype: np.dtype


@dataclass
class Chain:
    """The calls in order, what they read from outside, and the shape in the order of memory; kind is the dtype of the computation."""

    shape: tuple
    kind: Any
    sources: list = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def add(self, op: Any, block: Any, given: list, target: Any, dtype: np.dtype) -> None:
        """Append a call; target: the array for its result (or what stands for it), None when the chain alone reads it."""
        self.calls.append(Call(op, block, given, target, dtype))

    def last_reads(self) -> list[int]:
        """For each call, the call that reads its result last; itself when none does."""
        last = list(range(len(self.calls)))
        for i, call in enumerate(self.calls):
            for inner, n in call.given:
                if inner:
                    last[n] = i
        return last


def run_in_c(chain: Chain) -> None:
    """One program of the interpreter."""
    made = assemble(chain)
    outputs = [call.target for call in chain.calls if call.target is not None]
    program = native.extension.Program(
        chain.kind.itemsize,
        chain.shape,
        made.instructions,
        (*made.inputs, *outputs),
        len(made.inputs),
        made.temporaries,
        made.immediates,
    )
    program.run()


@dataclass
class Assembled:
    """A chain for the interpreter: instructions over slots, of which the first are the inputs, then come the calls with targets, temporaries, numbers."""

    instructions: tuple
    inputs: list
    temporaries: int
    immediates: tuple


def assemble(chain: Chain) -> Assembled:
    """The slots and instructions of a chain; what is no number among its sources is an input."""
    inputs: list[Any] = []
    immediates: list[float] = []
    slots: dict[int, tuple[str, int]] = {}  # by source
    for call in chain.calls:
        for position in call.block.operands:
            inner, n = call.given[position]
            if not inner and n not in slots:
                source = chain.sources[n]
                if source.__class__ is int or source.__class__ is float:
                    slots[n] = ("immediate", len(immediates))
                    immediates.append(float(source))
                else:
                    slots[n] = ("input", len(inputs))
                    inputs.append(source)
    first_temporary = len(inputs) + sum(call.target is not None for call in chain.calls)
    last = chain.last_reads()
    free: list[int] = []
    temporaries = 0
    results: list[int] = []
    written = len(inputs)
    steps: list[tuple] = []
    for i, call in enumerate(chain.calls):
        operands: list[Any] = []
        for position in call.block.operands:
            inner, n = call.given[position]
            operands.append(results[n] if inner else slots[n])
        if call.target is not None:
            slot = written
            written += 1
        elif free:
            slot = free.pop()
        else:
            slot = first_temporary + temporaries
            temporaries += 1
        results.append(slot)
        steps.append((call.block.opcode, slot, *operands))
        for n in {n for inner, n in call.given if inner} | {i}:
            # What is read here for the last time is free from the next call on: a loop may not read what it writes elsewhere.
            if last[n] <= i and chain.calls[n].target is None:
                free.append(results[n])
    first_immediate = first_temporary + temporaries
    instructions = tuple(
        tuple(
            part if part.__class__ is int else part[1] if part[0] == "input" else first_immediate + part[1]
            for part in step
        )
        for step in steps
    )
    return Assembled(instructions, inputs, temporaries, tuple(immediates))


def run_in_numpy(chain: Chain) -> None:
    """The operators' kernels on blocks, with buffers that are used again."""
    total = prod(chain.shape)
    length = min(total, max(1, BLOCK_BYTES // chain.kind.itemsize))
    straight: list[tuple[int, ndarray]] = []
    spread: list[tuple[int, ndarray]] = []
    for i, source in enumerate(chain.sources):
        if isinstance(source, ndarray) and source.ndim:
            if source.flags.c_contiguous:
                straight.append((i, source.reshape(-1)))
            else:
                spread.append((i, source))
    targets = [None if call.target is None else call.target.reshape(-1) for call in chain.calls]
    plan, buffers = _buffers(chain, length)
    now = list(chain.sources)
    made: list[Any] = [None] * len(chain.calls)
    for start in range(0, total, length):
        stop = min(start + length, total)
        for i, source in straight:
            now[i] = source[start:stop]
        for i, source in spread:
            now[i] = _gather(source, start, stop)
        for i, call in enumerate(chain.calls):
            target = targets[i]
            out = buffers[plan[i]][: stop - start] if target is None else target[start:stop]
            call.op.kernels["cpu"](*[made[n] if inner else now[n] for inner, n in call.given], out=out)
            made[i] = out


def _buffers(chain: Chain, length: int) -> tuple[list[int], list[ndarray]]:
    """Which block buffer each call's result goes to, and the buffers."""
    last = chain.last_reads()
    plan: list[int] = []
    buffers: list[ndarray] = []
    free: dict[Any, list[int]] = {}
    for i, call in enumerate(chain.calls):
        if call.target is not None:
            plan.append(-1)
        elif free.get(call.dtype):
            plan.append(free[call.dtype].pop())
        else:
            plan.append(len(buffers))
            buffers.append(np.empty(length, call.dtype))
        for n in {n for inner, n in call.given if inner} | {i}:
            if last[n] <= i and chain.calls[n].target is None:
                free.setdefault(chain.calls[n].dtype, []).append(plan[n])
    return plan, buffers


def _gather(array: ndarray, start: int, stop: int) -> ndarray:
    """Elements start to stop, in C order, of an array that is not contiguous."""
    row = array.shape[-1]
    first, last = start // row, -(-stop // row)
    if array.ndim == 1:
        return array[start:stop]
    if array.ndim > 2:
        outer = np.unravel_index(np.arange(first, last), array.shape[:-1])
        rows = array[outer]
    else:
        rows = array[first:last]
    return np.ascontiguousarray(rows).reshape(-1)[start - first * row : stop - first * row]
