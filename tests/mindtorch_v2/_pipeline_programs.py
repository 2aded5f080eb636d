"""Programs of a few lines that are run eagerly and in a pipeline, and what both runs are compared by.

A step is a line of Python, so a program that fails is printed as it was run. Steps that fail eagerly have to fail in the pipeline too, at the
latest when it is flushed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from types import CodeType
from typing import Any

import ml_dtypes  # noqa: F401 - numpy compares bfloat16 with it
import numpy as np
from strategies.outcomes import ERRORS, is_tensor

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import ops
from mindtorch_v2._dispatch.pipeline.context import Careful
from mindtorch_v2._pending import settled


@dataclass(frozen=True)
class Step:
    """A line, the names that it binds and those that it needs."""

    text: str
    makes: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Program:
    """Lines before, in and after the block. pipeline: the arguments of the block; inner: the lines of the block that have a block of their own; careful: whether the block
    is a compiled function's."""

    before: tuple[Step, ...]
    body: tuple[Step, ...]
    after: tuple[Step, ...] = ()
    pipeline: str = ""
    inner: tuple[int, int] = (0, 0)
    careful: bool = False

    def show(self) -> str:
        """The program as it stands in a file."""
        lines = [
            "import mindtorch_v2 as torch",
            "from mindtorch_v2._dispatch import ops",
            "torch.manual_seed(0)",
            *(step.text for step in self.before),
            f"with {'Careful()' if self.careful else f'torch.pipeline({self.pipeline})'} as pipe:",
        ]
        start, stop = self.inner
        for place, step in enumerate(self.body):
            if place == start < stop:
                lines.append(f"    with torch.pipeline({self.pipeline}) as pipe:")
            lines.append(("        " if start <= place < stop else "    ") + step.text)
        lines += ["    pass"] * (not self.body)
        return "\n".join([*lines, *(step.text for step in self.after)])


@lru_cache(maxsize=4096)
def compiled(text: str) -> CodeType:
    """The code of a line."""
    return compile(text, "<program>", "exec")


@dataclass(frozen=True)
class Outcome:
    """What a step gave: the error's class and first line, or what is known of the tensors that it made before they are looked at."""

    error: tuple[str, str] | None = None
    known: Any = None

    def __str__(self) -> str:
        return ": ".join(self.error) if self.error else str(self.known)


def failure_of(error: BaseException) -> tuple[str, str]:
    """The class that Python has for an error, and the first line of its message."""
    kind = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
    # Python words the depth of a recursion by where it ends.
    return kind.__name__, "" if kind is RecursionError else str(error).strip().split("\n")[0].strip()


class Run:
    """One run of a program: its names, what each step gave, and the numbers of fused operators."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.names: dict[str, Any] = {"torch": torch, "ops": ops, "pipe": None}
        self.outcomes: list[Outcome] = []
        self.fused = 0

    def step(self, step: Step, fails: bool) -> None:
        """Run a line. fails: it failed eagerly, so what is recorded has to be run to see it."""
        try:
            exec(compiled(step.text), self.names)
            if fails:
                if self.names["pipe"] is not None:
                    self.names["pipe"].flush()
                for name in step.makes:
                    for leaf in leaves(self.names[name]):
                        settled(leaf)
        except ERRORS as error:
            self.outcomes.append(Outcome(failure_of(error)))
            for name in step.makes:
                self.names.pop(name, None)
        else:
            self.outcomes.append(Outcome(known=[known(self.names.get(name)) for name in step.makes]))

    def whole(self, pipeline: bool, failing: list[bool]) -> Run:
        """Run all lines."""
        program = self.program
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            self._lines(program.before, failing, 0)
            if pipeline:
                self._in_pipeline(failing)
            else:
                self._lines(program.body, failing, len(program.before))
            self._lines(program.after, failing, len(program.before) + len(program.body))
        return self

    def _in_pipeline(self, failing: list[bool]) -> None:
        program, offset = self.program, len(self.program.before)
        start, stop = program.inner
        with self._block() as pipe:
            self._lines(program.body[:start], failing, offset)
            if start < stop:
                with self._block() as inner:
                    self._lines(program.body[start:stop], failing, offset + start)
                self._count(inner)
            self.names["pipe"] = pipe
            self._lines(program.body[stop:], failing, offset + stop)
        self._count(pipe)
        self.names["pipe"] = None

    def _block(self) -> Any:
        made = Careful() if self.program.careful else eval(f"torch.pipeline({self.program.pipeline})", self.names)
        self.names["pipe"] = made
        return made

    def _count(self, pipe: Any) -> None:
        for plan, _ in pipe._history.plans or ():
            self.fused += sum(len(step) for step in plan if len(step) > 1)

    def _lines(self, steps: tuple[Step, ...], failing: list[bool], offset: int) -> None:
        for place, step in enumerate(steps, offset):
            self.step(step, place < len(failing) and failing[place])


def leaves(value: Any) -> Iterator[Any]:
    """The tensors of a value."""
    if is_tensor(value):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from leaves(item)


def known(value: Any, is_gradient: bool = False) -> Any:
    """What is to be known of a value at once; of a leaf's gradient not the version, which tells whether the walk found memory that nobody else held. Strides
    count as far as they reach an element: numpy has its own for the others."""
    if not is_tensor(value):
        return [known(item) for item in value] if isinstance(value, (tuple, list)) else type(value).__name__
    full = bool(value.numel())
    return (
        str(value.dtype),
        tuple(value.shape),
        tuple(step if size > 1 else "*" for size, step in zip(value.shape, value.stride())) if full else "*",
        value.storage_offset() if full else "*",
        str(value.device),
        "*" if is_gradient else value._version,
        value.requires_grad,
        value.is_leaf,
        type(value.grad_fn).__name__,
        value._base is None,
    )


def bits(array: Any) -> tuple:
    """Dtype, shape and elements, every nan as one: its sign and payload say nothing. Of complex numbers the first digits: the last bits of numpy's products
    depend on where the operands lie in memory."""
    array = np.asarray(array)
    if array.dtype.kind == "c":
        parts = np.stack([array.real, array.imag])
        return str(array.dtype), array.shape, [f"{part:.4g}" for part in np.where(parts == 0, 0.0, parts).ravel()]
    if array.dtype.kind in "fV":
        nan = np.isnan(array)
        if nan.any():
            array = np.where(nan, np.array(np.nan, array.dtype), array)
    return str(array.dtype), array.shape, array.tobytes()


def elements(tensor: Any) -> Any:
    """The array of a tensor; None of a device without elements."""
    return None if tensor.device.type == "meta" else settled(tensor.detach())


@dataclass
class Fact:
    """What can be seen of a name at the end: what both runs have to agree in, and the elements."""

    seen: Any
    arrays: list[Any]


def facts(names: dict[str, Any]) -> dict[str, Fact]:
    """All that can be seen of the names at the end."""
    found: dict[str, Fact] = {}
    memory: dict[Any, str] = {}
    for name, value in names.items():
        if name in ("torch", "ops", "pipe") or name.startswith("__"):
            continue
        if isinstance(value, np.ndarray):
            found[name] = Fact(None, [value])
        elif next(leaves(value), None) is None:
            found[name] = Fact(repr(value), [])
        else:
            tensors = list(leaves(value))
            grads = [t.grad for t in tensors if t.is_leaf and t.grad is not None]
            seen = [[(known(t), _memory_of(t, name, memory)) for t in tensors], [known(grad, True) for grad in grads]]
            arrays = [elements(t) for t in (*tensors, *grads)]
            found[name] = Fact(seen, [a for a in arrays if a is not None])
    found["the generator's state"] = Fact(bits(settled(torch.get_rng_state())), [])
    return found


def _memory_of(tensor: Any, name: str, memory: dict[Any, str]) -> str:
    """The first name with the same memory."""
    if not tensor.numel():
        return "nothing"
    if tensor.device.type == "meta":
        return memory.setdefault(id(settled(tensor.detach()).storage), name)
    return memory.setdefault(tensor.untyped_storage().data_ptr(), name)


Differ = Callable[[Any, Any, int], bool]


def differ_in_bits(one: Any, other: Any, fused: int) -> bool:
    """Whether elements differ at all."""
    return bits(one) != bits(other)


def problem_of(program: Program, differ: Differ = differ_in_bits) -> str | None:
    """What the pipeline shows that the eager run does not."""
    eager = Run(program).whole(False, [])
    failing = [outcome.error is not None for outcome in eager.outcomes]
    expected = facts(eager.names)
    run = Run(program)
    try:
        run.whole(True, failing)
    except ERRORS as error:
        return f"the block ends in {': '.join(failure_of(error))}"
    for step, want, got in zip((*program.before, *program.body, *program.after), eager.outcomes, run.outcomes):
        if want != got:
            return f"{step.text}\neager:    {want}\npipeline: {got}"
    try:
        found = facts(run.names)
    except ERRORS as error:
        return f"a result raises {': '.join(failure_of(error))}"
    if expected.keys() != found.keys():
        return f"names: {sorted(expected.keys() ^ found.keys())}"
    for name, want in expected.items():
        got = found[name]
        if want.seen != got.seen:
            return f"{name}\neager:    {want.seen}\npipeline: {got.seen}"
        for one, other in zip(want.arrays, got.arrays, strict=True):
            if differ(one, other, run.fused):
                return f"{name}\neager:    {one!r}\npipeline: {other!r}"
    return None


# Making a failing program small


def shrunk(program: Program, fails: Callable[[Program], bool], patience: int = 600) -> Program:
    """The program without the lines that it fails without."""
    tried = 0
    better = True
    while better:
        better = False
        for smaller in _smaller(program):
            tried += 1
            if tried > patience:
                return program
            if fails(smaller):
                program, better = smaller, True
                break
    return program


def _smaller(program: Program) -> Iterator[Program]:
    total = len(program.before) + len(program.body) + len(program.after)
    if program.inner[0] < program.inner[1]:
        yield replace(program, inner=(0, 0))
    if program.pipeline:
        yield replace(program, pipeline="")
    for length in (8, 4, 2, 1):
        for start in range(total - 1, -1, -length):
            yield without(program, set(range(max(start - length + 1, 0), start + 1)))


def without(program: Program, gone: set[int]) -> Program:
    """The program without some lines and those that need what they made."""
    alive: set[str] = set()
    kept: list[list[Step]] = [[], [], []]
    inner = [0, 0]
    place = 0
    for part, steps in zip(kept, (program.before, program.body, program.after)):
        for at, step in enumerate(steps):
            if place not in gone and alive.issuperset(step.uses):
                part.append(step)
                alive.update(step.makes)
                if part is kept[1]:
                    inner = [count + (at < edge) for count, edge in zip(inner, program.inner)]
            else:
                alive.difference_update(step.makes)
            place += 1
    before, body, after = map(tuple, kept)
    return replace(program, before=before, body=body, after=after, inner=(inner[0], inner[1]))


def smallest_problem(program: Program, differ: Differ = differ_in_bits) -> str | None:
    """What is wrong with a program and the fewest lines that show it; None when nothing is."""
    problem = problem_of(program, differ)
    if problem is None:
        return None
    kind = problem.split("\n")[-1].split(":")[0]
    small = shrunk(program, lambda p: (problem_of(p, differ) or "").split("\n")[-1].split(":")[0] == kind)
    return f"{problem_of(small, differ)}\n\n{small.show()}"
