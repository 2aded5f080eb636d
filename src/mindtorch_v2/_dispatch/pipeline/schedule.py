"""Which entries a flush runs, in which steps, and running them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._device import device
from ..._tensor import Tensor
from ..backends import backend_of
from ..dispatcher import reshaped_copy
from . import fusion, rows
from .sole import is_sole
from .values import Entry, Failure, Part, Value, Window, as_tensor, root_of


class Step:
    """Entries that run together. fused: they are one pass over blocks of elements; otherwise there is one entry."""

    __slots__ = ("entries", "fused", "group")

    def __init__(self, entries: list[Entry], group: Any = None) -> None:
        self.entries = entries
        self.group = group  # what fusion.py knows of entries that can go together
        self.fused = False


def select(
    entries: list[Entry],
    wanted: Value | None,
    upto: Callable[[Entry], bool] | None,
    everything: bool,
    forget: bool = True,
) -> tuple[list[Entry], list[Entry]]:
    """(entries to run, entries that stay recorded), both in order.

    wanted: the value that is asked for. upto: or the entries that are. everything: or all that matter; then nothing stays, and entries whose
    results nobody can look at are dropped (with `forget`, for good). See Note [Order] in recorder.py.
    """
    needed = {wanted} if wanted is not None else set()
    written: set[Value] = set()  # by entries that are chosen and come later
    random = False
    chosen: list[Entry] = []
    rest: list[Entry] = []
    for entry in reversed(entries):
        target = None if entry.target is None else root_of(entry.target)
        results = entry.results()
        take = target in needed if target is not None else not needed.isdisjoint(results)
        if not take and everything:
            take = not entry.is_pure or any(v.is_held() for v in (results if target is None else (target,)))
        elif not take:
            take = (upto is not None and upto(entry)) or (random and entry.is_random)
            take = take or (bool(written) and not written.isdisjoint(entry.operands()))
        if not take:
            rest.append(entry)
            continue
        chosen.append(entry)
        needed.update(entry.operands())
        if target is not None:
            written.add(target)
        random = random or entry.is_random
    chosen.reverse()
    rest.reverse()
    if everything:
        for entry in rest if forget else ():
            _forget(entry)
        rest = []
    return chosen, rest


def plan(chosen: list[Entry], rest: list[Entry], fuse: bool, by_rows: bool = False) -> list[Step]:
    """The steps of the chosen entries. Marks as kept the values that a step has to write to memory."""
    steps = _by_rows(chosen) if by_rows else _chains(chosen, fuse, _combined(chosen, rest) if fuse else {})
    for step in steps:
        step.fused = len(step.entries) > 1
        for entry in step.entries:
            for value in entry.results():
                value.kept = value.is_held()
    for entry in (*(e for step in steps for e in step.entries), *rest):  # in the order in which they run
        for value in entry.operands():
            value.reader = entry
            if value.step is not entry.step or value.step is None:
                value.kept = True
    return steps


def _by_rows(chosen: list[Entry]) -> list[Step]:
    """Steps that go by rows where entries do (see Note [Rows]), and chains elsewhere."""
    steps: list[Step] = []
    open_step: Step | None = None

    def close() -> None:
        if open_step is None:
            return
        chained = _chains(open_step.entries, True)
        if len(chained) == 1 or not rows.is_worth(open_step.entries, open_step.group):
            steps.extend(chained)
            return
        for entry in open_step.entries:
            entry.step = open_step
        steps.append(open_step)

    for entry in chosen:
        if open_step is not None:
            lead = rows.joined(open_step.group, entry, open_step)
            if lead is not None:
                open_step.group.lead = lead
                open_step.entries.append(entry)
                entry.step = open_step
                continue
            close()
            open_step = None
        lead = rows.lead_of(entry)
        if lead is not None:
            open_step = Step([entry], rows.Group(lead, len(entry.shape)))
            if rows.joined(open_step.group, entry, None) is not None:
                entry.step = open_step
                continue
            open_step = None
        steps.extend(_chains([entry], True))
    close()
    return steps


def _combined(chosen: list[Entry], rest: list[Entry]) -> dict[int, Step]:
    """The entries that a device computes together, by one function of its own: their steps by the entries' identities."""
    found: dict[int, Step] = {}
    for kind in {entry.where.type for entry in chosen} - {"cpu", "meta"}:
        combine = backend_of(device(kind)).combine
        for group in () if combine is None else combine(chosen, rest):
            step = Step(group.entries, group)
            found.update((id(entry), step) for entry in group.entries)
    return found


def _chains(chosen: list[Entry], fuse: bool, together: dict[int, Step] | None = None) -> list[Step]:
    """Chains of pointwise operators over one shape, what a device computes together (where the last of these entries is), and steps of one entry."""
    steps: list[Step] = []
    open_step: Step | None = None
    for entry in chosen:
        step = together.get(id(entry)) if together else None
        if step is not None:
            entry.step = step
            if entry is step.entries[-1]:
                steps.append(step)
            continue
        group = fusion.group_of(entry) if fuse else None
        if group is not None:
            if open_step is not None and fusion.joins(entry, group, open_step):
                open_step.entries.append(entry)
            else:
                if open_step is not None:
                    steps.append(open_step)
                open_step = Step([entry], group)
            entry.step = open_step
            continue
        step = Step([entry])
        # What has nothing to do with the open chain goes before it, so that the chain can go on.
        if open_step is not None and (entry.target is not None or any(v.step is open_step for v in entry.operands())):
            steps.append(open_step)
            open_step = None
        entry.step = step
        for part in entry.parts or ():
            if part is not None:
                part.step = step
        steps.append(step)
    if open_step is not None:
        steps.append(open_step)
    return steps


def execute(steps: list[Step]) -> Failure | None:
    """Run the steps; the first failure. What does not depend on a failed entry runs all the same."""
    first: Failure | None = None
    step: Step | None = None
    try:
        for place in range(len(steps)):
            step = steps[place]
            failure = _run_fused(step) if step.fused else _run_single(step.entries[0])
            first = first or failure
            for entry in step.entries:
                _forget(entry)
            step = steps[place] = None  # type: ignore[call-overload] (memory is to go as early as it can)
    except BaseException as error:  # an interrupt
        give_up(steps, f"the flush of a pipeline was interrupted by {error!r}")
        raise
    return first


def give_up(steps: list[Step], reason: str) -> None:
    """What has not run never will, and has to say so."""
    for entry in [entry for step in steps if step is not None for entry in step.entries]:
        _fail(entry, Failure(RuntimeError(reason), entry))
        _forget(entry)


def _run_single(entry: Entry) -> Failure | None:
    inherited = next((v.error for v in entry.operands() if v.error is not None), None)
    if inherited is not None:
        _fail(entry, inherited)
        return inherited
    try:
        _compute(entry)
    except Exception as error:  # noqa: BLE001 (kept, and raised where the result is asked for)
        failure = Failure(error, entry)
        _fail(entry, failure)
        return failure
    return None


def _compute(entry: Entry) -> None:
    op, spec, where, form = entry.op, entry.spec, entry.where, entry.form
    spare = _spare(entry) if form == "run" and entry.fast is None else None
    args = arguments(entry)
    if entry.fast is not None:
        found = entry.fast(*[arg._payload if isinstance(arg, Tensor) else arg for arg in args])
        if found is not None and found.shape == entry.shape:
            entry.payload = found
            return
    if form == "run":
        if spare is not None:
            backend_of(where).run_into(op, spec, args, spare, where)
            entry.payload = spare
            return
        made = backend_of(where).run(op, spec, args, where)
        if entry.parts is None:
            entry.payload = made
            return
        for part, payload in zip(entry.parts, made):
            if part is not None:
                part.payload = payload
    elif form == "copy":
        entry.payload = reshaped_copy(args[0], tuple(spec.shape))
    else:
        target = as_tensor(entry.target)
        if form == "inplace":
            args = (target, *args[1:])
        backend_of(where).run_into(op, spec, args, target._payload, where)


def _spare(entry: Entry) -> Any:
    """The array of an operand that nobody reads again, where the result of a pointwise operator can take its place."""
    if not entry.op.block or entry.where.type != "cpu" or entry.parts is not None:
        return None
    windows = [arg.value for arg in entry.args if arg.__class__ is Window]
    for arg in entry.args:
        if (
            isinstance(arg, (Entry, Part))
            and arg.reader is entry
            and not arg.is_held()
            and arg not in windows
            and (arg.shape, arg.stride, arg.dtype) == (entry.shape, entry.stride, entry.dtype)
            and is_sole(arg.payload)  # a tensor may hold it in place of a pending payload
        ):
            return arg.payload
    return None


def arguments(entry: Entry) -> tuple:
    """The arguments with real payloads."""
    found = list(entry.args)
    for index in entry.op.tensors:
        arg = found[index]
        found[index] = [as_tensor(item) for item in arg] if arg.__class__ is list else as_tensor(arg)
    return tuple(found)


def _run_fused(step: Step) -> Failure | None:
    """Run a chain; when an operand has failed, or the chain itself does, its entries run one by one."""
    if not any(v.error is not None for entry in step.entries for v in entry.operands()):
        try:
            group = step.group
            (rows.run if group.__class__ is rows.Group else fusion.run if group.__class__ is tuple else group.run)(step)
            return None
        except Exception:  # noqa: BLE001 (one by one they say which of them it was)
            pass
    first = None
    for entry in step.entries:
        first = _run_single(entry) or first
    return first


def _fail(entry: Entry, failure: Failure) -> None:
    for value in entry.results():
        if value.payload is None:
            value.error = failure
    if entry.target is not None:
        root_of(entry.target).error = failure


def _forget(entry: Entry) -> None:
    """Let go of what an entry that has run (or never will) refers to."""
    if entry.target is not None:
        holder = root_of(entry.target).holder
        storage = None if holder is None else holder()
        if storage is not None:
            storage.writes -= 1
    entry.args = ()
    entry.target = entry.parts = entry.step = None
