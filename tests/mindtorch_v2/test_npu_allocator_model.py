"""The NPU's caching allocator against a second, slow one that keeps lists and counts everything anew after each step.

`EXAMPLES=10000` takes so many steps.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from npu_fakes import KIB, MIB, TOTAL, FakeRuntime

from mindtorch_v2._backends.npu import _settings
from mindtorch_v2._backends.npu.allocator import NpuAllocator, NpuOutOfMemory

STEPS = int(os.environ.get("EXAMPLES", "0"))


@dataclass(eq=False)
class Piece:
    address: int
    size: int
    state: str  # allocated, awaiting, free
    requested: int = 0
    events: int = 0


@dataclass(eq=False)
class Area:
    address: int
    size: int
    stream: int
    small: bool
    pieces: list[Piece] = field(default_factory=list)


class Model:
    """The rules, in the plainest way: every choice looks at everything, every number is counted anew."""

    KINDS = (
        "allocation allocated_bytes active active_bytes requested_bytes inactive_split inactive_split_bytes segment reserved_bytes"
    ).split()

    def __init__(self) -> None:
        self.areas: list[Area] = []
        self.pending: dict[int, list[tuple[int, Area, Piece]]] = {}
        self.taken = 0
        self.fraction = 1.0
        self.numbers = {(k, p): [0, 0, 0, 0] for k in self.KINDS for p in ("all", "large_pool", "small_pool")}
        self.retries = self.ooms = 0
        self.device_allocs = self.device_frees = self.syncs = 0

    def count(self) -> None:
        """Take the difference to the last count into peaks and sums."""
        for pool in ("all", "large_pool", "small_pool"):
            areas = [a for a in self.areas if pool == "all" or a.small == (pool == "small_pool")]
            pieces = [(a, p) for a in areas for p in a.pieces]
            held = [p for _, p in pieces if p.state == "allocated"]
            active = [p for _, p in pieces if p.state != "free"]
            stuck = [p for a, p in pieces if p.state == "free" and len(a.pieces) > 1]
            now = (
                len(held),
                sum(p.size for p in held),
                len(active),
                sum(p.size for p in active),
                sum(p.requested for p in active),
                len(stuck),
                sum(p.size for p in stuck),
                len(areas),
                sum(a.size for a in areas),
            )
            for kind, value in zip(self.KINDS, now, strict=True):
                numbers = self.numbers[kind, pool]
                change = value - numbers[0]
                numbers[0] = value
                numbers[1] = max(numbers[1], value)
                numbers[2 if change > 0 else 3] += abs(change)

    def malloc(self, nbytes: int, stream: int, done: set[int], address_of_new: int) -> Piece | None:
        """The piece that must be handed out; None where memory is out. `address_of_new` is where the device would put a new segment."""
        for on in list(self.pending):
            while self.pending[on] and self.pending[on][0][0] in done:
                self.finish(on)
            if not self.pending[on]:
                del self.pending[on]
        size = -(-(nbytes + 32) // 512) * 512
        small = size <= MIB
        wanted = 2 * MIB if small else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
        found = self.best(size, small, stream)
        if found is None:
            found = self.grow(wanted, small, stream, address_of_new)
        if found is None:
            self.wait()
            found = self.best(size, small, stream)
            if found is None:
                self.trim()
                self.retries += 1
                found = self.grow(wanted, small, stream, address_of_new)
        if found is None:
            self.ooms += 1
            return None
        area, piece = found
        rest = piece.size - size
        if rest >= 512 if small else rest > MIB:
            area.pieces.insert(area.pieces.index(piece) + 1, Piece(piece.address + size, rest, "free"))
            piece.size = size
        piece.state, piece.requested = "allocated", nbytes
        self.count()
        return piece

    def best(self, size: int, small: bool, stream: int) -> tuple[Area, Piece] | None:
        fitting = [
            (p.size, p.address, a, p)
            for a in self.areas
            if a.small == small and a.stream == stream
            for p in a.pieces
            if p.state == "free" and p.size >= size
        ]
        return min(fitting, key=lambda f: f[:2])[2:] if fitting else None

    def grow(self, wanted: int, small: bool, stream: int, address: int) -> tuple[Area, Piece] | None:
        reserved = sum(a.size for a in self.areas)
        if reserved + wanted > (int(self.fraction * TOTAL) if self.fraction < 1 else TOTAL - self.taken):
            return None
        if reserved + wanted > TOTAL - self.taken:
            return None
        # It counts as handed out from the start, which is what happens to it next.
        area = Area(address, wanted, stream, small, [Piece(address, wanted, "free")])
        self.areas.append(area)
        self.device_allocs += 1
        return area, area.pieces[0]

    def finish(self, on: int) -> None:
        _, area, piece = self.pending[on].pop(0)
        piece.events -= 1
        if not piece.events:
            self.release(area, piece)

    def release(self, area: Area, piece: Piece) -> None:
        piece.state, piece.requested = "free", 0
        joined: list[Piece] = []
        for each in area.pieces:
            if joined and joined[-1].state == each.state == "free":
                joined[-1].size += each.size
            else:
                joined.append(each)
        area.pieces = joined
        self.count()

    def free(self, piece: Piece, uses: list[tuple[int, int]]) -> None:
        """`uses`: (stream, event) of the streams that were recorded."""
        area = next(a for a in self.areas if piece in a.pieces)
        piece.state, piece.events = "awaiting", len(uses)
        self.count()
        for stream, event in uses:
            self.pending.setdefault(stream, []).append((event, area, piece))
        if not uses:
            self.release(area, piece)

    def wait(self) -> None:
        for on in list(self.pending):
            while self.pending[on]:
                self.finish(on)
            del self.pending[on]
        self.syncs += 1

    def trim(self) -> None:
        kept = [a for a in self.areas if [p.state for p in a.pieces] != ["free"]]
        self.device_frees += len(self.areas) - len(kept)
        self.areas = kept
        self.count()

    def stats(self) -> dict[str, int]:
        metrics = ("current", "peak", "allocated", "freed")
        made = {f"{k}.{p}.{m}": v for (k, p), numbers in self.numbers.items() for m, v in zip(metrics, numbers)}
        made.update({f"oversize_{k}.{m}": 0 for k in ("allocations", "segments") for m in metrics})
        made.update(num_alloc_retries=self.retries, num_ooms=self.ooms, num_sync_all_streams=self.syncs)
        made.update(num_device_alloc=self.device_allocs, num_device_free=self.device_frees, max_split_size=-1)
        return made

    def layout(self) -> list:
        return [
            (a.address, a.size, a.stream, a.small, [(p.address, p.size, p.state, p.requested) for p in a.pieces])
            for a in sorted(self.areas, key=lambda a: a.address)
        ]


STATES = {"active_allocated": "allocated", "active_awaiting_free": "awaiting", "inactive": "free"}


def layout(snapshot: dict) -> list:
    """A snapshot in the form of `Model.layout`."""
    return [
        (
            s["address"],
            s["total_size"],
            s["stream"],
            s["segment_type"] == "small",
            [(b["address"], b["size"], STATES[b["state"]], b["requested_size"]) for b in s["blocks"]],
        )
        for s in snapshot["segments"]
    ]


SMALL = st.one_of(st.integers(1, 4096), st.integers(1, 300 * KIB), st.sampled_from([480, 481, MIB - 32]))
LARGE = st.one_of(st.integers(MIB, 12 * MIB), st.sampled_from([MIB - 31, 10 * MIB - 32, 10 * MIB - 31, 11 * MIB - 32]))
HUGE = st.one_of(st.integers(12 * MIB, 40 * MIB), st.just(80 * MIB))
STREAMS = st.integers(0, 2)


class AllocatorMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runtime = FakeRuntime()
        self.allocator = NpuAllocator(0, self.runtime, _settings.parse(""))
        self.model = Model()
        self.live: list = []  # (block, piece, uses)
        self.waiting: list = []  # (address, size, recordings) of blocks that other streams may still use

    def unsafe(self) -> list[tuple[int, int]]:
        """Ranges that nobody may get: those of live blocks, and of blocks with incomplete events."""
        running = set(self.runtime.open.values())
        pending = [(address, size) for address, size, recordings in self.waiting if running & recordings]
        return pending + [(block.address, block.size) for block, _, _ in self.live]

    # Hypothesis leaves some rules out of each run, so allocations and frees have several.

    @initialize(sizes=st.lists(st.one_of(SMALL, LARGE), min_size=3, max_size=12), stream=STREAMS)
    def begin(self, sizes: list[int], stream: int) -> None:
        for nbytes in sizes:
            self.take(nbytes, stream)

    @rule(nbytes=SMALL, stream=STREAMS)
    def malloc_small(self, nbytes: int, stream: int) -> None:
        self.take(nbytes, stream)

    @rule(nbytes=LARGE, stream=STREAMS)
    def malloc_large(self, nbytes: int, stream: int) -> None:
        self.take(nbytes, stream)

    @rule(nbytes=HUGE, stream=STREAMS)
    def malloc_huge(self, nbytes: int, stream: int) -> None:
        self.take(nbytes, stream)

    @rule(sizes=st.lists(st.one_of(SMALL, LARGE), min_size=2, max_size=6))
    def malloc_several(self, sizes: list[int]) -> None:
        for nbytes in sizes:
            self.take(nbytes, 0)

    def take(self, nbytes: int, stream: int) -> None:
        done = {event for event, (_, complete) in self.runtime.recorded.items() if complete}
        expected = self.model.malloc(nbytes, stream, done, self.runtime.next_address)
        if expected is None:
            with pytest.raises(NpuOutOfMemory, match="out of memory"):
                self.allocator.malloc(nbytes, stream)
            return
        block = self.allocator.malloc(nbytes, stream)
        assert (block.address, block.size, block.requested) == (expected.address, expected.size, nbytes)
        assert block.size >= nbytes + 32 and block.address % 512 == 0
        for address, size in self.unsafe():
            assert block.address + block.size <= address or address + size <= block.address
        self.live.append((block, expected, set()))

    def give_back(self, at: int, busy: bool) -> None:
        block, piece, uses = self.live.pop(at % len(self.live))
        before = set(self.runtime.recorded.items())
        if busy:  # as a finalizer that runs inside the allocator does
            self.allocator._busy = True
            self.allocator.free(block)
            self.allocator._busy = False
            assert block.allocated
            self.allocator.memory_stats()
        else:
            self.allocator.free(block)
        made = sorted(
            (stream, event) for event, (stream, done) in set(self.runtime.recorded.items()) - before if not done
        )
        assert [stream for stream, _ in made] == sorted(uses)
        self.model.free(piece, made)
        if made:
            self.waiting.append((piece.address, block.size, {self.runtime.open[event] for _, event in made}))

    @precondition(lambda self: self.live)
    @rule(at=st.integers(0, 1000), busy=st.booleans())
    def free(self, at: int, busy: bool) -> None:
        self.give_back(at, busy)

    @precondition(lambda self: self.live)
    @rule(at=st.integers(0, 1000), stream=STREAMS)
    def record_stream(self, at: int, stream: int) -> None:
        self.use(at, stream)

    @precondition(lambda self: self.live)
    @rule(stream=STREAMS)
    def record_all(self, stream: int) -> None:
        for at in range(len(self.live)):
            self.use(at, stream)

    def use(self, at: int, stream: int) -> None:
        block, _, uses = self.live[at % len(self.live)]
        self.allocator.record_stream(block, stream)
        if stream != block.stream:
            uses.add(stream)

    @precondition(lambda self: len(self.live) > 1)
    @rule(at=st.integers(0, 1000))
    def free_half(self, at: int) -> None:
        for n in range(len(self.live) // 2):
            self.give_back(at * n, False)

    @precondition(lambda self: len(self.live) > 8)
    @rule()
    def free_all(self) -> None:
        while self.live:
            self.give_back(0, False)

    @rule(stream=STREAMS, count=st.integers(1, 3))
    def work_ends(self, stream: int, count: int) -> None:
        self.runtime.complete(stream, count)

    @rule()
    def empty_cache(self) -> None:
        if self.model.areas:
            self.model.wait()
            self.model.trim()
        self.allocator.empty_cache()
        assert not self.runtime.recorded  # no event is left behind

    @rule(fraction=st.sampled_from([0.0, 0.5, 0.9, 1.0, 1.0]))
    def set_fraction(self, fraction: float) -> None:
        self.allocator.set_memory_fraction(fraction)
        self.model.fraction = fraction

    @rule(share=st.sampled_from([0.0, 0.0, 0.3, 0.6]))
    def other_process(self, share: float) -> None:
        self.runtime.taken = self.model.taken = int(share * TOTAL)

    @rule()
    def reset_peaks(self) -> None:
        self.allocator.reset_peak_memory_stats()
        for numbers in self.model.numbers.values():
            numbers[1] = numbers[0]

    @rule()
    def reset_sums(self) -> None:
        self.allocator.reset_accumulated_memory_stats()
        for numbers in self.model.numbers.values():
            numbers[2:] = [0, 0]
        self.model.retries = self.model.ooms = self.model.syncs = 0
        self.model.device_allocs = self.model.device_frees = 0

    @invariant()
    def agrees(self) -> None:
        snapshot, stats = self.allocator.snapshot(), self.allocator.memory_stats()
        assert layout(snapshot) == self.model.layout()
        assert stats == self.model.stats()

    @invariant()
    def no_byte_is_lost(self) -> None:
        snapshot = self.allocator.snapshot()
        assert {s["address"]: s["total_size"] for s in snapshot["segments"]} == self.runtime.held
        for segment in snapshot["segments"]:
            at = segment["address"]
            for block in segment["blocks"]:
                assert block["address"] == at and block["size"] > 0
                at += block["size"]
            assert at == segment["address"] + segment["total_size"]
            free = [b["state"] == "inactive" for b in segment["blocks"]]
            assert not any(a and b for a, b in zip(free, free[1:])), "free neighbours were not joined"

    @invariant()
    def snapshot_sums(self) -> None:
        segments, stats = self.allocator.snapshot()["segments"], self.allocator.memory_stats()
        for name, chosen in (
            ("all", segments),
            ("small_pool", [s for s in segments if s["segment_type"] == "small"]),
            ("large_pool", [s for s in segments if s["segment_type"] == "large"]),
        ):
            assert sum(s["total_size"] for s in chosen) == stats[f"reserved_bytes.{name}.current"]
            assert sum(s["allocated_size"] for s in chosen) == stats[f"allocated_bytes.{name}.current"]
            assert sum(s["active_size"] for s in chosen) == stats[f"active_bytes.{name}.current"]
            assert sum(s["requested_size"] for s in chosen) == stats[f"requested_bytes.{name}.current"]
            assert len(chosen) == stats[f"segment.{name}.current"]

    def teardown(self) -> None:
        self.runtime.taken = 0
        while self.live:
            self.give_back(0, False)
        self.allocator.empty_cache()
        assert not self.runtime.held and not self.runtime.recorded
        assert all(v == 0 for k, v in self.allocator.memory_stats().items() if k.endswith(".current"))


TestAllocatorMachine = AllocatorMachine.TestCase
TestAllocatorMachine.settings = settings(
    max_examples=STEPS // 100 or 15,
    stateful_step_count=100 if STEPS else 40,
    deadline=None,
    derandomize=not STEPS,
    database=None,
    suppress_health_check=list(HealthCheck),
)
