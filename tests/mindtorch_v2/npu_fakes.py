"""A runtime without a device, for tests of the allocator: limited memory, and work that is done when the test says so."""

from __future__ import annotations

from collections.abc import Iterator

from mindtorch_v2._backends.npu import _settings
from mindtorch_v2._backends.npu.allocator import NpuAllocator
from mindtorch_v2._backends.npu.errors import NpuError, NpuOutOfMemory

KIB, MIB = 1 << 10, 1 << 20
TOTAL = 64 * MIB


class FakeRuntime:
    """One device. `taken` bytes belong to other processes. Events complete by `complete`, or when somebody waits for them."""

    alive = True

    def __init__(self, total: int = TOTAL) -> None:
        self.total = total
        self.taken = 0
        self.held: dict[int, int] = {}
        self.next_address = 0x10_0000_0000
        self.next_event = 1
        self.recorded: dict[int, tuple[int, bool]] = {}
        """Event: (stream, done)."""
        self.open: dict[int, int] = {}
        """Incomplete event: the number of its recording. Events are used again, recordings are not."""
        self.recordings = 0
        self.gone: set[int] = set()
        self.synchronised = 0
        self.dirty = False
        """Whether work may still run: memory must not go back to the device then."""
        self.broken = False

    def on_finalize(self, function: object) -> None:
        self.last_wish = function

    def check_room(self, nbytes: int) -> None:
        self.refused = self.taken + sum(self.held.values()) + nbytes > self.total
        if self.refused:
            raise NpuOutOfMemory("no room", code=207001)

    def has_virtual_memory(self, device: int) -> bool:
        return False

    def malloc(self, device: int, nbytes: int) -> int:
        self.check_room(nbytes)
        address = self.next_address
        self.next_address += nbytes + 512  # a gap, so that segments are never neighbours
        self.held[address] = nbytes
        self.dirty = True
        return address

    def free(self, device: int, address: int) -> None:
        assert not self.dirty, "memory went back to the device while work could still use it"
        del self.held[address]

    def mem_get_info(self, device: int) -> tuple[int, int]:
        return self.total - self.taken - sum(self.held.values()), self.total

    def create_event(self, timing: bool = False, device: int | None = None) -> int:
        self.next_event += 1
        self.recorded[self.next_event] = (0, True)
        return self.next_event

    def destroy_event(self, event: int) -> None:
        assert self.recorded.pop(event)[1], "a pending event was destroyed"

    def record_event(self, event: int, stream: int) -> None:
        if stream in self.gone:
            raise NpuError("no such stream", code=107003)
        assert self.recorded.pop(event)[1], "an event was recorded anew before it was complete"
        self.recorded[event] = (stream, False)
        self.recordings += 1
        self.open[event] = self.recordings
        self.dirty = True

    def query_event(self, event: int) -> bool:
        return self.recorded[event][1]

    def synchronize_event(self, event: int) -> None:
        stream = self.recorded[event][0]
        for each in list(self.pending(stream)):
            self.finish(each)
            if each == event:
                return

    def synchronize_device(self, device: int) -> None:
        if self.broken:
            raise NpuError("a kernel failed", code=507015)
        self.synchronised += 1
        self.dirty = False
        for event in list(self.open):
            self.finish(event)

    def finish(self, event: int) -> None:
        self.recorded[event] = (self.recorded[event][0], True)
        del self.open[event]

    def pending(self, stream: int) -> Iterator[int]:
        """The incomplete events of a stream, in the order of their recording."""
        return (event for event, (on, done) in self.recorded.items() if on == stream and not done)

    def complete(self, stream: int, count: int = 1 << 30) -> None:
        """Let the first `count` pieces of work of a stream be done."""
        for event, _ in zip(list(self.pending(stream)), range(count), strict=False):
            self.finish(event)


class VirtualRuntime(FakeRuntime):
    """One whose addresses and memory are apart. `ranges` of addresses; memory is `held` by handles; `mapped` by address."""

    def __init__(self, total: int = TOTAL) -> None:
        super().__init__(total)
        self.ranges: dict[int, int] = {}
        self.mapped: dict[int, int] = {}
        self.most_ranges = 100

    def has_virtual_memory(self, device: int) -> bool:
        return True

    def reserve_addresses(self, device: int, nbytes: int) -> int:
        if len(self.ranges) >= self.most_ranges:
            raise NpuError("no addresses", code=107000)
        address = self.next_address = -(-self.next_address // (2 * MIB)) * 2 * MIB
        self.next_address += nbytes + 2 * MIB
        self.ranges[address] = nbytes
        return address

    def release_addresses(self, device: int, address: int) -> None:
        size = self.ranges.pop(address)
        assert not any(address <= each < address + size for each in self.mapped)

    def malloc_physical(self, device: int, nbytes: int) -> int:
        assert nbytes % (2 * MIB) == 0
        self.check_room(nbytes)
        self.next_event += 1
        self.held[self.next_event] = nbytes
        return self.next_event

    def free_physical(self, device: int, handle: int) -> None:
        assert handle not in self.mapped.values()
        del self.held[handle]

    def map_memory(self, device: int, address: int, nbytes: int, handle: int) -> None:
        assert any(start <= address and address + nbytes <= start + size for start, size in self.ranges.items())
        assert self.held[handle] == nbytes and address not in self.mapped and handle not in self.mapped.values()
        self.mapped[address] = handle
        self.dirty = True

    def unmap_memory(self, device: int, address: int) -> None:
        # What was mapped for a block that could not be had goes again at once, and nothing can have used it.
        assert not self.dirty or self.refused, "memory was unmapped while work could still use it"
        del self.mapped[address]

    def is_mapped(self, address: int, nbytes: int) -> bool:
        """Whether there is memory behind all of a range."""
        end = address + nbytes
        while address < end:
            found = next((a + self.held[h] for a, h in self.mapped.items() if a <= address < a + self.held[h]), None)
            if found is None:
                return False
            address = found
        return True


def make(total: int = TOTAL, conf: str = "") -> NpuAllocator:
    """An allocator over a fake runtime."""
    return NpuAllocator(0, FakeRuntime(total), _settings.parse(conf))
