"""What `Pipeline.explain` prints: the plan of each flush."""

from __future__ import annotations

from collections import deque
from typing import Any

from .values import origin, root_of

LIMIT = 2000
"""Operators that a pipeline remembers; older flushes are forgotten."""


class History:
    """The plans of a pipeline's flushes, the oldest dropped when there are too many operators."""

    __slots__ = ("plans", "count")

    def __init__(self) -> None:
        self.plans: deque[list] | None = None
        self.count = 0

    def clear(self) -> None:
        """Forget all."""
        self.plans = None
        self.count = 0

    def add(self, plan: list, sources: list | None = None) -> None:
        """Add the plan of a flush: steps, which are lists of lines, and for each the numbers of the steps that it reads (None: no step reads another).

        It keeps nothing that holds memory of tensors.
        """
        if self.plans is None:
            self.plans = deque()
        self.plans.append((plan, sources))
        self.count += sum(map(len, plan))
        while self.count > LIMIT and len(self.plans) > 1:
            self.count -= sum(map(len, self.plans.popleft()[0]))

    def with_pending(self, pending: list) -> list[tuple]:
        """(kind, steps, sources) of each flush, and of what is recorded."""
        plans = [("flush", *plan) for plan in self.plans or ()]
        if pending:
            lines = [[line(entry, step) for entry in step.entries] for step in pending]
            plans.append(("recorded", lines, sources_of(pending)))
        return plans


def sources_of(steps: list) -> list[tuple[int, ...]]:
    """For each step the numbers of those that made, or wrote to last, what it reads."""
    last: dict[int, int] = {}  # by value: the step
    found = []
    for number, step in enumerate(steps):
        read = {last[id(value)] for entry in step.entries for value in entry.operands() if id(value) in last}
        found.append(tuple(sorted(read)))
        for entry in step.entries:
            written = entry.results() if entry.target is None else [root_of(entry.target)]
            last.update((id(value), number) for value in written)
    return found


def line(entry: Any, step: Any) -> tuple:
    """(operator, geometries of the results, code, place, bytes written, bytes never written, whether it is part of a chain); the extension makes
    such lines too."""
    results = entry.results()
    written = sum(v.nbytes() for v in results if v.kept or not step.fused)
    saved = sum(v.nbytes() for v in results if step.fused and not v.kept)
    return (entry.op, tuple((v.shape, v.dtype) for v in results), entry.code, entry.place, written, saved, step.fused)


def text(plans: list[tuple]) -> str:
    """Plans, as `History.with_pending` gives them, as text."""
    lines: list[str] = []
    total = operators = passes = 0
    for number, (kind, plan, _) in enumerate(plans, 1):
        lines.append(f"{kind} {number}: {sum(map(len, plan))} operators in {len(plan)} steps")
        for step in plan:
            operators += len(step)
            passes += 1
            if len(step) > 1:
                lines.append(f"  one pass over blocks, {len(step)} operators:")
            for op, geometry, code, place, written, saved, fused in step:
                total += saved
                shown = ", ".join(f"{list(shape)} {dtype}" for shape, dtype in geometry) or "in place"
                fate = "not materialised" if fused and not written else f"{written} bytes written"
                lines.append(f"    {op.full_name:24} {shown:32} {fate:22} {place_of(code, place)}")
    lines.append(f"{operators} operators, {passes} steps, {total} bytes of results never written to memory")
    return "\n".join(lines)


def place_of(code: Any, place: int) -> str:
    """The line that recorded an operator."""
    file, line, function = origin(code, place)
    return f"{file}:{line} in {function}"
