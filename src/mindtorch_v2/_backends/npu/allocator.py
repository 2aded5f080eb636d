"""The caching allocator of one NPU, by the rules of PyTorch's: blocks are cut from segments, and stay with the stream that they were allocated on.

A block that is given back may be handed out again on the same stream at once, since the device runs a stream's work in order. Where other streams have
used it (`record_stream`), it waits for events on them.

Note [Giving memory back to the device]: `aclrtFree` does not wait for the work that still uses the memory. Every release of segments therefore synchronises
the device first.

Note [Frees in between]: Python may run a finalizer, and with it `free`, at nearly any point, also while this thread or another is inside the allocator. A
free that finds the allocator at work is put on a list, which the next call works off before it does anything else.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections import deque
from typing import Any

from ._blocks import GIB, MIB, MIN_BLOCK, SMALL_SIZE, Block, Pool, Segment, round_size, round_to_parts, segment_size
from ._expandable import Expansion, has_virtual_memory
from ._leases import Ended, Shelf, held
from ._settings import Settings, from_environment
from ._snapshots import History, describe
from ._statistics import INACTIVE_SPLIT, INACTIVE_SPLIT_BYTES, RESERVED_BYTES, SEGMENT, Statistics, flatten
from .errors import NpuOutOfMemory

__all__ = ["Block", "NpuAllocator", "NpuOutOfMemory", "existing", "get"]

_CODE = 207001
"""ACL's code for a device without room."""
_EXBIBYTE = 1 << 60


class NpuAllocator:
    """Memory of the device `device_id`. The runtime is asked for on the first allocation; `runtime` and `settings` replace it and the environment's
    settings. ValueError for wrong settings in the environment."""

    def __init__(self, device_id: int, runtime: Any = None, settings: Settings | None = None) -> None:
        self.device_id = device_id
        self._given_runtime = runtime
        self._settings = from_environment() if settings is None else settings
        self._max_split, self._max_waste = self._settings.max_split_size, self._settings.max_waste
        self._divisions = self._settings.divisions
        self._stats = Statistics()
        if self._max_split is not None:
            self._stats.events["max_split_size"] = self._max_split
        self._lock = threading.RLock()
        self._deferred: deque[Any] = deque()
        self._small, self._large = Pool(True), Pool(False)
        self._segments: dict[int, Segment] = {}
        self._pending: dict[int, deque[tuple[int, Block]]] = {}
        self._idle_events: list[int] = []
        self._fraction = self._settings.fraction
        self._limit: int | None = None
        self._history: History | None = None
        self._expansion: Expansion | None = None  # made with the first segment
        self._expands = self._settings.expandable
        stats = self._stats
        self._shelf = Shelf(
            self._small, self._large, self._pending, self._deferred, self._lend, stats.all, stats.large, stats.small
        )
        self._shelf.plain = self._max_split is None and not self._divisions

    @property
    def _busy(self) -> bool:
        return self._shelf.busy

    @_busy.setter
    def _busy(self, value: bool) -> None:
        self._shelf.busy = value

    @property
    def _runtime(self) -> Any:
        if self._given_runtime is None:
            from .runtime import get_runtime

            self._given_runtime = get_runtime()
            self._given_runtime.on_finalize(self._close)
        return self._given_runtime

    def _close(self) -> None:
        # The end of the program: a device that fails now takes its memory with it.
        with contextlib.suppress(RuntimeError):
            self.empty_cache()

    # ------------------------------------------------------------------------------------------------------ allocate and free

    def malloc(self, nbytes: int, stream: int = 0) -> Block:
        """A block of at least `nbytes` bytes for work on the stream with this handle. No bytes give a block at address 0.

        NpuOutOfMemory where neither the cache nor the device has room; RuntimeError for a negative size, and without an NPU.
        """
        if nbytes <= 0:
            if nbytes < 0:
                raise RuntimeError(f"Invalid size of an allocation: {nbytes} bytes")
            return Block(0, 0, None)
        size = round_size(nbytes)
        if self._divisions:
            size = round_to_parts(size, self._divisions)
        small = size <= SMALL_SIZE
        with self._lock:
            if self._busy:
                raise RuntimeError("npu: memory was asked for by a finalizer that ran inside the allocator")
            self._shelf.busy = True
            try:
                if self._deferred:
                    self._free_deferred()
                if self._pending:
                    self._process_events()
                block = (self._small if small else self._large).take(size, stream, self._max_split, self._max_waste)
                if block is None:
                    block = self._new_block(nbytes, size, small, stream)
                return self._hand_out(block, nbytes, size, small)
            finally:
                self._shelf.busy = False

    def lease(self, nbytes: int, stream: int = 0) -> Any:
        """`malloc` of a block (its `block`, at `address`) that is given back with the last reference to what this returns. See Note [Leases] in native/runtime/leases.c."""
        return self._shelf.lease(nbytes, stream)

    def _lend(self, nbytes: int, stream: int, found: list[Block]) -> None:
        with held():
            found.append(self.malloc(nbytes, stream))

    def _hand_out(self, block: Block, nbytes: int, size: int, small: bool) -> Block:
        rest = block.size - size
        stats = self._stats
        split = block.previous is not None or block.next is not None
        if rest >= MIN_BLOCK if small else rest > SMALL_SIZE and (self._max_split is None or size < self._max_split):
            remaining = block.cut(size)
            (self._small if small else self._large).add(remaining)
            if split:
                stats.change(small, INACTIVE_SPLIT_BYTES, -size)
            else:
                stats.change(small, INACTIVE_SPLIT_BYTES, remaining.size)
                stats.change(small, INACTIVE_SPLIT, 1)
        elif split:
            stats.change(small, INACTIVE_SPLIT_BYTES, -block.size)
            stats.change(small, INACTIVE_SPLIT, -1)
        block.allocated = True
        block.requested = nbytes
        stats.count_malloc(small, block.size, nbytes)
        if self._max_split is not None and block.size >= self._max_split:
            stats.change_oversize("oversize_allocations", 1)
        if self._history is not None:
            block.frames = self._history.frames()
            self._history.add("alloc", block.address, nbytes, block.stream, block.frames)
        return block

    def free(self, block: Block) -> None:
        """Give a block back. RuntimeError for one that is not allocated."""
        if not block.allocated:
            if block.segment is None:
                return
            raise RuntimeError(f"npu: {block!r} was freed twice")
        if not self._lock.acquire(blocking=False):  # Note [Frees in between]
            self._deferred.append(block)
            return
        try:
            if self._busy:
                self._deferred.append(block)
                return
            self._shelf.busy = True
            try:
                if self._deferred:
                    self._free_deferred()
                self._free(block)
            finally:
                self._shelf.busy = False
        finally:
            self._lock.release()

    def _free_deferred(self) -> None:
        while self._deferred:
            block = self._deferred.popleft()
            if block.__class__ is Ended:
                block = block.taken()
            if block.allocated:
                self._free(block)

    def _free(self, block: Block) -> None:
        block.allocated = False
        small = block.segment.small  # type: ignore[union-attr]
        self._stats.count_free(small, block.size)
        if self._max_split is not None and block.size >= self._max_split:
            self._stats.change_oversize("oversize_allocations", -1)
        if self._history is not None:
            self._history.add("free_requested", block.address, block.requested, block.stream)
        if block.uses:
            self._await_streams(block)
        else:
            self._make_free(block, small)

    def _make_free(self, block: Block, small: bool) -> None:
        """Put a block that nothing uses any more into its pool."""
        size, requested = block.size, block.requested
        if self._history is not None:
            self._history.add("free_completed", block.address, requested, block.stream)
        block.requested, block.frames, block.uses = 0, None, None
        self._cache(block, small)
        self._stats.count_release(small, size, requested)

    def _cache(self, block: Block, small: bool) -> None:
        """Put a block into its pool, joined with free neighbours."""
        pool = self._small if small else self._large
        count = change = 0
        after = block.next
        if after is not None and after.cached:
            pool.remove(after)
            count -= 1
            change -= after.size
            block.absorb_next()
        before = block.previous
        if before is not None and before.cached:
            pool.remove(before)
            count -= 1
            change -= before.size
            before.absorb_next()
            block = before
        pool.add(block)
        if block.previous is not None or block.next is not None:
            count += 1
            change += block.size
        if count:
            self._stats.change(small, INACTIVE_SPLIT, count)
        if change:
            self._stats.change(small, INACTIVE_SPLIT_BYTES, change)

    # ----------------------------------------------------------------------------------------------------- use across streams

    def record_stream(self, block: Block, stream: int) -> None:
        """Say that work on another stream uses the block: it is not handed out again before that work is done."""
        if block.segment is None or stream == block.segment.stream:
            return
        with self._Entered(self):
            if not block.allocated:
                raise RuntimeError(f"npu: {block!r} cannot be used on a stream: it is not allocated")
            if block.uses is None:
                block.uses = set()
            block.uses.add(stream)

    def _await_streams(self, block: Block) -> None:
        runtime, streams = self._runtime, sorted(block.uses or ())
        block.uses = None
        for stream in streams if getattr(runtime, "alive", True) else ():  # after the end nothing runs on any stream
            event = self._idle_events.pop() if self._idle_events else runtime.create_event(False, self.device_id)
            try:
                runtime.record_event(event, stream)
            except RuntimeError:
                # The stream was destroyed meanwhile; what ran on it is over once the device is idle.
                self._idle_events.append(event)
                runtime.synchronize_device(self.device_id)
                continue
            block.events += 1
            self._pending.setdefault(stream, deque()).append((event, block))
        if not block.events:
            self._make_free(block, block.segment.small)  # type: ignore[union-attr]

    def _process_events(self, wait: bool = False) -> None:
        """Free the blocks whose events are complete; with `wait`, all that are pending."""
        runtime = self._runtime
        for stream in list(self._pending):
            queue = self._pending[stream]
            while queue:
                event, block = queue[0]
                if wait:
                    runtime.synchronize_event(event)
                elif not runtime.query_event(event):
                    break  # those behind it were recorded later on the same stream
                queue.popleft()
                self._idle_events.append(event)
                block.events -= 1
                if not block.events:
                    self._make_free(block, block.segment.small)  # type: ignore[union-attr]
            if not queue:
                del self._pending[stream]

    # ------------------------------------------------------------------------------------------------------ segments and room

    def _new_block(self, nbytes: int, size: int, small: bool, stream: int) -> Block:
        """A block from a new segment, after making room where that is needed. NpuOutOfMemory."""
        wanted = segment_size(size, self._settings.large_segment)
        if nbytes >= _EXBIBYTE:
            raise self._out_of_memory(nbytes, wanted)
        if self._fraction < 1.0 and self._settings.gc_threshold:
            self._collect_garbage()
        found = self._new_room(wanted, size, small, stream)
        if found is None and self._release_oversize(size, small, stream):
            found = self._new_room(wanted, size, small, stream)
        if found is None:
            self._wait_for_streams()
            block = (self._small if small else self._large).take(size, stream, self._max_split, self._max_waste)
            if block is not None:  # it had waited for another stream
                return block
            self._release_cached()
            self._stats.events["num_alloc_retries"] += 1
            found = self._new_room(wanted, size, small, stream)
        if found is None:
            raise self._out_of_memory(nbytes, wanted)
        return found

    def _new_room(self, wanted: int, size: int, small: bool, stream: int) -> Block | None:
        """A block of at least `size` bytes, of a new segment of `wanted` bytes or one that has grown; None where the limit or the device forbids it."""
        if self._expands and self._expansion is None:
            self._expands = has_virtual_memory(self._runtime, self.device_id)
            self._expansion = Expansion(self) if self._expands else None
        if self._expansion is not None:
            found = self._expansion.room(size, small, stream)
            if found is not NotImplemented:
                return found
        segment = self._new_segment(wanted, small, stream)
        return None if segment is None else segment.first

    def _new_segment(self, wanted: int, small: bool, stream: int) -> Segment | None:
        """Take `wanted` bytes from the device; None where the limit or the device forbids it."""
        if self._exceeds_limit(wanted):
            return None
        try:
            address = self._runtime.malloc(self.device_id, wanted)
        except NpuOutOfMemory:
            return None
        segment = self._segments[address] = Segment(address, wanted, stream, small)
        stats = self._stats
        stats.events["num_device_alloc"] += 1
        stats.change(small, SEGMENT, 1)
        stats.change(small, RESERVED_BYTES, wanted)
        if self._max_split is not None and wanted >= self._max_split:
            stats.change_oversize("oversize_segments", 1)
        if self._history is not None:
            segment.frames = self._history.frames()
            self._history.add("segment_alloc", address, wanted, stream, segment.frames)
        return segment

    def _release(self, blocks: list[Block]) -> None:
        """Give whole cached segments back to the device. See Note [Giving memory back to the device]."""
        if not blocks:
            return
        self._runtime.synchronize_device(self.device_id)
        for block in blocks:
            segment = block.segment
            assert segment is not None and block.whole and block.cached
            self._runtime.free(self.device_id, segment.address)
            (self._small if segment.small else self._large).remove(block)
            del self._segments[segment.address]
            stats = self._stats
            stats.events["num_device_free"] += 1
            stats.change(segment.small, SEGMENT, -1)
            stats.change(segment.small, RESERVED_BYTES, -segment.size)
            if self._max_split is not None and segment.size >= self._max_split:
                stats.change_oversize("oversize_segments", -1)
            if self._history is not None:
                self._history.add("segment_free", segment.address, segment.size, segment.stream)

    def _wait_for_streams(self) -> None:
        """Wait for the events of all blocks that were given back."""
        self._stats.events["num_sync_all_streams"] += 1
        if self._pending:
            self._process_events(wait=True)

    def _release_cached(self) -> None:
        """Give every segment without a block in use back, and the parts of expandable ones that none is in."""
        self._release(
            [b for pool in (self._large, self._small) for b in pool if b.whole and b.segment.__class__ is Segment]
        )
        if self._expansion is not None:
            self._runtime.synchronize_device(self.device_id)
            self._expansion.release()

    def _release_oversize(self, size: int, small: bool, stream: int) -> bool:
        """With max_split_size: release just enough of this stream's blocks above it to make room for `size` bytes. Whether that was possible."""
        if small or self._max_split is None:
            return False
        needed = max(size, self._max_split)
        chosen: list[Block] = []
        found = 0
        for block_size, _, block in reversed(self._large.free.get(stream, [])):
            if not block.whole or block_size < self._max_split:
                continue
            if block_size >= needed:
                chosen, found = [block], block_size  # one is enough; the smallest such comes last
                continue
            if found >= needed:
                break
            chosen.append(block)
            found += block_size
        if found < needed:
            return False
        self._release(chosen)
        return True

    def _collect_garbage(self) -> None:
        """Release the longest unused large segments while more than the threshold's part of the limit is reserved."""
        pool = self._large
        pool.calls += 1
        target = int(self._settings.gc_threshold * self._allowed())
        excess = self._stats.all[RESERVED_BYTES] - target
        candidates = sorted((block for block in pool if block.whole), key=lambda block: block.born)
        chosen = []
        for block in candidates:
            if excess <= 0:
                break
            chosen.append(block)
            excess -= block.size
        self._release(chosen)

    def empty_cache(self) -> None:
        """Give all memory that no block in use needs back to the device; waits for blocks that other streams still use."""
        with self._Entered(self):
            if self._segments:
                self._wait_for_streams()
                self._release_cached()
            while self._idle_events:
                self._runtime.destroy_event(self._idle_events.pop())

    # ------------------------------------------------------------------------------------------------------------- the limit

    def _mem_get_info(self) -> tuple[int, int]:
        """Free and total bytes of the device."""
        return self._runtime.mem_get_info(self.device_id)

    def mem_get_info(self) -> tuple[int, int]:
        """Free and total bytes of the device, as it says itself."""
        return self._mem_get_info()

    def set_memory_fraction(self, fraction: float) -> None:
        """Let this process take at most this part of the device's memory. ValueError outside 0 to 1 (and for NaN)."""
        if not 0 <= fraction <= 1 or math.isnan(fraction):
            raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
        with self._Entered(self):
            self._fraction, self._limit = float(fraction), None

    def get_memory_fraction(self) -> float:
        """What `set_memory_fraction` set; 1.0 before."""
        return self._fraction

    def _allowed(self) -> int:
        """The limit in bytes."""
        if self._limit is None:
            self._limit = int(self._fraction * self._mem_get_info()[1])
        return self._limit

    def _exceeds_limit(self, nbytes: int) -> bool:
        # Without a limit the device itself decides.
        return self._fraction < 1.0 and self._stats.all[RESERVED_BYTES] + nbytes > self._allowed()

    def _enforce_memory_fraction(self, nbytes: int) -> None:
        """NpuOutOfMemory if a segment of `nbytes` bytes would exceed the limit."""
        if self._exceeds_limit(nbytes):
            raise self._out_of_memory(nbytes, nbytes)

    def _out_of_memory(self, nbytes: int, wanted: int) -> NpuOutOfMemory:
        stats = self._stats
        stats.events["num_ooms"] += 1
        free, total = self._mem_get_info()
        allocated, reserved = stats["allocated_bytes.all.current"], stats["reserved_bytes.all.current"]
        largest = max((block.size for pool in (self._large, self._small) for block in pool), default=0)
        if self._history is not None:
            self._history.add("oom", 0, nbytes, 0, device_free=free)
        if self._fraction < 1.0:
            limit = f"The limit of this process is {_bytes(self._allowed())} (a fraction of {self._fraction:g})"
            if reserved + wanted > self._allowed():
                limit += f", which a new segment of {_bytes(wanted)} would exceed"
        else:
            limit = f"The limit of this process is the device's {_bytes(total)}"
        return NpuOutOfMemory(
            f"NPU out of memory. Tried to allocate {_bytes(nbytes)}. NPU {self.device_id} has {_bytes(total)} in total, of which "
            f"{_bytes(free)} is free. This process has allocated {_bytes(allocated)}; {_bytes(reserved - allocated)} is reserved but "
            f"unallocated, the largest free block has {_bytes(largest)}. {limit}. If much is reserved but unallocated, "
            f"PYTORCH_NPU_ALLOC_CONF=max_split_size_mb:<n> may avoid fragmentation.",
            operation="malloc",
            code=_CODE,
        )

    # ----------------------------------------------------------------------------------------------------- what it knows of itself

    def memory_stats(self) -> dict[str, int]:
        """Every statistic by its flat name, sorted."""
        return flatten(self.memory_stats_as_nested_dict())

    def memory_stats_as_nested_dict(self) -> dict[str, Any]:
        """Every statistic, nested: kind, pool, metric."""
        with self._Entered(self):
            return self._stats.nested()

    def reset_peak_memory_stats(self) -> None:
        """Let peaks begin at what is current."""
        with self._Entered(self):
            self._stats.reset_peak()

    def reset_accumulated_memory_stats(self) -> None:
        """Let sums of what was allocated and freed, and counts, begin at 0."""
        with self._Entered(self):
            self._stats.reset_accumulated()

    def snapshot(self) -> dict[str, Any]:
        """Segments, blocks and recorded actions, as PyTorch's memory visualiser reads them."""
        with self._Entered(self):
            settings = {
                "PYTORCH_NPU_ALLOC_CONF": self._settings.text,
                "max_split_size": -1 if self._max_split is None else self._max_split,
                "garbage_collection_threshold": self._settings.gc_threshold,
                "expandable_segments": self._expands,
            }
            return describe(self._segments.values(), self.device_id, self._history, settings)

    def record_history(self, enabled: bool = True, max_entries: int | None = None, stacks: bool = True) -> None:
        """Record every action from now on (the last `max_entries` of them) for `snapshot`, or stop and forget them."""
        with self._Entered(self):
            self._history = History(max_entries, stacks) if enabled else None
            self._shelf.plain = self._history is None and self._max_split is None and not self._divisions

    class _Entered:
        """The allocator's lock, with the frees that came in between worked off."""

        __slots__ = ("allocator",)

        def __init__(self, allocator: NpuAllocator) -> None:
            self.allocator = allocator

        def __enter__(self) -> None:
            allocator = self.allocator
            allocator._lock.acquire()
            if allocator._busy:
                allocator._lock.release()
                raise RuntimeError("npu: a finalizer that ran inside the allocator called it")
            allocator._busy = True
            try:
                allocator._free_deferred()
            except BaseException:  # whatever it is: the lock must not stay taken
                self.__exit__()
                raise

        def __exit__(self, *error: object) -> None:
            self.allocator._busy = False
            self.allocator._lock.release()


def _bytes(number: int) -> str:
    if number >= GIB:
        return f"{number / GIB:.2f} GiB"
    if number >= MIB:
        return f"{number / MIB:.2f} MiB"
    return f"{number / 1024:.2f} KiB" if number >= 1024 else f"{number} bytes"


_ALLOCATORS: dict[int, NpuAllocator] = {}
_CREATION = threading.Lock()


def get(device_index: int) -> NpuAllocator:
    """The allocator of a device, made on first use."""
    found = _ALLOCATORS.get(device_index)
    if found is None:
        with _CREATION:
            found = _ALLOCATORS.get(device_index)
            if found is None:
                found = _ALLOCATORS[device_index] = NpuAllocator(device_index)
    return found


def existing() -> list[NpuAllocator]:
    """The allocators made so far."""
    return list(_ALLOCATORS.values())


def _after_fork() -> None:
    # The child cannot use the parent's device. Storages that it inherits free into what it leaves alone; another thread may have held the lock.
    global _CREATION
    _CREATION = threading.Lock()
    for allocator in existing():
        allocator._lock, allocator._shelf.busy = threading.RLock(), False
    _ALLOCATORS.clear()


os.register_at_fork(after_in_child=_after_fork)
