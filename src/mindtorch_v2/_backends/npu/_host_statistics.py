"""Counters of pinned host memory, by the names of PyTorch's `host_memory_stats()`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ... import _forks

_METRICS = ("current", "peak", "allocated", "freed")
_KINDS = ("allocations", "allocated_bytes", "active_requests", "active_bytes")


class HostStatistics:
    """What is counted of memory from `aclrtMallocHost`. Pinned blocks are not cached: each is active from its allocation to its release."""

    def __init__(self) -> None:
        self._lock = _forks.lock()
        self._counts = {kind: [0, 0, 0, 0] for kind in _KINDS}
        self._times = {name: [0, 0, 0, 0] for name in ("host_alloc_time", "host_free_time")}  # total, max, min, count

    def timed(self, name: str, action: Callable[[], Any]) -> Any:
        """Run `action` and count its microseconds under `name` ("host_alloc_time" or "host_free_time")."""
        start = time.perf_counter_ns()
        result = action()
        spent = (time.perf_counter_ns() - start) // 1000
        with self._lock:
            numbers = self._times[name]
            numbers[0] += spent
            numbers[1] = max(numbers[1], spent)
            numbers[2] = min(numbers[2], spent) if numbers[3] else spent
            numbers[3] += 1
        return result

    def change(self, blocks: int, nbytes: int) -> None:
        """`blocks` more (or fewer) blocks with `nbytes` bytes in all."""
        with self._lock:
            for kind in _KINDS:
                amount = nbytes if kind.endswith("bytes") else blocks
                numbers = self._counts[kind]
                numbers[0] += amount
                numbers[1] = max(numbers[1], numbers[0])
                numbers[2 if amount > 0 else 3] += abs(amount)

    def reset_peak(self) -> None:
        """Let peaks begin at what is current."""
        with self._lock:
            for numbers in self._counts.values():
                numbers[1] = numbers[0]
            for times in self._times.values():
                times[1] = 0

    def reset_accumulated(self) -> None:
        """Let sums, times and counts begin at 0."""
        with self._lock:
            for numbers in self._counts.values():
                numbers[2] = numbers[3] = 0
            for times in self._times.values():
                times[:] = [0, 0, 0, 0]

    def nested(self) -> dict[str, Any]:
        """PyTorch's nested form."""
        with self._lock:
            made: dict[str, Any] = {kind: dict(zip(_METRICS, self._counts[kind], strict=True)) for kind in _KINDS}
            for name, (total, most, least, count) in self._times.items():
                made[name] = {
                    "total": total,
                    "max": most,
                    "min": least,
                    "count": count,
                    "avg": total // count if count else 0,
                }
            made["num_host_alloc"] = self._counts["allocations"][2]
            made["num_host_free"] = self._counts["allocations"][3]
            return made


HOST = HostStatistics()
"""Of this process."""
