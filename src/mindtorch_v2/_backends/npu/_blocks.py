"""Blocks, segments and pools of the caching allocator: what is cut from what, and what is free."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
MIN_BLOCK = 512
"""Sizes are multiples of this, so that every address is aligned for every operator."""
PADDING = 32
"""Bytes behind each allocation that operators may read: vector instructions of the device fetch 32 bytes."""
SMALL_SIZE = MIB
"""The largest block of the small pool."""
SMALL_SEGMENT = 2 * MIB
LARGE_SEGMENT = 20 * MIB
"""What is taken from the device for blocks between 1 and 10 MiB."""
ROUND_LARGE = 2 * MIB


def round_size(nbytes: int) -> int:
    """The size of the block for a request of `nbytes`."""
    return (nbytes + PADDING + MIN_BLOCK - 1) // MIN_BLOCK * MIN_BLOCK


def round_to_parts(size: int, divisions: tuple[tuple[int | None, int], ...]) -> int:
    """A size rounded up to the next of so many steps between two powers of two, so that sizes that differ a little share blocks."""
    parts = next(parts for limit, parts in divisions if limit is None or size <= limit)
    if parts <= 1 or size & (size - 1) == 0:
        return size
    step = max((1 << (size.bit_length() - 1)) // parts, MIN_BLOCK)
    return -(-size // step) * step


def segment_size(size: int, large: int = LARGE_SEGMENT) -> int:
    """What is taken from the device to make a block of `size` bytes; `large`: for those between 1 MiB and half of it."""
    if size <= SMALL_SIZE:
        return SMALL_SEGMENT
    if size < large // 2:
        return large
    return (size + ROUND_LARGE - 1) // ROUND_LARGE * ROUND_LARGE


class Segment:
    """One piece of memory that the runtime gave; blocks tile it from its address on."""

    __slots__ = ("address", "size", "stream", "small", "first", "frames")

    def __init__(self, address: int, size: int, stream: int, small: bool) -> None:
        self.address, self.size, self.stream, self.small = address, size, stream, small
        self.first = Block(address, size, self)
        self.frames: list | None = None

    def blocks(self) -> Iterator[Block]:
        """From the lowest address on."""
        block: Block | None = self.first
        while block is not None:
            yield block
            block = block.next


class Block:
    """A part of a segment. `address`, `size` (bytes that are its own) and `requested` (bytes that were asked for) are for users.

    It is allocated (a user holds it), awaiting (given back, but streams of `uses` may still read it: `events` are not complete), or cached
    (in its pool).
    """

    __slots__ = (
        "address",
        "size",
        "requested",
        "segment",
        "previous",
        "next",
        "allocated",
        "cached",
        "uses",
        "events",
        "born",
        "frames",
    )

    def __init__(self, address: int, size: int, segment: Segment | None) -> None:
        self.address, self.size, self.requested, self.segment = address, size, 0, segment
        self.previous: Block | None = None
        self.next: Block | None = None
        self.allocated = self.cached = False
        self.uses: set[int] | None = None
        self.events = 0
        self.born = 0
        self.frames: list | None = None

    @property
    def stream(self) -> int:
        """The handle of the stream that it was allocated on."""
        return self.segment.stream if self.segment is not None else 0

    @property
    def whole(self) -> bool:
        """Whether it is all of its segment."""
        return self.previous is None and self.next is None

    @property
    def state(self) -> str:
        """By PyTorch's names."""
        if self.allocated:
            return "active_allocated"
        return "inactive" if self.cached else "active_awaiting_free"

    def __repr__(self) -> str:
        return f"<Block of {self.size} bytes at {self.address:#x}, {self.state}>"

    def cut(self, size: int) -> Block:
        """Keep `size` bytes; the rest becomes a block of its own behind this one."""
        rest = Block(self.address + size, self.size - size, self.segment)
        rest.previous, rest.next = self, self.next
        if self.next is not None:
            self.next.previous = rest
        self.next = rest
        self.size = size
        return rest

    def absorb_next(self) -> None:
        """Take over the bytes of the next block, which ceases to be."""
        gone = self.next
        assert gone is not None
        self.size += gone.size
        self.next = gone.next
        if gone.next is not None:
            gone.next.previous = self
        gone.previous = gone.next = None


class Pool:
    """The free blocks of one size class, by stream and sorted by size and address."""

    __slots__ = ("small", "free", "calls")

    def __init__(self, small: bool) -> None:
        self.small = small
        self.free: dict[int, list[tuple[int, int, Block]]] = {}
        self.calls = 0

    def add(self, block: Block) -> None:
        block.cached = True
        block.born = self.calls
        entries = self.free.get(block.segment.stream)  # type: ignore[union-attr]
        if entries is None:
            entries = self.free[block.segment.stream] = []  # type: ignore[union-attr]
        insort(entries, (block.size, block.address, block))  # addresses differ, so blocks are never compared

    def remove(self, block: Block) -> None:
        entries = self.free[block.segment.stream]  # type: ignore[union-attr]
        del entries[bisect_left(entries, (block.size, block.address))]
        block.cached = False

    def take(self, size: int, stream: int, max_split: int | None, max_waste: int = LARGE_SEGMENT) -> Block | None:
        """The smallest free block of at least `size` bytes, or None.

        Where `max_split` is set, blocks above it serve requests above it only, and those waste at most `max_waste` bytes.
        """
        entries = self.free.get(stream)
        if not entries:
            return None
        at = bisect_left(entries, (size, 0))
        if at == len(entries):
            return None
        block = entries[at][2]
        if max_split is not None:
            if size < max_split <= block.size:
                return None
            if size >= max_split and block.size >= size + max_waste:
                return None
        del entries[at]
        block.cached = False
        return block

    def __iter__(self) -> Iterator[Block]:
        for entries in self.free.values():
            for _, _, block in entries:
                yield block
