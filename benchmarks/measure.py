"""Interleaved measurements: each case runs in turn on both libraries, in one process and one thread, and the medians are compared.

Times are CPU time of the thread, which a busy machine disturbs less than wall time.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

RUNNERS = {"mindtorch_v2": ("-W", "ignore", "-m", "mindtorch_v2"), "torch": ("-W", "ignore")}
"""What follows the interpreter's name where a program runs with a library as torch."""

Case = tuple[str, Callable[[], object], Callable[[], object]]


def environment(threads: int) -> dict[str, str]:
    """That of a program with so many threads."""
    return dict(
        os.environ, OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads), TRANSFORMERS_VERBOSITY="error"
    )


def once(function: Callable[[], object], repeats: int) -> float:
    """Seconds of thread CPU time per call."""
    start = time.thread_time_ns()
    for _ in range(repeats):
        function()
    return (time.thread_time_ns() - start) / repeats / 1e9


def compare(cases: list[Case], rounds: int, repeats: int) -> list[tuple[str, float, float]]:
    """(name, median seconds of the first function, of the second) for each case; rounds go over all cases in turn."""
    samples: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name, _, _ in cases}
    for name, ours, theirs in cases:  # warm up, and fail early
        ours()
        theirs()
        del name
    for _ in range(rounds):
        for name, ours, theirs in cases:
            samples[name][0].append(once(ours, repeats))
            samples[name][1].append(once(theirs, repeats))
    return [(name, statistics.median(a), statistics.median(b)) for name, (a, b) in samples.items()]


def table(rows: list[tuple[str, float, float]], unit: float, unit_name: str, limit: float | None = None) -> str:
    """The rows as text: both times, their ratio, and whether the ratio is within the limit."""
    lines = [f"{'case':34} {'mindtorch_v2':>13} {'torch':>13}   ratio"]
    for name, ours, theirs in rows:
        mark = "" if limit is None else "  ok" if ours / theirs <= limit else f"  above {limit}"
        lines.append(
            f"{name:34} {ours * unit:10.2f} {unit_name:>2} {theirs * unit:10.2f} {unit_name:>2}   {ours / theirs:5.2f}{mark}"
        )
    return "\n".join(lines)
