"""The ranges of one thread while a profiler is on.

Note [Cost of a profiler]
Without a profiler nothing asks for one on the way of a planned call. A recording makes the state special (`_state.enter_special`), as modes do, so that every call comes
to the dispatcher, which hands it over while `_state.PROFILED` holds anything.

With the extension, an operator that is not composed of others goes its usual way inside of its range: while it runs the state is not special (`whole`), so that its time is that of a
call without a profiler. Where something else is special too, and without the extension, the dispatcher runs it.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from .. import _state
from .._above import above
from .._autograd.node import AccumulateGrad, Node
from .._dispatch import native
from .._dispatch.resolver import resolve
from .._planning.recorder import capacity, memory_of
from .._state import PROFILED, TLS
from .._tensor import Tensor
from . import details
from .clock import Clock

OPERATOR, ANNOTATION, MODULE, MEMORY = "cpu_op", "user_annotation", "python_function", "cpu_instant_event"
FORWARD, BACKWARD, USER = 0, 1, 7  # PyTorch's scopes of ranges


_NO_ARGUMENTS = ("out", "requires_grad")


def _whole(function: Callable, fallback: Callable, ops: tuple, args: tuple, kwargs: dict, form: tuple) -> Any:
    """What the extension asks about each call; NotImplemented leaves it to the dispatcher."""
    profiler = TLS.profiler
    if profiler is None or not _state.special_only_by(1) or any(op.composite or op.missing for op in ops):
        return NotImplemented
    return profiler.whole(function, ops, args, kwargs, form)


class Range:
    """One range. Times in nanoseconds of the recording's clock; `allocated` are the bytes that it took less those that it gave back, without its children."""

    __slots__ = (
        "name",
        "kind",
        "scope",
        "start",
        "end",
        "overload",
        "sequence",
        "inputs",
        "flops",
        "stack",
        "module",
        "allocated",
        "on_device",
        "number",
    )

    inputs: Any
    stack: Any

    def __init__(self, name: str, kind: str, scope: int, number: int, module: str) -> None:
        self.name, self.kind, self.scope, self.number, self.module = name, kind, scope, number, module
        self.start = self.end = self.flops = self.allocated = self.on_device = 0
        self.overload, self.sequence, self.inputs, self.stack = "", -1, None, None


class Options:
    """What is recorded beside times."""

    def __init__(
        self,
        shapes: bool = False,
        memory: bool = False,
        stack: bool = False,
        modules: bool = False,
        flops: bool = False,
    ) -> None:
        self.shapes, self.memory, self.stack, self.flops = shapes, memory, stack, flops
        self.modules = modules or stack


class Recording:
    """The ranges of the thread that starts it, in the order in which they began."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.ranges: list[Range] = []
        self.forward: dict[int, Range] = {}  # by the number of a node: the operator that made it
        self.thread = threading.get_native_id()
        self.stopped: int | None = None  # the time of the clock when it ended
        self.epoch = 0  # what the clock of the day said when the recording began
        self._clock = Clock()
        self._open: list[Range] = []
        self._modules: list[str] = []
        self._names: dict[int, str] = {}
        self._hooks: tuple = ()
        self._known: dict[int, Any] = {}  # storages that are watched, by id
        self._outer: Any = None
        self._formulas: dict[str, Any] = {}

    def start(self) -> None:
        """Record what this thread does from now on."""
        if self.options.flops:
            from .._generated.flops import FORMULAS  # pyright: ignore[reportMissingImports]

            self._formulas = FORMULAS
        if self.options.modules:
            hooks = above("module_hooks")
            self._hooks = (
                hooks.register_module_forward_pre_hook(self._enter_module),
                hooks.register_module_forward_hook(self._leave_module, always_call=True),
            )
        self._outer, TLS.profiler = TLS.profiler, self
        PROFILED.add(self)
        native.set_profile(_whole)
        _state.enter_special()
        self.epoch = time.time_ns()
        self._clock.go()

    def stop(self) -> None:
        """End the recording, and every range that is open."""
        self.stopped = self._clock.pause()
        for one in self._open:
            one.end = self.stopped
        self._open.clear()
        _state.leave_special()
        PROFILED.discard(self)
        if not PROFILED:
            native.set_profile(None)
        TLS.profiler = self._outer
        self._known.clear()
        for hook in self._hooks:
            hook.remove()

    def toggle(self, on: bool) -> None:
        """Record operators, or none for a while."""
        TLS.profiler = self if on else self._outer

    # Ranges

    def open(self, name: str, kind: str = ANNOTATION, scope: int = USER) -> Range:
        """Begin a range."""
        made = self._made(name, kind, scope)
        self._clock.go()
        return made

    def _made(self, name: str, kind: str, scope: int) -> Range:
        """A range that begins now; the clock stands still until it is told to go on."""
        start = self._clock.pause()
        made = Range(name, kind, scope, len(self.ranges), self._modules[-1] if self._modules else "")
        if self.options.stack:
            made.stack = details.frames()
        self.ranges.append(made)
        self._open.append(made)
        made.start = start
        return made

    def close(self, one: Range) -> None:
        """End a range, and those that began in it and have not ended."""
        self._end(one, self._clock.pause())
        self._clock.go()

    def _end(self, one: Range, end: int) -> None:
        if one in self._open:
            while self._open:
                last = self._open.pop()
                last.end = end
                if last is one:
                    break

    # What the dispatcher and the engine ask

    def call(self, run: Callable, op: Any, args: tuple, *rest: Any, inplace: bool = False) -> Any:
        """`run(op, args, *rest)`, a call of an operator, as a range."""
        name = op.name if not inplace or op.is_inplace else f"{op.name}_"
        made = self._made(name if "::" in name else f"aten::{name}", OPERATOR, FORWARD)
        made.overload = op.overload
        if self.options.shapes:
            made.inputs = details.inputs(op, args)
        self._clock.go()
        raised = True
        try:
            result = run(op, args, *rest)
            raised = False
        finally:
            if raised:
                self.close(made)
        end = self._clock.pause()
        self._finish(made, op, args, result)
        self._end(made, end)
        self._clock.go()
        return result

    def whole(self, function: Callable, ops: tuple, args: tuple, kwargs: dict, form: tuple) -> Any:
        """`function(*args, **kwargs)`, which is one of the operators, as a range within which the state is not special."""
        method, inplace = form
        op = ops[0]
        name = op.name if not inplace or op.is_inplace else f"{op.name}_"
        made = self._made(f"aten::{name}", OPERATOR, FORWARD)
        bound = ()
        if len(ops) > 1 or self.options.shapes or self._formulas:
            try:
                op, bound = resolve(ops, args, {k: v for k, v in kwargs.items() if k not in _NO_ARGUMENTS}, method)
            except TypeError:
                pass  # an operand before a method of Python's (`1 - x`), or what the call itself will refuse
        made.overload = op.overload
        if self.options.shapes:
            made.inputs = details.inputs(op, bound or args)
        TLS.profiler = None
        _state.leave_special()
        result = None
        self._clock.go()
        try:
            result = function(*args, **kwargs)
        finally:
            end = self._clock.pause()
            _state.enter_special()
            TLS.profiler = self
            self._finish(made, op, bound, result)
            self._end(made, end)
            self._clock.go()
        return result

    def apart(self, name: str, function: Callable, *args: Any) -> Any:
        """`function(*args)`, which is no operator, as a range in which no operator is recorded: it runs as it would without a profiler."""
        made = self._made(name, OPERATOR, FORWARD)
        TLS.profiler = None
        _state.leave_special()
        self._clock.go()
        try:
            return function(*args)
        finally:
            end = self._clock.pause()
            _state.enter_special()
            TLS.profiler = self
            self._end(made, end)
            self._clock.go()

    def node(self, node: Node) -> Range:
        """Begin the part of a backward pass that is about a node."""
        made = self.open(f"autograd::engine::evaluate_function: {node.name()}", OPERATOR, BACKWARD)
        self._belongs(made, node)
        return made

    def apply(self, node: Node, function: Callable, *args: Any) -> Any:
        """`function(*args)`, which does what a node is for, as a range."""
        made = self.open(node.name(), OPERATOR, BACKWARD)
        self._belongs(made, node)
        try:
            return function(*args)
        finally:
            self.close(made)

    def _belongs(self, made: Range, node: Node) -> None:
        """Let a range of the backward pass stand where the operator was called that made its node."""
        made.sequence = node.__dict__.get("_sequence", -1)
        origin = self.forward.get(made.sequence)
        if origin is not None:
            made.module = origin.module
            made.stack = origin.stack if self.options.stack else None

    def _finish(self, made: Range, op: Any, args: tuple, result: Any) -> None:
        results = result if isinstance(result, (tuple, list)) else (result,)
        for one in results:
            if not isinstance(one, Tensor):
                continue
            node = one._node
            if isinstance(node, Node) and node.__class__ is not AccumulateGrad and TLS.grad_enabled:
                made.sequence = node._sequence_nr()
                self.forward.setdefault(made.sequence, made)
            if self.options.memory:
                self._watch(one)
        if self._formulas and not op.composite and len(args) == len(op.params):
            formula = self._formulas.get(op.full_name)
            made.flops = 0 if formula is None else int(formula(result, *args))

    # Memory

    def _watch(self, tensor: Tensor) -> None:
        """Count the memory of a tensor that the innermost range has made, and again when it goes."""
        where = tensor.device.type
        if where == "meta" or tensor.layout is not details.strided:
            return
        memory = memory_of(tensor)
        key = id(memory)
        if key in self._known:
            return
        size = capacity(memory)
        self._known[key] = weakref.ref(memory, lambda _: self._freed(key, size, where))
        self._count(size, where)

    def _freed(self, key: int, size: int, where: str) -> None:
        if self._known.pop(key, None) is not None:
            self._count(-size, where)

    def _count(self, size: int, where: str) -> None:
        if self._open:
            one = self._open[-1]
        else:
            one = Range("[memory]", MEMORY, FORWARD, len(self.ranges), "")
            one.start = one.end = self._clock.time
            self.ranges.append(one)
        if where == "cpu":
            one.allocated += size
        else:
            one.on_device += size

    # Modules

    def _enter_module(self, module: Any, args: Any) -> None:
        self._clock.pause()
        if not self._modules:
            root = type(module).__name__
            self._names = {id(m): f"{root}.{name}" if name else root for name, m in module.named_modules()}
        self._modules.append(self._names.get(id(module), type(module).__name__))
        self._clock.go()
        self.open(f"nn.Module: {self._modules[-1]}", MODULE, FORWARD)

    def _leave_module(self, module: Any, args: Any, result: Any) -> None:
        if self._modules:
            self._modules.pop()
            one = next((one for one in reversed(self._open) if one.kind == MODULE), None)
            if one is not None:
                self.close(one)
