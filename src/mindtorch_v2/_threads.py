"""How many threads a call may use."""

from __future__ import annotations

import os

_count: int | None = None


def get_num_threads() -> int:
    """The number of threads of matrix products: as set, else that of the environment or of the machine."""
    global _count
    if _count is None:
        can_tell = hasattr(os, "sched_getaffinity")
        _count = int(
            os.environ.get("OMP_NUM_THREADS") or (len(os.sched_getaffinity(0)) if can_tell else os.cpu_count() or 1)
        )
    return _count


def set_count(count: int) -> None:
    """Use at most `count` threads."""
    global _count
    _count = count
