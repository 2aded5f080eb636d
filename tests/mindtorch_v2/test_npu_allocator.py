"""The NPU's caching allocator by hand: sizes, streams, limits, settings, threads, snapshots."""

from __future__ import annotations

import gc
import os
import threading
import warnings

import pytest
from npu_fakes import MIB, make

from mindtorch_v2 import _warnings
from mindtorch_v2._backends.npu import _settings, allocator
from mindtorch_v2._backends.npu.allocator import NpuAllocator, NpuOutOfMemory
from mindtorch_v2._backends.npu.errors import NpuError

# by hand


def test_sizes_and_segments():
    a = make()
    first, second = a.malloc(1), a.malloc(481)
    assert (first.size, second.size) == (512, 1024)  # 32 bytes of padding
    assert second.address == first.address + 512
    assert a.malloc(MIB - 32).size == MIB
    assert a.memory_stats()["reserved_bytes.small_pool.current"] == 2 * MIB
    assert a.malloc(MIB).size == MIB + 512
    assert a.memory_stats()["reserved_bytes.large_pool.current"] == 20 * MIB
    whole = make().malloc(11 * MIB - 32)
    assert whole.size == 12 * MIB  # a rest of 1 MiB is not cut off a large block


def test_nothing_and_less():
    a = make()
    empty = a.malloc(0)
    assert (empty.address, empty.size) == (0, 0)
    a.free(empty)
    a.free(empty)
    a.record_stream(empty, 3)
    with pytest.raises(RuntimeError, match="-1 bytes"):
        a.malloc(-1)
    with pytest.raises(NpuOutOfMemory):
        a.malloc(1 << 62)


def test_double_free_is_an_error():
    a = make()
    block = a.malloc(100)
    a.free(block)
    with pytest.raises(RuntimeError, match="freed twice"):
        a.free(block)
    with pytest.raises(RuntimeError, match="not allocated"):
        a.record_stream(block, 5)
    assert a.memory_stats()["allocation.all.current"] == 0


def test_streams_do_not_share():
    a = make()
    one = a.malloc(1000, 1)
    a.free(one)
    assert a.malloc(1000, 2).address != one.address
    assert a.malloc(1000, 1).address == one.address


def test_out_of_memory_says_everything():
    a = make()
    a.set_memory_fraction(0.5)
    held = a.malloc(5 * MIB)
    small = a.malloc(1000)
    with pytest.raises(NpuOutOfMemory) as caught:
        a.malloc(30 * MIB)
    text = str(caught.value)
    assert isinstance(caught.value, RuntimeError)
    assert "Tried to allocate 30.00 MiB" in text and "64.00 MiB in total" in text and "42.00 MiB is free" in text
    assert "allocated 5.00 MiB" in text and "17.00 MiB is reserved but unallocated" in text
    assert (
        "largest free block has 15.00 MiB" in text and "limit of this process is 32.00 MiB (a fraction of 0.5)" in text
    )
    assert a.memory_stats()["num_ooms"] == 1 and a.memory_stats()["num_alloc_retries"] == 1
    a.free(held)
    a.free(small)
    a.set_memory_fraction(1.0)
    assert a.malloc(30 * MIB).size >= 30 * MIB


def test_the_limit_comes_before_the_device():
    a = make()
    a.set_memory_fraction(0.25)
    calls = []
    real = a._runtime.malloc
    a._runtime.malloc = lambda device, nbytes: calls.append(nbytes) or real(device, nbytes)
    with pytest.raises(NpuOutOfMemory):
        a.malloc(20 * MIB)
    assert calls == []
    with pytest.raises(NpuOutOfMemory):
        a._enforce_memory_fraction(17 * MIB)
    a._enforce_memory_fraction(16 * MIB)


def test_waiting_memory_is_used_before_giving_up():
    a = make()
    block = a.malloc(40 * MIB, 1)
    a.record_stream(block, 2)
    a.free(block)
    assert a.snapshot()["segments"][0]["blocks"][0]["state"] == "active_awaiting_free"
    again = a.malloc(40 * MIB, 1)  # there is no room beside it, so the event is waited for
    assert again.address == block.address
    assert a.memory_stats()["num_sync_all_streams"] == 1


def test_a_destroyed_stream():
    a = make()
    block = a.malloc(1000, 1)
    a.record_stream(block, 2)
    a.record_stream(block, 3)
    a._runtime.gone.add(2)
    a.free(block)
    assert a._runtime.synchronised == 1
    a._runtime.complete(3)
    assert a.malloc(1000, 1).address == block.address


def test_a_failing_device_loses_nothing():
    a = make()
    held, cached = a.malloc(1000), a.malloc(5 * MIB)
    a.free(cached)
    before = a.snapshot(), a.memory_stats()
    a._runtime.broken = True
    with pytest.raises(NpuError, match="a kernel failed"):
        a.empty_cache()
    with pytest.raises(NpuError, match="a kernel failed"):
        a.malloc(60 * MIB)
    after = a.memory_stats()
    assert a.snapshot() == before[0]
    changed = {k for k in after if after[k] != before[1][k]}
    assert changed <= {"num_sync_all_streams"}
    a._runtime.broken = False
    a.free(held)
    a.empty_cache()
    assert not a._runtime.held


def test_an_error_of_the_runtime_is_not_taken_for_lack_of_memory():
    a = make()

    def refuse(device, nbytes):
        raise NpuError("bad device", code=107001)

    a._runtime.malloc = refuse
    with pytest.raises(NpuError, match="bad device"):
        a.malloc(1)
    assert a.memory_stats()["num_ooms"] == 0


def test_without_a_runtime_everything_answers():
    a = NpuAllocator(device_id=3)
    assert set(a.memory_stats().values()) == {0, -1}
    assert a.memory_stats()["max_split_size"] == -1
    assert a.snapshot()["segments"] == [] and a.snapshot()["device"] == 3
    a.empty_cache()
    a.reset_peak_memory_stats()
    a.reset_accumulated_memory_stats()
    a.set_memory_fraction(0.5)
    assert a.get_memory_fraction() == 0.5
    assert a._given_runtime is None


# settings


@pytest.mark.parametrize(
    "text",
    [
        "max_split_size_mb:20",
        "max_split_size_mb:many",
        "max_split_size_mb",
        "garbage_collection_threshold:0",
        "garbage_collection_threshold:1.0",
        "garbage_collection_threshold:nan",
        "expandable_segments:yes",
        "expandable_segments:True,max_split_size_mb:32",
        "roundup_power2_divisions:3",
        "roundup_power2_divisions:[256:1,>2]",
        "segment_size_mb:10",
        "large_segment_size_mb:1024",
        "max_non_split_rounding_mb:20",
        "base_addr_aligned_kb:17",
        "page_size:2m",
        "pinned_mem_register:1",
        "per_process_memory_fraction:1.5",
    ],
)
def test_wrong_settings(text, monkeypatch):
    monkeypatch.setenv("PYTORCH_NPU_ALLOC_CONF", text)
    with pytest.raises(ValueError, match="PYTORCH_NPU_ALLOC_CONF"):
        NpuAllocator(0)


def test_settings(monkeypatch):
    monkeypatch.setenv("PYTORCH_NPU_ALLOC_CONF", "max_split_size_mb:32, garbage_collection_threshold:0.8")
    a = NpuAllocator(0)
    assert a.memory_stats()["max_split_size"] == 32 * MIB
    assert a.snapshot()["allocator_settings"]["garbage_collection_threshold"] == 0.8


def test_every_setting_of_torch_npu_is_taken(monkeypatch):
    text = (
        "max_non_split_rounding_mb:32,roundup_power2_divisions:[256:1,512:2,>:8],large_segment_size_mb:64,per_process_memory_fraction:0.5,"
        "base_addr_aligned_kb:16,multi_stream_lazy_reclaim:True,page_size:1g,pin_memory_expandable_segments:False,pinned_mem_register:True,"
        "pinned_reserve_segment_size_mb:0,pinned_use_background_threads:True,release_lock_on_npumalloc:True"
    )
    monkeypatch.setenv("PYTORCH_NPU_ALLOC_CONF", "")
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", text)
    a = NpuAllocator(0)
    assert a.get_memory_fraction() == 0.5
    assert a.snapshot()["allocator_settings"]["PYTORCH_NPU_ALLOC_CONF"] == text


def test_an_unknown_setting_is_told_with_the_known_ones():
    with pytest.raises(
        ValueError, match="unknown setting 'segment'; known are .*expandable_segments.*page_size.*segment_size_mb"
    ):
        _settings.parse("segment:3")


def test_expandable_segments_warn_once_where_there_is_no_virtual_memory(monkeypatch):
    monkeypatch.setattr(_warnings, "_given", set())
    with pytest.warns(UserWarning, match="expandable_segments:True has no effect: this driver has no virtual memory"):
        make(conf="expandable_segments:True").malloc(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        a = make(conf="expandable_segments:True")
        a.malloc(1)
    assert not a.snapshot()["segments"][0]["is_expandable"]
    assert not a.snapshot()["allocator_settings"]["expandable_segments"]


def test_sizes_of_large_segments():
    a = make(600 * MIB, "large_segment_size_mb:64")
    a.malloc(3 * MIB)
    assert a.memory_stats()["reserved_bytes.all.current"] == 64 * MIB
    a.malloc(30 * MIB)  # beyond the first, and not half of another
    assert a.memory_stats()["reserved_bytes.all.current"] == 64 * MIB


@pytest.mark.parametrize(
    ("text", "nbytes", "size"),
    [
        ("roundup_power2_divisions:4", 1_200_000, 1_310_720),
        ("roundup_power2_divisions:4", 1_048_576 - 32, 1_048_576),
        ("roundup_power2_divisions:[1:1,>:2]", 600_000, 600_064),
        ("roundup_power2_divisions:[1:1,>:2]", 1_200_000, 1_572_864),
        ("roundup_power2_divisions:0", 1_200_000, 1_200_128),
    ],
)
def test_sizes_between_powers_of_two(text, nbytes, size):
    a = make(600 * MIB, text)
    assert a.malloc(nbytes).size == size


def test_what_an_oversize_request_may_waste():
    for text, kept in (("max_split_size_mb:32", False), ("max_split_size_mb:32,max_non_split_rounding_mb:64", True)):
        a = make(600 * MIB, text)
        block = a.malloc(100 * MIB)
        a.free(block)
        assert (a.malloc(50 * MIB).address == block.address) is kept


def test_blocks_above_max_split_size_stay_whole():
    a = make(200 * MIB, "max_split_size_mb:32")
    big = a.malloc(60 * MIB)
    a.free(big)
    assert a.malloc(20 * MIB).address != big.address  # a request below the bound takes nothing above it
    assert a.malloc(34 * MIB).address != big.address  # it would waste more than a large segment
    again = a.malloc(50 * MIB)
    assert again.address == big.address and again.size == big.size
    stats = a.memory_stats()
    assert stats["oversize_allocations.current"] == 2 and stats["oversize_segments.current"] == 2
    a.free(again)
    assert a.memory_stats()["oversize_allocations.current"] == 1
    assert a.memory_stats()["oversize_allocations.freed"] == 2


def test_just_enough_is_released_above_max_split_size():
    a = make(130 * MIB, "max_split_size_mb:32")
    blocks = [a.malloc(n * MIB - 32) for n in (40, 36, 34)]
    for block in blocks:
        a.free(block)
    a.malloc(56 * MIB)  # 20 MiB are free: the two largest go, the third stays
    assert [s["total_size"] // MIB for s in a.snapshot()["segments"]] == [34, 58]
    assert a.memory_stats()["num_alloc_retries"] == 0


def test_old_segments_are_collected_above_the_threshold():
    a = make(200 * MIB, "garbage_collection_threshold:0.5")
    a.set_memory_fraction(0.9)
    old, young = a.malloc(60 * MIB), a.malloc(40 * MIB)
    a.free(old)
    a.malloc(11 * MIB, 5)  # passes by: `old` is older from here on
    a.free(young)
    a.malloc(12 * MIB, 6)
    addresses = {s["address"] for s in a.snapshot()["segments"]}
    assert old.address not in addresses and young.address in addresses


# threads and gc


def test_threads():
    a = make(1 << 30)
    failures = []

    def work(stream):
        held = []
        try:
            for n in range(400):
                held.append(a.malloc(100 + 37 * n % 5000, stream))
                if n % 3 == 0:
                    a.record_stream(held[-1], stream + 1)
                if n % 2:
                    a.free(held.pop(n % len(held)))
                if n % 100 == 0:
                    a.snapshot()
                    a._runtime.complete(stream + 1)
            for block in held:
                a.free(block)
        except Exception as error:  # noqa: BLE001 (handed to the test's own thread)
            failures.append(error)

    threads = [threading.Thread(target=work, args=(10 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    a.empty_cache()
    stats = a.memory_stats()
    assert stats["allocation.all.allocated"] == stats["allocation.all.freed"] == 1600
    assert stats["reserved_bytes.all.current"] == 0


def test_a_finalizer_inside_the_allocator():
    a = make()
    real = a._runtime.malloc

    class Holder:
        def __init__(self):
            self.block = a.malloc(100)
            self.itself = self

        def __del__(self):
            a.free(self.block)

    def malloc(device, nbytes):
        gc.collect()  # runs the finalizer while the allocator is at work
        return real(device, nbytes)

    Holder()
    a._runtime.malloc = malloc
    block = a.malloc(5 * MIB)
    assert a.memory_stats()["allocation.all.current"] == 1
    a.free(block)
    with pytest.raises(RuntimeError, match="finalizer"):
        a._runtime.malloc = lambda device, nbytes: a.malloc(1) and 0
        a.malloc(30 * MIB)


def test_free_does_not_wait_for_other_threads():
    a = make()
    block = a.malloc(100)
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with a._lock:
            entered.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()
    a.free(block)
    leave.set()
    thread.join()
    assert a.memory_stats()["allocation.all.current"] == 0


def test_forked_child_forgets_the_allocators():
    before = allocator.get(7)
    child = os.fork()
    if not child:
        os._exit(0 if allocator.existing() == [] and before._lock.acquire(blocking=False) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert allocator.get(7) is before


# snapshots


def test_history():
    a = make()
    a.record_history(max_entries=5)
    block = a.malloc(1000, 4)
    a.record_stream(block, 5)
    a.free(block)
    a._runtime.complete(5)
    a.malloc(300, 4)
    trace = a.snapshot()["device_traces"][0]
    assert [e["action"] for e in trace] == ["segment_alloc", "alloc", "free_requested", "free_completed", "alloc"]
    assert trace[1]["size"] == 1000 and trace[1]["addr"] == block.address and trace[1]["stream"] == 4
    assert any(f["name"] == "test_history" for f in trace[1]["frames"])
    shown = a.snapshot()["segments"][0]["blocks"][0]
    assert shown["history"] == [{"addr": block.address, "real_size": 300, "frames": shown["frames"]}]
    with pytest.raises(NpuOutOfMemory):
        a.malloc(100 * MIB)
    last = a.snapshot()["device_traces"][0][-1]
    assert last["action"] == "oom" and last["device_free"] == 62 * MIB
    a.record_history(False)
    assert a.snapshot()["device_traces"] == [[]]


def test_snapshot_fields():
    a = make()
    a.malloc(1000)
    snapshot = a.snapshot()
    (segment,) = snapshot["segments"]
    assert set(segment) >= set(
        "device address total_size allocated_size active_size requested_size stream segment_pool_id segment_type is_expandable blocks".split()
    )
    assert set(segment["blocks"][0]) >= {"address", "size", "requested_size", "state", "frames"}
    assert (segment["allocated_size"], segment["active_size"], segment["requested_size"]) == (1536, 1536, 1000)
