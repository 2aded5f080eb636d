"""How many threads a call may use."""

from __future__ import annotations

import math
import os

_count: int | None = None


def get_num_threads() -> int:
    """The number of threads of loops and matrix products: as set, else that of the environment, else the processors that this process may use."""
    global _count
    if _count is None:
        given = os.environ.get("OMP_NUM_THREADS", "")
        _count = int(given) if given.isdigit() and int(given) else _processors()
    return _count


def _processors() -> int:
    """The processors that the system leaves to this process: those it may run on, and those that its control group has the time of."""
    can_tell = hasattr(os, "sched_getaffinity")
    count = len(os.sched_getaffinity(0)) if can_tell else os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as f:
            quota, period = f.read().split()
    except (OSError, ValueError):  # another system, or a control group that says nothing
        return count
    return count if quota == "max" else max(1, min(count, math.ceil(int(quota) / int(period))))


def set_count(count: int) -> None:
    """Use at most `count` threads."""
    global _count
    _count = count
