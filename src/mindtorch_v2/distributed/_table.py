"""Keys and values in the memory of one process, for all its threads: what a HashStore is, and what the server of a TCPStore serves."""

from __future__ import annotations

import time
from threading import Condition

from .. import _forks
from ._errors import DistStoreError, QueueEmptyError


def added(before: bytes, number: int) -> int:
    """A key's number and another one; ValueError if what the key has is no number."""
    try:
        return int(before or b"0") + number
    except ValueError:
        raise ValueError("stoll") from None


class Table:
    """A dictionary that threads share, with waiting. Keys are texts, values bytes, timeouts seconds."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._queues: dict[str, list[bytes]] = {}
        self._changed = Condition(_forks.lock())

    def _put(self, key: str, value: bytes) -> None:
        self._values[key] = value
        self._changed.notify_all()

    def set(self, key: str, value: bytes) -> None:
        with self._changed:
            self._put(key, value)

    def get(self, key: str, timeout: float) -> bytes:
        """The value, once it is there. DistStoreError when it is not there in time."""
        with self._changed:
            self._wait([key], timeout)
            return self._values[key]

    def add(self, key: str, number: int) -> int:
        with self._changed:
            total = added(self._values.get(key, b""), number)
            self._put(key, b"%d" % total)
            return total

    def append(self, key: str, value: bytes) -> None:
        with self._changed:
            self._put(key, self._values.get(key, b"") + value)

    def compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        """What the key has now: `desired` if it had `expected`, or had nothing and nothing was expected."""
        with self._changed:
            before = self._values.get(key)
            if before is None and expected:
                return expected
            if before is not None and before != expected:
                return before
            self._put(key, desired)
            return desired

    def delete(self, key: str) -> bool:
        with self._changed:
            return self._values.pop(key, None) is not None

    def keys(self) -> list[str]:
        with self._changed:
            return list(self._values)

    def check(self, keys: list[str]) -> bool:
        with self._changed:
            return all(key in self._values for key in keys)

    def wait(self, keys: list[str], timeout: float) -> None:
        """Return once all keys are there. DistStoreError when they are not there in time."""
        with self._changed:
            self._wait(keys, timeout)

    def _wait(self, keys: list[str], timeout: float) -> None:
        if not self._changed.wait_for(lambda: all(key in self._values for key in keys), timeout):
            raise DistStoreError("Wait timeout")

    def push(self, key: str, value: bytes) -> None:
        with self._changed:
            self._queues.setdefault(key, []).append(value)
            self._changed.notify_all()

    def pop(self, key: str, timeout: float | None) -> bytes:
        """The queue's first value; without a timeout QueueEmptyError if there is none."""
        end = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while not self._queues.get(key):
                if end is None:
                    raise QueueEmptyError("queue is empty")
                if not self._changed.wait(max(0.0, end - time.monotonic())) and not self._queues.get(key):
                    raise DistStoreError("Wait timeout")
            return self._queues[key].pop(0)

    def length(self, key: str) -> int:
        with self._changed:
            return len(self._queues.get(key, ()))
