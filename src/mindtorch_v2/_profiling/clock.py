"""The clock of a recording.

Note [The clock]
It stands still while the profiler itself works, so that what it takes to record a range counts for none, and while another thread or process has the processor. What a thread waits
for of its own accord (a file, a lock, `time.sleep`) counts. Between two looks it goes as the time of the processor does where the thread has not waited (the system counts how often it has), else
as the clock on the wall does; where the system does not count, always so.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

_wall, _processor = time.perf_counter_ns, time.thread_time_ns


def _counter() -> Callable[[], Any] | None:
    """What says how often this thread has waited, or None where nothing does."""
    try:
        import resource
    except ImportError:  # not a Unix
        return None
    kind = getattr(resource, "RUSAGE_THREAD", None)
    return None if kind is None else lambda: resource.getrusage(kind).ru_nvcsw


class Clock:
    """Nanoseconds of the thread that makes it, without those between `pause` and `go`. It begins paused."""

    def __init__(self) -> None:
        self.time = 0
        """What the clock said when it was paused last."""
        self._waits = _counter()
        self._before = (0, 0, 0)
        self._own = 0  # what a look itself takes of the time that it measures
        looks = []
        for _ in range(16):
            self.go()
            looks.append(-self.time + self.pause())
        self._own, self.time = min(looks), 0

    def pause(self) -> int:
        """Stand still; the time."""
        processor, wall = _processor(), _wall()
        was_processor, was_wall, was_waits = self._before
        ran = self._waits is not None and self._waits() == was_waits
        self.time += max((processor - was_processor if ran else wall - was_wall) - self._own, 0)
        return self.time

    def go(self) -> None:
        """Go on."""
        waits = 0 if self._waits is None else self._waits()
        self._before = (_processor(), _wall(), waits)
