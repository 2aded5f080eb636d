"""The public API of NPUs on a machine without one: what answers, what says what is missing, random states, pinned memory."""

from __future__ import annotations

import collections
import pickle
import threading

import numpy as np
import pytest
from _fresh import python, run

import mindtorch_v2 as torch
from mindtorch_v2 import npu
from mindtorch_v2._backends.npu import generator, pinned
from mindtorch_v2._backends.npu.generator import NpuGenerator
from mindtorch_v2.utils.data import DataLoader, TensorDataset
from mindtorch_v2.utils.data._utils.pin_memory import pin_memory

without_npu = pytest.mark.skipif(npu.is_available(), reason="describes a machine without an NPU")


def test_every_public_name_exists():
    assert [name for name in npu.__all__ if not hasattr(npu, name)] == []
    with pytest.raises(AttributeError, match="nonsense"):
        npu.nonsense  # noqa: B018


@without_npu
class TestWithoutNpu:
    def test_what_answers(self):
        assert npu.is_available() is False and npu.device_count() == 0
        assert npu.is_initialized() is False and npu._is_in_bad_fork() is False
        assert npu.is_bf16_supported() is False and npu.default_generators == ()
        assert npu.get_rng_state_all() == [] and npu.stream_priority_range() == (0, 0)

    def test_seeding_is_ignored(self):
        npu.manual_seed(1)
        npu.manual_seed_all(1)
        npu.seed()
        npu.seed_all()

    @pytest.mark.parametrize(
        "call",
        [
            npu.init,
            npu._lazy_init,
            npu.current_device,
            npu.synchronize,
            npu.current_stream,
            npu.default_stream,
            npu.Stream,
            npu.initial_seed,
            npu.get_rng_state,
            npu.get_device_name,
            npu.get_device_properties,
            npu.get_device_capability,
            npu.get_soc_name,
            lambda: npu.set_device(0),
            lambda: npu.set_rng_state(torch.zeros(16, dtype=torch.uint8)),
            lambda: npu.Event().record(),
            lambda: npu.enable_peer_access(1),
            lambda: npu.device(0).__enter__(),
        ],
    )
    def test_what_needs_a_device_says_what_is_missing(self, call):
        with pytest.raises(RuntimeError, match=r"(?s)libascendcl\.so.*Looked in.*set_env\.sh"):
            call()

    def test_nothing_happens_without_a_device_to_choose(self):
        npu.set_device(-1)
        with npu.device(None), npu.device(-1), npu.device_of(torch.zeros(1)), npu.stream(None):
            pass
        npu.set_stream(None)

    def test_peer_access_warns(self):
        with pytest.warns(UserWarning, match="can_device_access_peer"):
            assert npu.can_device_access_peer(0, 1) is False

    def test_an_event_that_was_never_recorded(self):
        event = npu.Event(enable_timing=True)
        assert event.query() is True and event.device is None and event.npu_event == 0
        event.synchronize()
        with pytest.raises(ValueError, match="enable_timing=True"):
            event.elapsed_time(npu.Event())
        with pytest.raises(ValueError, match="must be recorded"):
            event.elapsed_time(npu.Event(enable_timing=True))
        with pytest.raises(RuntimeError, match="between processes"):
            npu.Event(interprocess=True)


@pytest.mark.parametrize("device", ["cpu", "meta:0", torch.device("cuda:0")])
def test_a_device_of_another_type(device):
    with pytest.raises(ValueError, match="Expected a npu device, but got: "):
        npu.set_device(device)
    with pytest.raises(ValueError, match="Expected a npu device, but got: "):
        npu._get_allocator(device)


def test_a_device_of_another_class():
    with pytest.raises(TypeError, match="torch.device"):
        npu.set_device(1.5)


class TestGenerator:
    def test_numbers_are_given_out_once(self):
        g = NpuGenerator(0, 7)
        assert [g.next(count) for count in (1, 4, 5, 0, 8)] == [(7, 0), (7, 4), (7, 8), (7, 16), (7, 16)]
        assert g.get_offset() == 24

    def test_threads_share_a_stream(self):
        g = NpuGenerator(0, 7)
        seen: list[int] = []
        threads = [threading.Thread(target=lambda: seen.extend(g.next(4)[1] for _ in range(200))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(seen) == list(range(0, 3200, 4))

    def test_state_round_trips(self):
        g = NpuGenerator(1, 123)
        g.next(10)
        state = g.get_state()
        assert state.dtype is torch.uint8 and state.shape == (16,) and str(state.device) == "cpu"
        before = [g.next(3), g.next(9)]
        assert [g.set_state(state).next(3), g.next(9)] == before
        assert np.frombuffer(state.numpy().tobytes(), "<u8").tolist() == [123, 12]

    @pytest.mark.parametrize(("seed", "kept"), [(5, 5), (-1, 2**64 - 1), (2**64 - 1, 2**64 - 1)])
    def test_seeds(self, seed, kept):
        g = NpuGenerator(0, 0)
        g.next(4)
        assert g.manual_seed(seed) is g and g.initial_seed() == kept and g.get_offset() == 0

    def test_mistakes(self):
        g = NpuGenerator(0, 0)
        with pytest.raises(ValueError):
            g.manual_seed(2**64)
        with pytest.raises(RuntimeError, match="multiple of 4"):
            g.set_offset(3)
        with pytest.raises(RuntimeError, match="wrong size"):
            g.set_state(torch.zeros(9, dtype=torch.uint8))
        with pytest.raises(TypeError):
            g.set_state(torch.zeros(16))

    def test_a_clone_goes_its_own_way(self):
        g = NpuGenerator(0, 3)
        g.next(4)
        clone = g.clone_state()
        assert clone.next(4) == (3, 4) and g.get_offset() == 4

    def test_manual_seed_seeds_npus_too(self, monkeypatch):
        monkeypatch.setattr(generator, "_generators", {})
        state = torch.get_rng_state()
        try:
            old = generator.get(0)
            old.next(4)
            torch.manual_seed(77)
            assert old.initial_seed() == 77 and old.get_offset() == 0
            assert generator.get(1).initial_seed() == 77, "one that is made later begins with the same seed"
            assert generator.get(0) is old
        finally:
            torch.set_rng_state(state)


class TestPinnedMemory:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.int64, torch.complex64])
    def test_values_and_flags(self, dtype):
        t = torch.arange(6).reshape(2, 3).to(dtype)
        p = t.pin_memory()
        assert p.is_pinned() and not t.is_pinned() and p.dtype is dtype and torch.equal(p, t)
        assert p.data_ptr() != t.data_ptr() and p.pin_memory() is p
        assert p[1].is_pinned() and p.view(-1).is_pinned() and p.t().is_pinned() and not p.clone().is_pinned()
        assert p.untyped_storage().is_pinned() and p.storage().is_pinned()

    @pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1,), (2, 1, 3)])
    def test_shapes(self, shape):
        t = torch.full(shape, 2.0)
        p = t.pin_memory()
        assert p.shape == t.shape and p.is_pinned() and torch.equal(p, t) and p.stride() == t.stride()

    def test_strides_are_kept_where_they_leave_no_gaps(self):
        t = torch.arange(24.0).reshape(2, 3, 4)
        assert t.permute(2, 0, 1).pin_memory().stride() == (1, 12, 4)
        assert t[:, :, ::2].pin_memory().stride() == (6, 2, 1)
        assert torch.ones(3, 1).expand(3, 5).pin_memory().stride() == (5, 1)
        assert torch.equal(t[:, 1:, ::2].pin_memory(), t[:, 1:, ::2])

    def test_memory_lives_as_long_as_a_view(self):
        view = torch.arange(1000.0).pin_memory()[500:]
        filler = [torch.zeros(1000) for _ in range(50)]
        assert view[0].item() == 500.0 and len(filler) == 50

    def test_in_place_changes_stay_in_pinned_memory(self):
        p = torch.zeros(3).pin_memory()
        assert p.add_(1).is_pinned() and p.tolist() == [1.0, 1.0, 1.0]

    def test_storages(self):
        storage = torch.arange(4, dtype=torch.uint8).untyped_storage()
        copy = storage.pin_memory()
        assert copy.is_pinned() and not storage.is_pinned() and copy.tolist() == [0, 1, 2, 3]
        assert copy.pin_memory() is copy
        meta = torch.ones(2, device="meta")
        assert meta.is_pinned() is False and meta.untyped_storage().is_pinned() is False
        with pytest.raises(TypeError, match="only CPU memory can be pinned"):
            meta.untyped_storage().pin_memory()
        with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
            meta.pin_memory()

    def test_a_pinned_tensor_is_a_tensor(self):
        p = torch.arange(3.0).pin_memory()
        assert pickle.loads(pickle.dumps(p)).tolist() == [0.0, 1.0, 2.0]
        assert torch.tensor([1.0], pin_memory=True).is_pinned() and not torch.tensor([1.0]).is_pinned()
        assert npu.is_pinned(npu.pin_memory(torch.ones(2)))

    def test_roots(self):
        root = pinned.empty_root(10)
        assert root.shape == (10,) and root.dtype == np.uint8 and root.flags.writeable and pinned.is_pinned(root)

    def test_containers(self):
        Point = collections.namedtuple("Point", "x y")
        one = torch.ones(1)
        found = pin_memory({"a": one, "b": [one, "text"], "c": (one, 3), "d": Point(one, 2), "e": b"raw"})
        assert found["a"].is_pinned() and found["b"][0].is_pinned() and found["b"][1] == "text"
        assert isinstance(found["c"], list) and found["c"][0].is_pinned() and found["c"][1] == 3
        assert isinstance(found["d"], Point) and found["d"].x.is_pinned() and found["e"] == b"raw"

        class Own:
            def pin_memory(self):
                return "pinned"

        assert pin_memory([Own()]) == ["pinned"]

    @pytest.mark.parametrize("workers", [0, 2])
    def test_data_loader(self, workers):
        data = TensorDataset(torch.arange(6.0), torch.arange(6))
        for pinning in (True, False):
            loader = DataLoader(data, batch_size=4, pin_memory=pinning, num_workers=workers)
            batches = list(loader)
            assert [x.tolist() for x, _ in batches] == [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0]]
            assert all(part.is_pinned() is pinning for batch in batches for part in batch)


class TestUnderTheProxy:
    def test_torch_npu_answers(self):
        text = python(
            """
            import torch.npu as alias
            print(torch.npu.is_available(), alias is torch.npu, torch.get_device_module("npu") is alias)
            try:
                raise torch.OutOfMemoryError("full")
            except torch.cuda.OutOfMemoryError as error:
                print(error, isinstance(error, RuntimeError), torch.npu.OutOfMemoryError is torch.OutOfMemoryError)
            """
        )
        assert text.split("\n")[:2] == ["False True True", "full True True"]

    def test_collect_env(self):
        done = run(["-m", "mindtorch_v2", "collect-env"])
        assert done.returncode == 0, done.stderr
        for part in (
            "mindtorch_v2: ",
            "numpy: ",
            "cffi: ",
            "C extension: ",
            "driver: ",
            "looked in:",
            "emulator: ",
            "PYTORCH_NPU_ALLOC_CONF",
        ):
            assert part in done.stdout
