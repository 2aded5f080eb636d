"""The recorder of a thread: takes calls from the dispatcher in place of a backend, and runs them when their results are needed.

Note [Order]
Entries run in the order in which they were recorded, except that one may run before others that it has nothing to do with: those that give no value
it reads, write to nothing it touches, read nothing it writes to, and draw no random numbers if it does. `schedule.select` says which ones a value needs.

Note [Writing]
An in-place operator on a pending tensor is recorded. A pointwise one over a whole value gives the storage a new value, so that chains stay
chains; others write into the value when they run. On memory that is there already an operator is recorded only if the tensor is the sole
owner of it, by numpy's and Python's own count: nothing else can then see that the memory is not written yet. Otherwise what reads
the memory runs first, and then the operator at once.

Note [Other threads]
A thread that looks at a tensor of another one's recorder runs entries of it, which its owner may not change meanwhile. The extension records under
the interpreter's lock, without this one, and leaves calls to Python while `foreign` is set. Tensors of other recorders are made real before the
lock is taken, so that no thread waits for a second one.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ... import _forks
from ..._above import above
from ..._device import device
from ..._payload import stride_of
from ..._pending import PendingPayload, PendingStorage, exposed, settled
from ..._rules.spec import Spec
from ..._state import RECORDED, SPECS, TLS
from ..._tensor import Tensor, wrap
from .. import native
from ..backends import backend_of
from ..operator import Block, Operator
from . import rows, schedule
from .sole import is_sole
from .values import HOMES, Entry, Failure, Given, Part, Value, Window, caller, covers, describe, memory_of, pending

_LARGE = 1 << 63
"""Numbers from here on may not fit the dtype of a computation."""


class Recorder:
    """What one thread has recorded. The lock is held while entries run or are recorded; see Note [Other threads]."""

    __slots__ = (
        "entries",
        "lock",
        "pipes",
        "bytes",
        "max_ops",
        "max_bytes",
        "foreign",
        "running",
        "careful",
        "__weakref__",
    )

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.lock = _forks.lock(_forks.OUTER, self._cut)
        self.pipes: list[Any] = []  # the active pipelines, outermost first
        self.bytes = 0  # of results recorded since the last flush of everything
        self.max_ops = 0
        self.max_bytes = 0
        self.foreign = False  # whether another thread runs entries
        self.running: list[Any] = []  # the steps of the flush that is under way
        self.careful = False  # of the innermost pipeline

    def enter(self, pipe: Any) -> None:
        """Begin a block."""
        self.pipes.append(pipe)
        self._follow(pipe)

    def leave(self, pipe: Any) -> bool:
        """End a block; whether it was the last one."""
        self.pipes.remove(pipe)
        if not self.pipes:
            return True
        self._follow(self.pipes[-1])
        return False

    def _follow(self, pipe: Any) -> None:
        self.max_ops, self.max_bytes, self.careful = pipe.max_ops, pipe.max_bytes, pipe.careful

    def preview(self, fuse: bool) -> list:
        """The steps in which everything would run now."""
        with self.lock:
            chosen, rest = schedule.select(list(self.entries), None, None, True, forget=False)
            return schedule.plan(chosen, rest, fuse)

    # recording

    def defers(self, op: Operator, spec: Any, args: tuple, where: device) -> bool:
        """Whether a call can wait: not where the data decide the shape, nor where it may fail whatever the data are."""
        if self.careful and not rows.may_wait(op, spec, args, where):
            return False
        if _updates(op, args):
            return False
        specs = (spec,) if spec.__class__ is Spec else spec
        return all(s is None or s.shape is not None for s in specs) and _fits(op, specs, args, where)

    def record(self, op: Operator, spec: Any, args: tuple, where: device, form: str = "run") -> Any:
        """Pending payloads in place of those that a backend would give."""
        self._settle_foreign(op, args)
        with self.lock:
            return self._record(op, spec, args, where, form)

    def _record(self, op: Operator, spec: Any, args: tuple, where: device, form: str) -> Any:
        self._keep_limits()
        where = backend_of(where).place(where)
        entry = self._entry(op, spec, args, where, form)
        if spec.__class__ is Spec:
            describe(entry, tuple(spec.shape), spec.stride and tuple(spec.stride), spec.dtype, self)
            self.bytes += entry.nbytes()
            return pending(entry, where)
        describe(entry, (), (), None, self)
        parts: list[Part | None] = []
        made: list[PendingPayload | None] = []
        for one in spec:
            if one is None:
                parts.append(None)
                made.append(None)
                continue
            part = Part()
            describe(part, tuple(one.shape), one.stride and tuple(one.stride), one.dtype, self)
            parts.append(part)
            made.append(pending(part, where))
        entry.parts = tuple(parts)
        self.bytes += sum(p.nbytes() for p in parts if p is not None)
        return made

    def write(self, op: Operator, spec: Spec, args: tuple, target: Tensor, where: device, inplace: bool) -> None:
        """A call whose result goes into a tensor's memory: recorded, or run at once after what it has to wait for. See Note [Writing].

        inplace: the tensor is the first argument.
        """
        self._settle_foreign(op, args)
        with self.lock:
            recorded = self._record_write(op, spec, args, target, where, inplace)
        if not recorded:
            payload = settled(target)
            self.before_write(payload)
            self._before_run(op)
            with self._suspended():
                backend_of(where).run_into(op, spec, args, payload, where)

    def _record_write(
        self, op: Operator, spec: Spec, args: tuple, target: Tensor, where: device, inplace: bool
    ) -> bool:
        if not _fits(op, (spec,), args, where) or (self.careful and not rows.may_wait(op, spec, args, where)):
            return False
        self._keep_limits()
        data = target._payload
        if data.__class__ is not PendingPayload or not data.is_pending:
            data = None  # which would count as a reference
            if not is_sole(settled(target)):
                return False
            data = self._adopt(target)
        elif data.storage.value.recorder is not self:
            return False
        storage = data.storage
        value = storage.value
        if (
            value.payload is None
            and storage.writes == 0
            and "pointwise" in op.tags
            and not op.is_inplace
            and op.mutates is None
            and spec.dtype is value.dtype
            and covers(data, value)
        ):
            entry = self._entry(op, Spec(value.shape, value.dtype, value.stride, spec.compute), args, where, "run")
            describe(entry, value.shape, value.stride, value.dtype, self)
            entry.holder, value.holder = value.holder, None
            storage.value = entry
            return True
        if self.careful:
            return False
        storage.writes += 1  # first: it makes the tensor pending, as an argument too
        entry = self._entry(op, spec, args, where, "inplace" if inplace else "into")
        describe(entry, (), (), None, self)
        entry.target = value if covers(data, value) else Window(value, data.shape, data.stride, data.dtype, data.offset)
        return True

    def _settle_foreign(self, op: Operator, args: tuple) -> None:
        for index in op.tensors:
            arg = args[index]
            for item in arg if arg.__class__ is list else (arg,):
                if isinstance(item, Tensor) and item._payload.__class__ is PendingPayload:
                    if item._payload.storage.value.recorder is not self:
                        settled(item)

    def _keep_limits(self) -> None:
        if len(self.entries) >= self.max_ops or self.bytes > self.max_bytes:
            self.flush()

    def _entry(self, op: Operator, spec: Any, args: tuple, where: device, form: str) -> Entry:
        entry = Entry()
        entry.op = op
        entry.spec = spec
        entry.where = where
        entry.form = form
        entry.parts = entry.target = entry.block = entry.fast = None
        entry.args = self._operands(op, args)
        entry.code, entry.place = caller()
        entry.pipe = self.pipes[-1]
        self.entries.append(entry)
        return entry

    def _operands(self, op: Operator, args: tuple) -> tuple:
        found = list(args)
        for index in op.tensors:
            arg = args[index]
            if arg.__class__ is list:
                found[index] = [self._operand(item) for item in arg]
            else:
                found[index] = self._operand(arg)
        return tuple(found)

    def _operand(self, arg: Any) -> Any:
        """What an entry keeps of an argument."""
        if not isinstance(arg, Tensor):
            return arg
        data = arg._payload
        if data.__class__ is PendingPayload:
            value = data.storage.value
            if data.is_pending and value.recorder is self:
                return value if covers(data, value) else Window(value, data.shape, data.stride, data.dtype, data.offset)
            data = settled(arg)  # of another thread, or known by now
        return wrap(data, arg._dtype)

    def _adopt(self, target: Tensor) -> PendingPayload:
        """Let a tensor that owns its memory alone be pending over that memory."""
        payload = target._payload
        value = Given()
        describe(value, payload.shape, stride_of(payload), target._dtype, self)
        value.payload = payload
        storage = PendingStorage(value, target.device)
        value.holder = weakref.ref(storage)
        made = PendingPayload(value.shape, value.stride, value.dtype, 0, storage)
        target._payload = made
        return made

    # what has to be done before something runs at once

    def run_now(self, op: Operator, spec: Any, args: tuple, where: device) -> Any:
        """A backend's payloads for a call that cannot wait."""
        self._before_run(op)
        for tensor in _updates(op, args):
            exposed(tensor)
        with self._suspended():
            return backend_of(where).run(op, spec, args, where)

    @contextmanager
    def _suspended(self) -> Iterator[None]:
        """Nothing is recorded inside: kernels may call operators."""
        before, TLS.pipeline = TLS.pipeline, None
        try:
            yield
        finally:
            TLS.pipeline = before

    def _before_run(self, op: Operator) -> None:
        """Draw the random numbers that were asked for before those of an operator that runs at once."""
        if "nondeterministic_seeded" in op.tags:
            self.flush_random()

    def before_write(self, payload: Any) -> None:
        """Run what reads (or writes to) the memory of a real payload."""
        if not self.entries:
            return
        memory = memory_of(payload)
        with self.lock:
            if any(entry.touches(memory) for entry in self.entries):
                self.flush(upto=lambda entry: entry.touches(memory))

    def flush_random(self) -> None:
        """Run the operators that draw random numbers, and what they need."""
        if any(entry.is_random for entry in self.entries):
            self.flush(upto=lambda entry: entry.is_random)

    # running

    def flush_for(self, storage: PendingStorage) -> None:
        """Run what the content of a storage needs, and nothing else."""
        with self.lock:
            self.foreign = TLS.recorder is not self
            try:
                if storage.is_pending:
                    self._flush(storage.value, None, False)
            finally:
                self.foreign = False

    def flush(self, upto: Callable[[Entry], bool] | None = None) -> None:
        """`run`. Raises the first error after all that could run has run."""
        failure = self.run(upto)
        if failure is not None:
            raise failure.exception()

    def run(self, upto: Callable[[Entry], bool] | None = None) -> Failure | None:
        """Run everything, or what fits `upto` with what it needs; the first failure."""
        with self.lock:
            if not self.entries:
                self.bytes = 0
                return None
            profiler = TLS.profiler
            if profiler is None:
                return self._run(upto)
            about = profiler.open("pipeline::flush", "cpu_op", 0)
            try:
                return self._run(upto)
            finally:
                profiler.close(about)

    def _run(self, upto: Callable[[Entry], bool] | None) -> Failure | None:
        if upto is None and self._run_chain():
            return None
        return self._flush(None, upto, upto is None)

    def _flush(self, wanted: Value | None, upto: Any, everything: bool) -> Failure | None:
        with self._suspended():
            entries, self.entries = self.entries, []
            chosen, rest = schedule.select(entries, wanted, upto, everything)
            self.entries[:0] = rest
            if everything:
                self.bytes = 0
            pipe = self.pipes[-1] if self.pipes else None
            steps = schedule.plan(chosen, rest, pipe is None or pipe.fuse, pipe is not None and pipe.careful)
            if pipe is not None:
                pipe.note_steps(steps)
            del entries, chosen, rest  # each result is to go when it has been read for the last time
            outer, self.running = self.running, steps
            try:
                return schedule.execute(steps)
            finally:
                self.running = outer

    def _cut(self) -> None:
        """In a forked child: the thread that ran entries is gone, and what it had not run never will be."""
        schedule.give_up(
            self.running, "the process was forked while a thread that is gone here ran the flush of a pipeline"
        )
        self.running, self.foreign = [], False

    def _run_chain(self) -> bool:
        """Let the extension run everything, where it is one chain."""
        entries = self.entries
        if native.extension is None or not entries or not self.pipes[-1].fuse:
            return False
        self.entries = []
        outer, self.running = self.running, [schedule.Step(entries)]
        try:
            lines = native.extension.run_chain(entries)
        finally:
            self.running = outer
        if lines is None:
            self.entries[:0] = entries
            return False
        self.bytes = 0
        self.pipes[-1].note([lines])
        return True


def _fits(op: Operator, specs: Any, args: tuple, where: device) -> bool:
    """Whether there are a kernel and dtypes for a call, its numbers fit them for sure, and its tensors have elements."""
    if where.type != "meta":
        for index in op.tensors:
            if isinstance(args[index], Tensor) and args[index].device.type == "meta":
                return False
    for index in op.cast:
        if args[index].__class__ is int and not -_LARGE <= args[index] < _LARGE:
            return False
    return backend_of(where).supports(op, specs)


def _updates(op: Operator, args: tuple) -> list[Tensor]:
    """The tensors that a kernel writes to beside its results: running statistics, in training."""
    if (
        "updates_statistics" not in op.tags
        or not args[next(i for i, p in enumerate(op.params) if p.name == "training")]
    ):
        return []
    return [args[i] for i in op.tensors if op.params[i].name.startswith("running_") and args[i] is not None]


def connect() -> None:
    """Tell the extension the classes that it makes and reads (once is enough); the package's own come first."""
    above("autograd")  # connects the extension and the dispatcher
    if native.extension is not None:
        native.extension.connect_pipeline(
            recorder=Recorder,
            entry=Entry,
            pending=PendingPayload,
            storage=PendingStorage,
            spec=Spec,
            block=Block,
            window=Window,
            recorded=RECORDED,
            specs=SPECS,
            homes=HOMES,
            settled=settled,
        )
