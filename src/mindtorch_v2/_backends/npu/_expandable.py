"""Segments that grow: addresses that are reserved once for each stream and size class, of which parts have memory behind them.

Note [Expandable segments]
With `expandable_segments:True` a stream's blocks of a size class lie in one range of addresses, longer than the device's memory. Memory is put behind it in granules, from the lowest free addresses on,
and joins free blocks there: what was freed next to each other is one block again, whatever sizes it was asked for in. The blocks of a segment tile all of its addresses. Those without memory are neither
allocated nor cached, begin and end at granules, and no two of them are neighbours. What is released are whole granules of cached blocks, wherever they lie; the addresses go with the last.
"""

from __future__ import annotations

import contextlib
from typing import Any

from ..._warnings import warn_once
from ._blocks import SMALL_SEGMENT, Block, Segment
from ._statistics import INACTIVE_SPLIT, INACTIVE_SPLIT_BYTES, RESERVED_BYTES
from .errors import NpuError, NpuOutOfMemory


def has_virtual_memory(runtime: Any, device: int) -> bool:
    """Whether a device has addresses without memory; says so once where not."""
    if runtime.has_virtual_memory(device):
        return True
    warn_once(
        "expandable_segments:True has no effect: this driver has no virtual memory, and segments keep the size with which they were made"
    )
    return False


class ExpandableSegment(Segment):
    """A range of addresses. handles: the memory behind a granule, by its number."""

    __slots__ = ("granule", "handles")

    def __init__(self, address: int, size: int, stream: int, small: bool, granule: int) -> None:
        super().__init__(address, size, stream, small)
        self.granule = granule
        self.handles: dict[int, int] = {}

    def has_memory(self, block: Block) -> bool:
        """Whether there is memory behind a block."""
        return self._number(block.address) in self.handles

    def _number(self, address: int) -> int:
        return (address - self.address) // self.granule

    def numbers(self, start: int, end: int) -> range:
        """The granules between two addresses, both of which are bounds of some."""
        return range(self._number(start), self._number(end))

    def up(self, address: int) -> int:
        """The next bound of a granule from an address on."""
        return self.address + -(-(address - self.address) // self.granule) * self.granule


class Expansion:
    """The expandable segments of an allocator."""

    def __init__(self, allocator: Any) -> None:
        self._allocator = allocator
        self._segments: list[ExpandableSegment] = []

    def room(self, size: int, small: bool, stream: int) -> Any:
        """A free block of at least so many bytes, taken out of its pool, by putting memory behind addresses. None without memory; NotImplemented where no addresses can be had."""
        own = (s for s in self._segments if s.stream == stream and s.small is small)
        blocks = next((found for s in own if (found := _run(s, size)) is not None), None)
        if blocks is None:  # none yet, or what is in use lies in between
            segment = self._reserve(small, stream)
            blocks = None if segment is None else _run(segment, size)
        if blocks is None:
            return NotImplemented
        segment = blocks[0].segment
        assert isinstance(segment, ExpandableSegment)
        end = segment.up(blocks[0].address + size)
        bare = [block for block in blocks if not segment.has_memory(block)]
        parts = [(block.address, min(block.address + block.size, end)) for block in bare]
        allocator = self._allocator
        wanted = sum(high - low for low, high in parts)
        if allocator._exceeds_limit(wanted) or not self._put(segment, parts):
            return None
        for block, (low, high) in zip(bare, parts, strict=True):
            if high < block.address + block.size:
                block.cut(high - low)  # the rest stays without memory
            self._count(segment, low, high - low, "segment_map")
            allocator._cache(block, small)
        return (allocator._small if small else allocator._large).take(size, stream, None)

    def _reserve(self, small: bool, stream: int) -> ExpandableSegment | None:
        """Addresses for all of the device's memory and an eighth, since what is in use in between cannot be moved."""
        allocator = self._allocator
        granule = SMALL_SEGMENT if small else allocator._settings.large_segment
        total = allocator._mem_get_info()[1]
        size = -(-(total + total // 8) // granule) * granule
        try:
            address = allocator._runtime.reserve_addresses(allocator.device_id, size)
        except NpuError:
            return None
        made = ExpandableSegment(address, size, stream, small, granule)
        if allocator._history is not None:
            made.frames = allocator._history.frames()
        self._segments.append(made)
        allocator._segments[address] = made
        return made

    def _put(self, segment: ExpandableSegment, parts: list[tuple[int, int]]) -> bool:
        """Put memory behind parts of a segment: all, or none where there is not enough."""
        runtime, device = self._allocator._runtime, self._allocator.device_id
        handles: dict[int, int] = {}
        with contextlib.ExitStack() as undo:
            try:
                for low, high in parts:
                    for number in segment.numbers(low, high):
                        address = segment.address + number * segment.granule
                        handles[number] = runtime.malloc_physical(device, segment.granule)
                        undo.callback(runtime.free_physical, device, handles[number])
                        runtime.map_memory(device, address, segment.granule, handles[number])
                        undo.callback(runtime.unmap_memory, device, address)
            except NpuOutOfMemory:
                return False
            segment.handles |= handles
            undo.pop_all()
        return True

    def _take(self, segment: ExpandableSegment, number: int) -> None:
        runtime, device = self._allocator._runtime, self._allocator.device_id
        runtime.unmap_memory(device, segment.address + number * segment.granule)
        runtime.free_physical(device, segment.handles.pop(number))

    def _count(self, segment: ExpandableSegment, address: int, nbytes: int, action: str) -> None:
        allocator, more = self._allocator, action == "segment_map"
        allocator._stats.events["num_device_alloc" if more else "num_device_free"] += 1
        allocator._stats.change(segment.small, RESERVED_BYTES, nbytes if more else -nbytes)
        if allocator._history is not None:
            allocator._history.add(action, address, nbytes, segment.stream)

    def release(self) -> None:
        """Give the device whatever granules no block in use needs; it is idle."""
        for segment in list(self._segments):
            for block in list(segment.blocks()):
                low, high = segment.up(block.address), block.address + block.size
                high -= (high - segment.address) % segment.granule
                if block.cached and low < high:
                    self._release(segment, block, low, high)
            if not segment.handles:
                self._allocator._runtime.release_addresses(self._allocator.device_id, segment.address)
                self._segments.remove(segment)
                del self._allocator._segments[segment.address]

    def _release(self, segment: ExpandableSegment, block: Block, low: int, high: int) -> None:
        """Take the memory between two bounds of granules from a cached block; what remains of it on both sides stays cached."""
        pool = self._allocator._small if segment.small else self._allocator._large
        pool.remove(block)
        pieces, freed = -1, block.size
        if block.whole:
            pieces, freed = 0, 0
        if low > block.address:
            before, block = block, block.cut(low - block.address)
            pool.add(before)
            pieces, freed = pieces + 1, freed - before.size
        if block.size > high - low:
            after = block.cut(high - low)
            pool.add(after)
            pieces, freed = pieces + 1, freed - after.size
        stats = self._allocator._stats
        stats.change(segment.small, INACTIVE_SPLIT, pieces)
        stats.change(segment.small, INACTIVE_SPLIT_BYTES, -freed)
        for number in segment.numbers(low, high):
            self._take(segment, number)
        self._count(segment, low, high - low, "segment_unmap")
        if block.next is not None and not segment.has_memory(block.next):
            block.absorb_next()
        if block.previous is not None and not segment.has_memory(block.previous):
            block.previous.absorb_next()


def _run(segment: ExpandableSegment, size: int) -> list[Block] | None:
    """The first neighbours that are free, or have no memory, and are of so many bytes together."""
    found: list[Block] = []
    total = 0
    for block in segment.blocks():
        if not block.cached and segment.has_memory(block):
            found, total = [], 0
            continue
        found.append(block)
        total += block.size
        if total >= size:
            return found
    return None
