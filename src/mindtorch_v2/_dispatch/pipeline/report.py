"""What `Pipeline.explain` prints: the plan of each flush."""

from __future__ import annotations

from typing import Any

LIMIT = 2000
"""Operators that a pipeline remembers; of older flushes only the numbers are kept."""


def note(history: list, steps: list) -> None:
    """Add the plan of a flush. Keeps nothing that holds memory of tensors."""
    history.append([[_line(entry, step) for entry in step.entries] for step in steps])
    if sum(len(step) for plan in history for step in plan) > LIMIT:
        del history[0]


def _line(entry: Any, step: Any) -> tuple:
    results = entry.results()
    written = sum(v.nbytes() for v in results if v.kept or not step.fused)
    saved = sum(v.nbytes() for v in results if step.fused and not v.kept)
    geometry = [(v.shape, v.dtype) for v in results]
    return (entry.op, geometry, entry.code, entry.place, written, saved, step.fused)


def text(history: list, pending: list) -> str:
    """The plans as text."""
    lines: list[str] = []
    total = operators = passes = 0
    plans = [("flush", plan) for plan in history]
    if pending:
        note(now := [], pending)
        plans.append(("recorded", now[0]))
    for number, (kind, plan) in enumerate(plans, 1):
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
                lines.append(f"    {op.full_name:24} {shown:32} {fate:22} {_origin(code, place)}")
    lines.append(f"{operators} operators, {passes} steps, {total} bytes of results never written to memory")
    return "\n".join(lines)


def _origin(code: Any, place: int) -> str:
    from .values import origin

    file, line, function = origin(code, place)
    return f"{file}:{line} in {function}"
