"""Programs that go through memory part by part: pointwise operators, and those that work row by row, over rows that stay in the cache.

Note [Rows]
A group is a run of entries whose results have as many dimensions each and begin with the same ones, the *lead*: no entry works along these (its operator is
pointwise, or tagged `by_rows` with a `dim` behind them). So what a part of the lead gives needs only that part of the operands: the entries of a group run one after the other on a part that fits the
second-level cache, then on the next one. Each part is computed by the operator's own function, as an eager call would be, so every bit is as without a pipeline; what
the group alone reads is never written to memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from ..._memory import empty_strided
from ..._payload import contiguous_strides
from ..._rules.spec import Spec
from ..._state import TLS
from ..._tensor import Tensor
from .. import native, ops
from ..operator import Operator
from . import fusion
from .blocks import Chain, assemble
from .values import Entry, Value, Window, as_tensor

PART = 1 << 16
"""Elements of a part of the largest value: a few of them stay in the second-level cache."""
LEAST = 1 << 17
"""Elements of the largest value from which a group runs by parts."""


def may_wait(op: Operator, spec: Any, args: tuple, where: Any) -> bool:
    """Whether a call cannot fail whatever the elements are, and may be part of a group or chain: floating-point numbers and masks on the CPU."""
    if spec.__class__ is not Spec or spec.shape is None or where.type != "cpu":
        return False
    if not (op.block or "by_rows" in op.tags):
        return False
    if not _is_safe(spec.dtype) or op.mutates is not None:
        return False
    for index in op.tensors:
        arg = args[index]
        for item in arg if arg.__class__ is list else (arg,):
            if isinstance(item, Tensor) and not _is_safe(item.dtype):
                return False
    return True


def _is_safe(kind: Any) -> bool:
    return kind.is_floating_point or kind.itemsize == 1 and kind.np == np.bool_


class Group:
    """Entries that go together: how many dimensions their results have, and the lead. See Note [Rows]."""

    __slots__ = ("lead", "ndim", "kinds")

    def __init__(self, lead: tuple, ndim: int) -> None:
        self.lead = lead
        self.ndim = ndim
        self.kinds = False  # whether an entry is more than pointwise over one shape

    def fits(self) -> bool:
        """Whether there is anything to go by."""
        return prod(self.lead) > 1


def lead_of(entry: Entry) -> tuple | None:
    """The dimensions that an entry could have in common with others: all but the last, and those along which it does not work. None for entries of no group."""
    op, shape = entry.op, entry.shape
    if entry.form != "run" or entry.parts is not None or function_of(op) is None or native.extension is None:
        return None
    if 0 in shape or len(shape) < 2 or entry.stride != contiguous_strides(shape) or entry.where.type != "cpu":
        return None
    if "by_rows" not in op.tags:
        return shape[:-1] if op.block else None
    first = _first_dim(entry)
    return None if not first else shape[:first]


def function_of(op: Operator) -> Any:
    """The public function of an operator, or None: what is only a method, or was not asked for yet."""
    if op.function is None:
        getattr(ops, op.name, None)  # which imports it
    return op.function


def _first_dim(entry: Entry) -> int | None:
    """The first dimension along which an entry works; None where it is all of them, or the result has other dimensions."""
    op, args = entry.op, entry.args
    for param, arg in zip(op.params, args):
        if param.name == "dim":
            dims = (arg,) if arg.__class__ is int else arg
            if not dims:
                return None
            ndim = len(_first_tensor(entry).shape)
            return min(d % ndim for d in dims) if ndim == len(entry.shape) else None
        if param.name == "normalized_shape":
            return len(entry.shape) - len(arg)
    return None


def _first_tensor(entry: Entry) -> Any:
    arg = entry.args[entry.op.tensors[0]]
    return arg[0] if arg.__class__ is list else arg


def operands(entry: Entry) -> Iterator[Any]:
    """The values, windows and tensors that an entry reads."""
    for index in entry.op.tensors:
        arg = entry.args[index]
        for item in arg if arg.__class__ is list else (arg,):
            if isinstance(item, (Value, Window, Tensor)):
                yield item


def joined(group: Group, entry: Entry, step: Any) -> tuple | None:
    """The lead of a group with one more entry (of a step, or the first one); None when it does not fit."""
    own = lead_of(entry)
    if own is None or len(entry.shape) != group.ndim:
        return None
    lead = tuple(_common(group.lead, own))
    if not lead or prod(lead) < 2:
        return None
    by_rows = "by_rows" in entry.op.tags
    for item in operands(entry):
        inner = _inner(item, step)
        if inner is not None:
            if len(item.shape) != group.ndim or item.shape[: len(lead)] != lead or not _is_part(item, inner, len(lead)):
                return None
        elif by_rows and len(item.shape) != group.ndim and len(item.shape) > group.ndim - len(lead):
            return None
        elif by_rows and len(item.shape) == group.ndim and item.shape[: len(lead)] != lead:
            return None
    return lead


def _inner(item: Any, step: Any) -> Value | None:
    """The value of a step that an operand is, or looks into."""
    value = item.value if item.__class__ is Window else item
    return value if isinstance(value, Value) and step is not None and value.step is step else None


def _is_part(item: Any, value: Value, count: int) -> bool:
    """Whether each place of the first dimensions is seen through a window as it is in the value."""
    if item.__class__ is not Window:
        return True
    inside = value.stride[count - 1]
    reach = item.offset + sum((n - 1) * s for n, s in zip(item.shape[count:], item.stride[count:]))
    return (
        item.dtype is value.dtype
        and item.stride[:count] == value.stride[:count]
        and 0 <= item.offset
        and reach < inside
    )


def _common(first: tuple, second: tuple) -> Iterator[int]:
    for a, b in zip(first, second):
        if a != b:
            return
        yield a


def is_worth(entries: list[Entry], group: Group) -> bool:
    """Whether a group is large enough to go by parts, and has more than one."""
    largest = max(prod(entry.shape) for entry in entries)
    inner = largest // prod(group.lead)
    return len(entries) > 1 and largest >= LEAST and inner <= PART


# ---------------------------------------------------------------------------------------------------------------- running


def run(step: Any) -> None:
    """Compute the entries of a step by parts; those that are kept get payloads."""
    entries, lead, ndim = step.entries, step.group.lead, step.group.ndim
    at, length = _cut(max((entry.shape for entry in entries), key=prod), len(lead))
    program = _Program(entries, ndim, at)
    before, TLS.grad_enabled = TLS.grad_enabled, False
    try:
        native.extension.run_rows(
            tuple(program.sources), tuple(program.windows), program.calls, len(entries), lead, at, length
        )
    finally:
        TLS.grad_enabled = before
    for entry, payload in zip(entries, program.kept):  # only now: other threads look whether it is there
        entry.payload = payload


def _cut(shape: tuple, lead: int) -> tuple[int, int]:
    """The dimension that is cut, and how much of it makes a part; those before it go one by one."""
    at, inner = lead - 1, prod(shape[lead:])
    while at > 0 and inner * shape[at] <= PART // 2:
        inner *= shape[at]
        at -= 1
    parts = -(-shape[at] * inner // PART)
    return at, -(-shape[at] // parts)


class _Program:
    """Entries as `_native.run_rows` takes them: sources, windows and calls, whose operands are numbered: the sources, then what the entries give, then windows into that.

    A call is a function or a chain of loops. A chain has no more than the values that something else reads written to memory.
    """

    def __init__(self, entries: list[Entry], ndim: int, at: int) -> None:
        self.ndim = ndim
        self.at = at
        self.sources: list[tuple] = []
        self.windows: list[tuple] = []
        self.kept = [empty_strided(e.shape, e.stride, e.dtype.np) if e.kept else None for e in entries]
        self._numbers: dict[int, int] = {}  # of the operands, by identity
        own = {id(entry) for entry in entries}
        for entry in entries:
            for item in operands(entry):
                self._add_source(item, own)
        self._first = len(self.sources)
        for number, entry in enumerate(entries, self._first):
            self._numbers[id(entry)] = number
        for entry in entries:
            for item in operands(entry):
                if item.__class__ is Window and id(item.value) in own and id(item) not in self._numbers:
                    self._numbers[id(item)] = self._first + len(entries) + len(self.windows)
                    of, shape, stride = self._numbers[id(item.value)], item.shape[at + 1 :], item.stride[at:]
                    self.windows.append((of, shape, stride, item.offset, item.dtype))
        calls = _calls(entries)
        last = self._last_reads(calls)
        self.calls = tuple(self._call(call, place, last) for place, call in enumerate(calls))

    def _add_source(self, item: Any, own: set[int]) -> None:
        key = _key(item)
        if key in self._numbers or id(item.value if item.__class__ is Window else item) in own:
            return
        array = as_tensor(item)._payload
        lacks = self.ndim - array.ndim
        drops = tuple(d if array.shape[d - lacks] != 1 else -1 for d in range(max(lacks, 0), self.at))
        moves = self.at >= lacks and array.shape[self.at - lacks] != 1
        self._numbers[key] = len(self.sources)
        self.sources.append((array, item.dtype, drops, moves))

    def _number(self, item: Any) -> int:
        return self._numbers[_key(item)]

    def _last_reads(self, calls: list[list[Entry]]) -> dict[int, int]:
        """For each result and window the call that reads it last; the one that makes it when none does."""
        last: dict[int, int] = {}
        for place, entries in enumerate(calls):
            for entry in entries:
                last[self._numbers[id(entry)]] = place
                for item in operands(entry):
                    number = self._number(item)
                    if number >= self._first:
                        last[number] = place
                    if item.__class__ is Window and id(item.value) in self._numbers:
                        last[self._numbers[id(item.value)]] = place
        return last

    def _call(self, entries: list[Entry], place: int, last: dict[int, int]) -> tuple:
        releases = tuple(number for number, reader in last.items() if reader == place)
        made = self._chain(entries, place, last) if len(entries) > 1 else self._function(entries[0])
        return (*made, releases)

    def _function(self, entry: Entry) -> tuple:
        op = entry.op
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for index, (param, arg) in enumerate(zip(op.params, entry.args)):
            if index in op.tensors and arg is not None:
                arg = self._operand(arg)
            elif param.name == "dim" and "by_rows" in op.tags:
                arg = (
                    [arg - self.ndim if arg >= 0 else arg]
                    if arg.__class__ is int
                    else [[d - self.ndim if d >= 0 else d for d in arg]]
                )
            else:
                arg = [arg]
            if not param.keyword:
                positional.append(arg)
            elif arg != [param.default]:
                named[param.name] = arg
        number = self._numbers[id(entry)]
        target = self.kept[number - self._first]
        takes_out = target is not None and "out" in op.variants
        names = (*named, "out") if takes_out else tuple(named)
        return (function_of(op), (*positional, *named.values()), names, ((number, target, entry.dtype),), takes_out)

    def _operand(self, arg: Any) -> Any:
        if arg.__class__ is list:
            return tuple(self._number(item) for item in arg)
        return self._number(arg) if isinstance(arg, (Value, Window, Tensor)) else [arg]

    def _chain(self, entries: list[Entry], place: int, last: dict[int, int]) -> tuple:
        kind = entries[0].spec.compute or entries[0].dtype
        chain = Chain(entries[0].shape, kind)
        inside = {id(entry): i for i, entry in enumerate(entries)}
        places: dict[Any, int] = {}
        results = []
        for entry in entries:
            given: list[tuple[bool, int]] = []
            for arg in entry.args:
                if id(arg) in inside:
                    given.append((True, inside[id(arg)]))
                    continue
                is_operand = isinstance(arg, (Value, Window, Tensor))
                key = _key(arg) if is_operand else (arg.__class__, arg)
                if key not in places:
                    places[key] = len(chain.sources)
                    chain.sources.append((self._number(arg),) if is_operand else arg)
                given.append((False, places[key]))
            number = self._numbers[id(entry)]
            target = self.kept[number - self._first]
            is_read = target is not None or last[number] != place or any(w[0] == number for w in self.windows)
            chain.add(entry.op, entry.block, given, number if is_read else None, entry.dtype.np)
            if is_read:
                results.append((number, target, entry.dtype))
        made = assemble(chain)
        inputs = tuple(source[0] for source in made.inputs)
        shape = entries[0].shape[self.at + 1 :]
        return (
            None,
            inputs,
            (kind.itemsize, shape, made.instructions, made.temporaries, made.immediates),
            tuple(results),
            False,
        )


def _key(item: Any) -> int:
    return id(item._payload) if isinstance(item, Tensor) else id(item)


def _calls(entries: list[Entry]) -> list[list[Entry]]:
    """The entries, with those together that are a chain of loops over one shape."""
    calls: list[list[Entry]] = []
    shared = None
    for entry in entries:
        own = fusion.group_of(entry) if entry.op.block else None
        follows = own is not None and own == shared and len(calls[-1]) < fusion.LONGEST
        if follows and not any(i.__class__ is Window and any(i.value is e for e in calls[-1]) for i in operands(entry)):
            calls[-1].append(entry)
        else:
            calls.append([entry])
        shared = own
    return calls
