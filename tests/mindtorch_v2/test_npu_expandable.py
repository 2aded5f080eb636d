"""Segments that grow, over a fake driver: growth, joining, release, limits, snapshots, and random programs against what has to be true of any allocator."""

from __future__ import annotations

import random

import pytest
from npu_fakes import MIB, VirtualRuntime

from mindtorch_v2._backends.npu import _settings
from mindtorch_v2._backends.npu.allocator import NpuAllocator, NpuOutOfMemory

LARGE = 20 * MIB


def make(total: int = 200 * MIB, conf: str = "expandable_segments:True") -> tuple[NpuAllocator, VirtualRuntime]:
    runtime = VirtualRuntime(total)
    return NpuAllocator(0, runtime, _settings.parse(conf)), runtime


def reserved(a: NpuAllocator) -> int:
    return a.memory_stats()["reserved_bytes.all.current"]


def test_a_segment_grows_by_granules_and_its_blocks_are_neighbours() -> None:
    a, runtime = make()
    first, second = a.malloc(15 * MIB), a.malloc(15 * MIB)
    assert second.address == first.address + first.size
    assert reserved(a) == 2 * LARGE == sum(runtime.held.values())
    assert runtime.ranges == {first.address: 240 * MIB}  # of 225 MiB that were asked for
    third = a.malloc(100 * MIB)
    assert third.address == second.address + second.size and reserved(a) == 7 * LARGE
    assert a.memory_stats()["num_device_alloc"] == 3 and a.memory_stats()["segment.all.current"] == 0


def test_what_was_freed_next_to_each_other_is_one_block_again() -> None:
    a, _ = make()
    blocks = [a.malloc(10 * MIB) for _ in range(8)]
    before = reserved(a)
    for block in blocks:
        a.free(block)
    whole = a.malloc(80 * MIB)
    assert whole.address == blocks[0].address and reserved(a) == before
    ordinary = NpuAllocator(0, VirtualRuntime(100 * MIB))
    for block in [ordinary.malloc(10 * MIB) for _ in range(8)]:
        ordinary.free(block)
    ordinary.malloc(80 * MIB)
    assert ordinary.memory_stats()["num_alloc_retries"] == 1  # what segments that keep their sizes cost


def test_a_free_end_grows_by_what_is_missing() -> None:
    a, _ = make()
    block = a.malloc(15 * MIB)
    a.free(block)
    assert a.malloc(30 * MIB).address == block.address and reserved(a) == 2 * LARGE


def test_streams_and_size_classes_have_segments_of_their_own() -> None:
    a, runtime = make()
    blocks = [a.malloc(size, stream) for size in (512, 2 * MIB) for stream in (0, 7)]
    assert len(runtime.ranges) == 4 and {b.address for b in blocks} == set(runtime.ranges)
    assert reserved(a) == 2 * 2 * MIB + 2 * LARGE


def test_empty_cache_releases_granules_that_nothing_is_in() -> None:
    a, runtime = make()
    blocks = [a.malloc(LARGE - 32) for _ in range(5)]
    a.free(blocks[1])
    a.free(blocks[3])
    a.empty_cache()
    assert reserved(a) == 3 * LARGE == sum(runtime.held.values())
    assert a.memory_stats()["inactive_split.all.current"] == 0
    again = a.malloc(LARGE - 32)  # into the first hole
    assert again.address == blocks[1].address and reserved(a) == 4 * LARGE
    for block in (again, blocks[0], blocks[2], blocks[4]):
        a.free(block)
    a.empty_cache()
    assert (reserved(a), runtime.held, runtime.mapped, runtime.ranges) == (0, {}, {}, {})
    assert a.memory_stats()["inactive_split_bytes.all.current"] == 0
    assert a.malloc(1).address  # addresses are reserved anew


def test_parts_of_granules_stay() -> None:
    a, _ = make()
    first, second, third = a.malloc(15 * MIB), a.malloc(40 * MIB), a.malloc(MIB * 4)
    a.free(second)
    a.empty_cache()
    # Of 60 MiB the second has those from 15 to 55: the granule from 20 to 40 goes.
    assert reserved(a) == 2 * LARGE
    stats = a.memory_stats()
    assert stats["inactive_split_bytes.all.current"] == reserved(a) - first.size - third.size
    a.free(third)
    a.free(first)
    a.empty_cache()
    assert reserved(a) == 0


def test_without_memory_nothing_stays_behind() -> None:
    a, runtime = make(100 * MIB)
    block = a.malloc(50 * MIB)
    mapped = dict(runtime.mapped)
    with pytest.raises(NpuOutOfMemory, match="Tried to allocate 60.00 MiB"):
        a.malloc(60 * MIB)
    assert runtime.mapped == mapped and reserved(a) == 3 * LARGE
    a.free(block)
    other = a.malloc(70 * MIB, 5)  # the other stream's memory is released for it
    assert reserved(a) == 4 * LARGE and a.memory_stats()["num_alloc_retries"] == 2
    a.free(other)
    limited, _ = make(200 * MIB, "expandable_segments:True,per_process_memory_fraction:0.5")
    limited.malloc(90 * MIB)
    with pytest.raises(NpuOutOfMemory, match="a fraction of 0.5"):
        limited.malloc(30 * MIB)


def test_a_failure_of_the_driver_leaves_nothing_behind() -> None:
    a, runtime = make()
    map_memory, calls = runtime.map_memory, []

    def fails(device: int, address: int, nbytes: int, handle: int) -> None:
        calls.append(address)
        if len(calls) == 2:
            raise KeyboardInterrupt
        map_memory(device, address, nbytes, handle)

    runtime.map_memory = fails  # type: ignore[method-assign]
    runtime.unmap_memory = lambda device, address: runtime.mapped.pop(address)  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        a.malloc(50 * MIB)
    assert (runtime.held, runtime.mapped, reserved(a)) == ({}, {}, 0)
    assert a.malloc(50 * MIB).size >= 50 * MIB


def test_without_addresses_segments_keep_their_sizes() -> None:
    a, runtime = make()
    runtime.most_ranges = 1
    a.malloc(1)
    assert a.malloc(15 * MIB).address not in runtime.ranges and reserved(a) == 18 * MIB
    assert [s["is_expandable"] for s in a.snapshot()["segments"]] == [True, False]


def test_a_snapshot_has_a_segment_for_each_range_of_memory() -> None:
    a, _ = make()
    a.record_history()
    blocks = [a.malloc(LARGE - 32) for _ in range(3)]
    a.free(blocks[1])
    a.empty_cache()
    found = a.snapshot()
    assert [(s["address"], s["total_size"], s["is_expandable"]) for s in found["segments"]] == [
        (b.address, LARGE, True) for b in (blocks[0], blocks[2])
    ]
    assert found["allocator_settings"]["expandable_segments"] is True
    actions = [entry["action"] for entry in found["device_traces"][0]]
    assert actions.count("segment_map") == 3 and actions.count("segment_unmap") == 1


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed: int) -> None:
    draw = random.Random(seed)
    a, runtime = make(300 * MIB)
    live: list = []
    for _ in range(400):
        move = draw.random()
        if move < 0.55:
            size = draw.choice([draw.randrange(1, MIB), draw.randrange(MIB, 12 * MIB), draw.randrange(MIB, 70 * MIB)])
            try:
                block = a.malloc(size, draw.choice([0, 0, 0, 9]))
            except NpuOutOfMemory:
                if live:
                    a.free(live.pop(draw.randrange(len(live))))
                continue
            assert block.size >= size + 32 and runtime.is_mapped(block.address, block.size)
            assert all(block.address + block.size <= b.address or b.address + b.size <= block.address for b in live), (
                "blocks overlap"
            )
            live.append(block)
        elif move < 0.95:
            if live:
                block = live.pop(draw.randrange(len(live)))
                if draw.random() < 0.2:
                    a.record_stream(block, 4)
                a.free(block)
        elif move < 0.98:
            a.empty_cache()
        else:
            runtime.complete(4)
        check(a, runtime, live)
    for block in live:
        a.free(block)
    a.empty_cache()
    assert (reserved(a), runtime.held, runtime.mapped, runtime.ranges) == (0, {}, {}, {})
    stats = a.memory_stats()
    for name in ("allocated_bytes", "active_bytes", "inactive_split", "inactive_split_bytes", "requested_bytes"):
        assert stats[f"{name}.all.current"] == 0, name


def check(a: NpuAllocator, runtime: VirtualRuntime, live: list) -> None:
    stats = a.memory_stats()
    segments = a.snapshot()["segments"]
    assert stats["reserved_bytes.all.current"] == sum(runtime.held.values()) == sum(s["total_size"] for s in segments)
    assert stats["allocated_bytes.all.current"] == sum(b.size for b in live)
    for segment in segments:
        at = segment["address"]
        assert runtime.is_mapped(at, segment["total_size"])
        for block, after in zip(segment["blocks"], [*segment["blocks"][1:], None], strict=True):
            assert block["address"] == at
            at += block["size"]
            assert after is None or (block["state"], after["state"]) != ("inactive", "inactive"), "free neighbours"
