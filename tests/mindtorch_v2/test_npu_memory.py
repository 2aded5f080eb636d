"""Public memory functions of `npu`, over an allocator with a runtime of the test's own."""

from __future__ import annotations

import pickle

import pytest
from npu_fakes import FakeRuntime

import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import _settings, memory
from mindtorch_v2._backends.npu._host_statistics import HostStatistics
from mindtorch_v2._backends.npu.allocator import NpuAllocator

MIB = 1 << 20


@pytest.fixture
def allocator(monkeypatch):
    made = NpuAllocator(0, FakeRuntime(), _settings.parse(""))
    monkeypatch.setattr(torch.npu, "_get_allocator", lambda device=None: made)
    monkeypatch.setattr(memory, "existing", lambda: [made])
    return made


def test_every_function_is_public():
    assert [name for name in memory.__all__ if getattr(torch.npu, name) is not getattr(memory, name)] == []


def test_counts(allocator):
    first, second = allocator.malloc(1000), allocator.malloc(3 * MIB)
    large = 3 * MIB + 512  # padded; merged with its neighbours later, so it is not asked for its size
    assert torch.npu.memory_allocated() == first.size + large
    assert torch.npu.memory_reserved() == 22 * MIB
    allocator.free(second)
    assert torch.npu.memory_allocated() == first.size
    assert torch.npu.max_memory_allocated() == first.size + large
    torch.npu.reset_peak_memory_stats()
    assert torch.npu.max_memory_allocated() == first.size
    torch.npu.empty_cache()
    assert torch.npu.memory_reserved() == 2 * MIB and torch.npu.max_memory_reserved() == 22 * MIB
    assert torch.npu.memory_stats()["allocated_bytes.large_pool.freed"] == large
    torch.npu.reset_accumulated_memory_stats()
    assert torch.npu.memory_stats()["allocated_bytes.large_pool.freed"] == 0
    assert torch.npu.memory_stats()["num_device_free"] == 0
    assert torch.npu.memory_stats_as_nested_dict()["allocated_bytes"]["all"]["current"] == first.size
    assert list(torch.npu.memory_stats()) == sorted(torch.npu.memory_stats())


def test_former_names(allocator):
    allocator.malloc(1)
    with pytest.warns(FutureWarning, match="memory_reserved"):
        assert torch.npu.memory_cached() == 2 * MIB
    with pytest.warns(FutureWarning, match="max_memory_reserved"):
        assert torch.npu.max_memory_cached() == 2 * MIB
    with pytest.warns(FutureWarning, match="all peak"):
        torch.npu.reset_max_memory_allocated()
    with pytest.warns(FutureWarning, match="all peak"):
        torch.npu.reset_max_memory_cached()


def test_fraction(allocator):
    assert torch.npu.get_per_process_memory_fraction() == 1.0
    torch.npu.set_per_process_memory_fraction(0.25)
    assert torch.npu.get_per_process_memory_fraction() == 0.25
    with pytest.raises(torch.npu.OutOfMemoryError, match="16.00 MiB"):
        allocator.malloc(17 * MIB)
    with pytest.raises(TypeError):
        torch.npu.set_per_process_memory_fraction(1)
    for wrong in (-0.1, 1.5, float("nan"), float("inf")):
        with pytest.raises(ValueError):
            torch.npu.set_per_process_memory_fraction(wrong)
    assert torch.npu.mem_get_info() == (64 * MIB, 64 * MIB)


def test_raw_memory(allocator):
    address = torch.npu.caching_allocator_alloc(1000, stream=7)
    assert allocator.snapshot()["segments"][0]["stream"] == 7
    assert torch.npu.memory_allocated() == 1536
    torch.npu.caching_allocator_delete(address)
    assert torch.npu.memory_allocated() == 0
    with pytest.raises(RuntimeError, match="no memory"):
        torch.npu.caching_allocator_delete(address)
    with pytest.raises(TypeError, match="Stream"):
        torch.npu.caching_allocator_alloc(1000, stream="fast")
    assert torch.npu.caching_allocator_alloc(0, stream=7) == 0
    torch.npu.caching_allocator_delete(0)


# --------------------------------------------------------------------------------------------------------------------- summary


def test_summary(allocator):
    held = [allocator.malloc(5 * MIB), allocator.malloc(1000)]
    lines = torch.npu.memory_summary().splitlines()
    assert {len(line) for line in lines} == {77}  # 75 columns between two bars
    assert len(lines) == 6 + 9 * 4 + 2 * 2 + 1
    assert len(torch.npu.memory_summary(abbreviated=True).splitlines()) == 6 + 9 * 2 + 2 * 2 + 1
    row = next(line for line in lines if "Allocated memory" in line)
    assert row == "| Allocated memory      |   5122 KiB |   5122 KiB |   5122 KiB |      0 B   |"
    row = next(line for line in lines if "Reserved memory" in line)
    assert [cell.strip() for cell in row.split("|")[2:6]] == ["22528 KiB", "22528 KiB", "22528 KiB", "0 B"]
    row = next(line for line in lines if "Allocations  " in line)
    assert row == "| Allocations           |       2    |       2    |       2    |       0    |"
    assert len(held) == 2


def test_summary_has_the_unit_of_the_whole_row():
    from mindtorch_v2._backends.npu._summary import summary

    stats = {"allocated_bytes.all.current": 3 << 30, "allocated_bytes.small_pool.current": 5 << 20}
    stats["allocation.all.current"] = 2_000_000
    stats["num_ooms"] = 3
    text = summary(stats, 1, False)
    assert "|   3072 MiB |" in text and "|      5 MiB |" in text and "|    2000 K  |" in text
    assert "NPU OOMs: 3 " in text and "device ID 1" in text


# -------------------------------------------------------------------------------------------------------------------- snapshots


def test_snapshot_file(allocator, tmp_path):
    memory._record_memory_history()
    allocator.malloc(1000)
    memory._dump_snapshot(str(tmp_path / "snapshot.pickle"))
    loaded = pickle.loads((tmp_path / "snapshot.pickle").read_bytes())
    assert loaded == torch.npu.memory_snapshot()
    assert [entry["action"] for entry in loaded["device_traces"][0]] == ["segment_alloc", "alloc"]
    memory._record_memory_history(None)
    assert torch.npu.memory_snapshot()["device_traces"] == [[]]
    with pytest.raises(ValueError, match="'some'"):
        memory._record_memory_history("some")


# --------------------------------------------------------------------------------------------------------------- pinned memory


def test_host_memory_stats():
    names = set(torch.npu.host_memory_stats())
    assert {"allocations.current", "allocated_bytes.peak", "active_bytes.freed", "active_requests.allocated"} <= names
    assert {"num_host_alloc", "num_host_free", "host_alloc_time.avg", "host_free_time.count"} <= names


def test_host_counts():
    stats = HostStatistics()
    assert stats.timed("host_alloc_time", lambda: 5) == 5
    stats.change(1, 4096)
    stats.change(1, 100)
    stats.change(-1, -4096)
    nested = stats.nested()
    assert nested["allocated_bytes"] == {"current": 100, "peak": 4196, "allocated": 4196, "freed": 4096}
    assert (nested["num_host_alloc"], nested["num_host_free"]) == (2, 1)
    assert nested["host_alloc_time"]["count"] == 1


def test_without_an_npu_all_of_it_answers(monkeypatch):
    monkeypatch.setattr(torch.npu, "_get_allocator", lambda device=None: NpuAllocator(0))
    assert torch.npu.memory_allocated() == torch.npu.max_memory_reserved() == 0
    assert torch.npu.memory_snapshot()["segments"] == []
    assert "Allocated memory" in torch.npu.memory_summary()
    torch.npu.reset_peak_memory_stats()
    torch.npu.empty_cache()
