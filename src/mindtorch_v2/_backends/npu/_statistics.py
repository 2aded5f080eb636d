"""Counters of the caching allocator, by the names of PyTorch's `memory_stats()`."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, MutableMapping
from typing import Any

KINDS = (
    "allocation",
    "allocated_bytes",
    "active",
    "active_bytes",
    "requested_bytes",
    "inactive_split",
    "inactive_split_bytes",
    "segment",
    "reserved_bytes",
)
(
    ALLOCATION,
    ALLOCATED_BYTES,
    ACTIVE,
    ACTIVE_BYTES,
    REQUESTED_BYTES,
    INACTIVE_SPLIT,
    INACTIVE_SPLIT_BYTES,
    SEGMENT,
    RESERVED_BYTES,
) = range(len(KINDS))
POOLS = ("all", "large_pool", "small_pool")
METRICS = ("current", "peak", "allocated", "freed")
OVERSIZE = ("oversize_allocations", "oversize_segments")
EVENTS = ("num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free")

_N = len(KINDS)
_PEAK, _ALLOCATED, _FREED = _N, 2 * _N, 3 * _N


def _empty() -> array[int]:
    return array("q", bytes(8 * len(METRICS) * _N))


class Statistics(MutableMapping[str, int]):
    """A mapping from flat names (`"reserved_bytes.all.current"`) to whole numbers; every name is there from the start.

    One array of numbers per pool holds all metrics, since a small allocation changes a dozen of them and has a microsecond to do it; the extension does so in
    these very arrays (`native/runtime/leases.c`).
    """

    __slots__ = ("all", "large", "small", "oversize", "events")

    def __init__(self) -> None:
        self.all, self.large, self.small = _empty(), _empty(), _empty()
        self.oversize = {name: [0, 0, 0, 0] for name in OVERSIZE}
        self.events = {**dict.fromkeys(EVENTS, 0), "max_split_size": -1}

    # ------------------------------------------------------------------------------------------------------------- counting

    def change(self, small: bool, kind: int, amount: int) -> None:
        """Add `amount` (or take it off, where negative) to one of KINDS."""
        for numbers in (self.all, self.small if small else self.large):
            numbers[kind] = current = numbers[kind] + amount
            if amount > 0:
                numbers[_ALLOCATED + kind] += amount
                if current > numbers[_PEAK + kind]:
                    numbers[_PEAK + kind] = current
            else:
                numbers[_FREED + kind] -= amount

    def count_malloc(self, small: bool, size: int, requested: int) -> None:
        """A block of `size` bytes was handed out for `requested` bytes."""
        for n in (self.all, self.small if small else self.large):
            # Written out: a loop over the five kinds takes three times as long.
            n[ALLOCATION] = x = n[ALLOCATION] + 1
            if x > n[_PEAK + ALLOCATION]:
                n[_PEAK + ALLOCATION] = x
            n[_ALLOCATED + ALLOCATION] += 1
            n[ALLOCATED_BYTES] = x = n[ALLOCATED_BYTES] + size
            if x > n[_PEAK + ALLOCATED_BYTES]:
                n[_PEAK + ALLOCATED_BYTES] = x
            n[_ALLOCATED + ALLOCATED_BYTES] += size
            n[ACTIVE] = x = n[ACTIVE] + 1
            if x > n[_PEAK + ACTIVE]:
                n[_PEAK + ACTIVE] = x
            n[_ALLOCATED + ACTIVE] += 1
            n[ACTIVE_BYTES] = x = n[ACTIVE_BYTES] + size
            if x > n[_PEAK + ACTIVE_BYTES]:
                n[_PEAK + ACTIVE_BYTES] = x
            n[_ALLOCATED + ACTIVE_BYTES] += size
            n[REQUESTED_BYTES] = x = n[REQUESTED_BYTES] + requested
            if x > n[_PEAK + REQUESTED_BYTES]:
                n[_PEAK + REQUESTED_BYTES] = x
            n[_ALLOCATED + REQUESTED_BYTES] += requested

    def count_free(self, small: bool, size: int) -> None:
        """The user gave a block back."""
        for n in (self.all, self.small if small else self.large):
            n[ALLOCATION] -= 1
            n[_FREED + ALLOCATION] += 1
            n[ALLOCATED_BYTES] -= size
            n[_FREED + ALLOCATED_BYTES] += size

    def count_release(self, small: bool, size: int, requested: int) -> None:
        """No stream uses a block any more."""
        for n in (self.all, self.small if small else self.large):
            n[ACTIVE] -= 1
            n[_FREED + ACTIVE] += 1
            n[ACTIVE_BYTES] -= size
            n[_FREED + ACTIVE_BYTES] += size
            n[REQUESTED_BYTES] -= requested
            n[_FREED + REQUESTED_BYTES] += requested

    def change_oversize(self, name: str, amount: int) -> None:
        """Count allocations and segments above `max_split_size_mb`."""
        numbers = self.oversize[name]
        numbers[0] += amount
        numbers[1] = max(numbers[1], numbers[0])
        numbers[2 if amount > 0 else 3] += abs(amount)

    # ---------------------------------------------------------------------------------------------------------------- resets

    def reset_peak(self) -> None:
        """Let every peak begin at the current number."""
        for numbers in (self.all, self.large, self.small):
            numbers[_PEAK:_ALLOCATED] = numbers[:_N]
        for numbers in self.oversize.values():
            numbers[1] = numbers[0]

    def reset_accumulated(self) -> None:
        """Let everything allocated and freed, and the counts of retries and errors, begin at 0."""
        for numbers in (self.all, self.large, self.small):
            numbers[_ALLOCATED:] = array("q", bytes(8 * 2 * _N))
        for numbers in self.oversize.values():
            numbers[2:] = [0, 0]
        self.events.update(dict.fromkeys(EVENTS, 0))

    # --------------------------------------------------------------------------------------------------------------- reading

    def nested(self) -> dict[str, Any]:
        """`{kind: {pool: {metric: number}}}`, PyTorch's nested form."""
        pools = dict(zip(POOLS, (self.all, self.large, self.small), strict=True))
        made: dict[str, Any] = {
            name: {
                pool: {metric: numbers[at * _N + kind] for at, metric in enumerate(METRICS)}
                for pool, numbers in pools.items()
            }
            for kind, name in enumerate(KINDS)
        }
        for name, numbers in self.oversize.items():
            made[name] = dict(zip(METRICS, numbers, strict=True))
        return {**made, **self.events}

    def _cell(self, name: str) -> tuple[Any, Any]:
        """The container and the key that hold a flat name. KeyError where there is no such name."""
        if name in self.events:
            return self.events, name
        kind, _, rest = name.partition(".")
        if kind in self.oversize and rest in METRICS:
            return self.oversize[kind], METRICS.index(rest)
        pool, _, metric = rest.partition(".")
        if kind not in KINDS or pool not in POOLS or metric not in METRICS:
            raise KeyError(name)
        numbers = (self.all, self.large, self.small)[POOLS.index(pool)]
        return numbers, METRICS.index(metric) * _N + KINDS.index(kind)

    def __getitem__(self, name: str) -> int:
        container, key = self._cell(name)
        return container[key]

    def __setitem__(self, name: str, value: int) -> None:
        container, key = self._cell(name)
        container[key] = value

    def __delitem__(self, name: str) -> None:
        raise TypeError("a statistic cannot be removed")

    def __iter__(self) -> Iterator[str]:
        return iter(flatten(self.nested()))

    def __len__(self) -> int:
        return _N * len(POOLS) * len(METRICS) + len(OVERSIZE) * len(METRICS) + len(self.events)


def flatten(nested: dict[str, Any]) -> dict[str, Any]:
    """A nested dict with its keys joined by dots, sorted."""
    found: dict[str, Any] = {}

    def visit(prefix: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                visit(f"{prefix}.{key}" if prefix else str(key), item)
        else:
            found[prefix] = value

    visit("", nested)
    return dict(sorted(found.items()))
