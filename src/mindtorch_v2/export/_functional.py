"""Runs without operators that write to tensors: what they write is a new value, and those that others see are outputs.

Note [Values in the place of writes]
Tensors of one memory have the first of them as their root. A write gives the root a new value: what was written where the geometries are the same, and else the old value with it scattered
into it. Another tensor of the memory is read from the root's value when it is asked for after a write. Where that cannot be said (a root that is not contiguous, an operator that has no form that
gives a value, a parameter or a constant that is written to), the run stays as it is.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

from .. import ops
from .._payload import contiguous_strides
from ._recording import Described, Run, Step, Value

_STATISTICS = ("native_batch_norm", "batch_norm")


class _Stays(Exception):
    """What cannot be said by values."""


def functional(run: Run) -> Run:
    """A run with values in the place of writes; itself where it has none, or where they cannot be said so."""
    try:
        return _Rewriter(run).run()
    except _Stays:
        return run


class _Rewriter:
    def __init__(self, run: Run) -> None:
        self._old = run
        self._steps: list[Step] = []
        self._described: dict[Value, Described] = {}
        self._now: dict[Value, Value] = {}  # what a tensor of the old run is
        self._at: dict[Value, int] = {}  # the version of its memory for which that holds
        self._versions: dict[int, int] = {}
        self._roots: dict[int, tuple[Value, Value]] = {}  # by memory: the first tensor, and its value
        self._other: dict[int, int] = {}  # memory of constants, which each run has anew
        self._fresh = itertools.count(-1, -1)

    def run(self) -> Run:
        """The run."""
        for value, described in self._old.described.items():
            if value.kind != "step":
                self._described[value] = described
                self._is(value, value)
        for number, step in enumerate(self._old.steps):
            self._step(number, step)
        outputs = [self._current(one, None) if isinstance(one, Value) else one for one in self._old.outputs]
        written = [(root, now) for memory, (root, now) in self._roots.items() if self._versions.get(memory)]
        written = [pair for pair in written if pair[0].kind != "step"]
        if any(root.kind not in ("buffer", "input") for root, _ in written):
            raise _Stays
        written.sort(key=lambda pair: pair[0].kind != "buffer")
        return dataclasses.replace(
            self._old, steps=self._steps, described=self._described, outputs=outputs, written=written
        )

    # tensors of the old run

    def _memory(self, value: Value) -> int:
        memory = self._old.described[value].memory
        return self._other.get(memory, memory)

    def _is(self, old: Value, new: Value) -> None:
        """Say what a tensor of the old run is from here on."""
        if not self._old.described[old].memory:
            self._old.described[old].memory = next(self._fresh)
        memory = self._memory(old)
        self._now[old], self._at[old] = new, self._versions.get(memory, 0)
        self._roots.setdefault(memory, (old, new))

    def _current(self, old: Value, like: Step | None) -> Value:
        memory = self._memory(old)
        if self._at[old] != self._versions.get(memory, 0):
            root, value = self._roots[memory]
            if not self._covers(old, root):
                value = self._call(
                    like, ops.ops.aten.as_strided.default, [self._whole(memory, like), *self._part(old, root)], old
                )
            self._now[old], self._at[old] = value, self._versions.get(memory, 0)
        return self._now[old]

    def _covers(self, old: Value, root: Value) -> bool:
        one, other = self._old.described[old], self._old.described[root]
        return (one.shape, one.stride, one.offset, one.dtype) == (other.shape, other.stride, other.offset, other.dtype)

    def _part(self, old: Value, root: Value) -> list[Any]:
        """The geometry of a tensor within the root."""
        one, other = self._old.described[old], self._old.described[root]
        if one.dtype is not other.dtype or other.stride != tuple(contiguous_strides(other.shape)):
            raise _Stays
        if one.sizes != one.shape or other.sizes != other.shape:
            raise _Stays  # strides that depend on sizes
        return [list(one.shape), list(one.stride), one.offset - other.offset]

    def _whole(self, memory: int, like: Step | None) -> Value:
        root, value = self._roots[memory]
        return self._call(like, ops.ops.aten.contiguous.default, [value], root)

    # steps

    def _call(self, like: Step | None, target: Any, args: list[Any], geometry: Value, kwargs: Any = None) -> Value:
        """A step that gives a tensor of a geometry of the old run."""
        grad = self._old.grad if like is None else like.grad
        origin = ("", {}) if like is None else (like.trace, like.modules)
        self._steps.append(Step(target, args, kwargs or {}, None, grad, *origin))
        made = Value("step", len(self._steps) - 1)
        self._described[made] = self._old.described[geometry]
        return made

    def _given(self, tree: Any, like: Step) -> Any:
        if isinstance(tree, Value):
            return self._current(tree, like)
        if isinstance(tree, list):
            return [self._given(one, like) for one in tree]
        return {name: self._given(one, like) for name, one in tree.items()} if isinstance(tree, dict) else tree

    def _step(self, number: int, step: Step) -> None:
        arguments = step.target._schema.arguments
        if any(argument.is_out for argument in arguments):
            raise _Stays
        args, kwargs = self._given(step.args, step), self._given(step.kwargs, step)
        name = step.target._opname
        if name in _STATISTICS and len(args) > 5 and args[5] and args[3] is not None and args[4] is not None:
            self._statistics(number, step, args)
        elif name == "detach_":
            self._is(Value("step", number), self._call(step, ops.ops.aten.detach.default, args, Value("step", number)))
        elif any(argument.is_write for argument in arguments):
            self._write(number, step, args, kwargs)
        else:
            self._steps.append(dataclasses.replace(step, args=args, kwargs=kwargs))
            if name == "lift_fresh_copy":
                memory = self._old.described[step.args[0]].memory
                self._other[memory] = next(self._fresh)
                del self._roots[memory]
            self._results(number, step, len(self._steps) - 1)

    def _results(self, number: int, step: Step, made: int) -> None:
        for place in (None,) if step.count is None else range(step.count):
            old, new = Value("step", number, place), Value("step", made, place)
            if old in self._old.described:
                self._described[new] = self._old.described[old]
                self._is(old, new)

    def _write(self, number: int, step: Step, args: list[Any], kwargs: dict[str, Any]) -> None:
        arguments, name = step.target._schema.arguments, step.target._opname
        packet = ops.lookup("aten", name.removesuffix("_")) if name.endswith("_") else None
        overload = None if packet is None else packet._overload(step.target._overloadname)
        alone = arguments[0].is_write and not any(argument.is_write for argument in arguments[1:])
        if overload is None or not alone or name in _IN_PLACE_VIEWS:
            raise _Stays
        target = step.args[0]
        value = self._call(step, overload, args, target, kwargs)
        kind = self._old.described[target].dtype
        if any(self._old.described[one].dtype is not kind for one in step.args[1:] if isinstance(one, Value)):
            value = self._call(step, ops.ops.aten.to.dtype, [value, kind], target)
        self._written(target, value, step)
        self._is(Value("step", number), value)

    def _written(self, target: Value, value: Value, step: Step) -> None:
        """Give the memory of a tensor what was written there."""
        memory = self._memory(target)
        root, _ = self._roots[memory]
        whole = value
        if not self._covers(target, root):
            part = self._part(target, root)
            scatter = ops.ops.aten.as_strided_scatter.default
            whole = self._call(step, scatter, [self._whole(memory, step), value, *part], root)
        self._roots[memory] = root, whole
        self._versions[memory] = self._versions.get(memory, 0) + 1
        self._is(target, value)

    def _statistics(self, number: int, step: Step, args: list[Any]) -> None:
        """Batch norm in training, whose running statistics are results."""
        target = ops.ops.aten._native_batch_norm_legit_functional.default
        self._steps.append(dataclasses.replace(step, target=target, args=args[:8], kwargs={}, count=5))
        made = len(self._steps) - 1
        for place in (None,) if step.count is None else range(3):
            old, new = Value("step", number, place), Value("step", made, place or 0)
            self._described[new] = self._old.described[old]
            self._is(old, new)
        for place, argument in ((3, step.args[3]), (4, step.args[4])):
            new = Value("step", made, place)
            self._described[new] = self._old.described[argument]
            self._written(argument, new, step)


_IN_PLACE_VIEWS = (
    "squeeze_",
    "unsqueeze_",
    "transpose_",
    "t_",
    "swapaxes_",
    "swapdims_",
    "as_strided_",
    "resize_",
    "set_",
)
