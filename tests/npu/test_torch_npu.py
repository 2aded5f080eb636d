"""Programs written for torch_npu: its names, and what training loops end with, on an NPU and on the CPU."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mindtorch_v2 as torch

PROGRAMS = Path(__file__).parent / "torch_npu_programs.py"
NEEDS = {"by_hand": (), "accelerated": ("accelerate",), "trainer": ("accelerate", "transformers")}
CUDA_PROGRAM = Path(__file__).parent / "cuda_program.py"
AS_ON_CUDA = """
import runpy, sys
import torch_npu
from torch_npu.contrib import transfer_to_npu
runpy.run_path(sys.argv[1], run_name="__main__")
"""
TRANSFERRED = """
import pathlib, tempfile, warnings
import torch
before = torch.cuda
assert not before.is_available()
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    import torch_npu.contrib.transfer_to_npu
    from torch_npu.contrib import transfer_to_npu
assert [warning.category for warning in said] == [ImportWarning]
import torch.cuda.amp as amp
from torch.cuda import memory, random, streams
assert torch.cuda is torch.npu and amp is torch.npu.amp and memory is torch.npu.memory and random is torch.npu.random
assert torch.cuda.CUDAGraph is torch.npu.NPUGraph and torch.cuda.DoubleTensor is torch.npu.FloatTensor
given = torch.device("cuda:0")
assert given.type == "cuda" and torch.ones(2, device=given).device == torch.device("npu:0")  # as torch_npu has it
assert torch.nn.Linear(2, 2, device="cuda").weight.device == torch.nn.Linear(2, 2).to("cuda").weight.device == torch.device("npu:0")
assert torch.nn.Linear(2, 2).cuda(0).weight.is_cuda and not torch.ones(1).is_cuda and torch.ones(1).cuda("cuda:0").is_npu
assert torch.amp.GradScaler().is_enabled() and torch.amp.GradScaler("cuda").is_enabled() and torch.cuda.amp.GradScaler().is_enabled()
assert torch.get_device_module("cuda") is torch.npu and torch.ones(1).untyped_storage().cuda().device.type == "npu"
with torch.autocast("cuda"):
    assert torch.mm(*[torch.ones(2, 2, device="cuda")] * 2).dtype is torch.float16 and torch.is_autocast_enabled("cuda")
with torch.random.fork_rng(devices=[0], device_type="cuda"):
    torch.cuda.manual_seed(3)
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "x.pt")
    torch.save(torch.ones(2, device="cuda"), path)
    assert torch.load(path, map_location="cuda").is_cuda and torch.load(path, map_location=given).is_cuda
    assert torch.serialization.default_restore_location(torch.ones(1).untyped_storage(), "cuda:0").device.type == "npu"
from mindtorch_v2.distributed import distributed_c10d as c10d
assert c10d.Backend("nccl") == "hccl" and str(c10d.BackendConfig("cpu:gloo,cuda:nccl")) == "cpu:gloo,npu:hccl"
assert c10d.get_default_backend_for_device("cuda") == "hccl" and torch.distributed.is_nccl_available()
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]):
    torch.ones(2, device="cuda") + 1
transfer_to_npu.end()
assert torch.cuda is not torch.npu and not torch.cuda.is_available() and not torch.ones(1, device="npu").is_cuda
print("TRANSFERRED")
"""
NAMES = """
import importlib.metadata, importlib.util
import torch, torch_npu, torch_npu.npu.amp, torch_npu.profiler
import torch_npu.npu.memory as memory
from torch_npu.optim import NpuFusedAdamW
assert torch_npu.npu is torch.npu and memory is torch.npu.memory and torch_npu.profiler.record_function is torch.profiler.record_function
assert torch_npu.__version__ == torch.__version__ == importlib.metadata.version("torch_npu")
assert NpuFusedAdamW.__module__ == "torch_npu.optim" and issubclass(NpuFusedAdamW, torch.optim.AdamW)
assert importlib.util.find_spec("torch_npu.no_such_module") is None and not hasattr(torch_npu, "npu_no_such_operator")
for made in (torch.Stream(device="npu"), torch.Stream(0), torch.Stream(), torch.npu.Stream()):
    assert isinstance(made, torch.Stream) and isinstance(made, torch.npu.Stream) and made.device == torch.device("npu:0")
for made in (torch.Event(device="npu"), torch.Event(), torch.npu.Event()):
    assert isinstance(made, torch.Event) and isinstance(made, torch.npu.Event)
assert torch.get_device_module("npu") is torch.get_device_module() is torch.npu
assert torch._C._get_accelerator() == torch.device("npu")
print("ALL THERE")
"""


ROOT = Path(__file__).resolve().parent.parent.parent
LIBRARIES = ROOT / ".venv" / "ecosystem" / "bin" / "python"
"""An interpreter that has transformers and accelerate, where `make test-ecosystem` has made one."""


def interpreter(*needed: str) -> str:
    """An interpreter with packages: this one, or that of the tests with libraries."""
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing and not LIBRARIES.exists():
        pytest.skip(f"{', '.join(missing)}: not installed here, nor is there {LIBRARIES.relative_to(ROOT)}")
    return str(LIBRARIES) if missing else sys.executable


def run(*arguments: str, python: str = sys.executable, **more: str) -> str:
    paths = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": paths, **more}
    command = [python, "-m", "mindtorch_v2", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def numbers(printed: str) -> list[float]:
    return json.loads(next(s for s in printed.splitlines() if s.startswith("NUMBERS ")).removeprefix("NUMBERS "))


def test_names(tmp_path: Path) -> None:
    program = tmp_path / "names.py"
    program.write_text(NAMES)
    assert run(str(program)) == "ALL THERE\n"


def test_a_program_for_cuda_runs_unchanged(tmp_path: Path) -> None:
    start = tmp_path / "start.py"
    start.write_text(AS_ON_CUDA)
    found = [numbers(run(str(CUDA_PROGRAM))), numbers(run(str(start), str(CUDA_PROGRAM)))]
    assert len(found[0]) > 200
    np.testing.assert_allclose(found[1], found[0], rtol=2e-5, atol=2e-5)


def test_npus_stand_for_cuda(tmp_path: Path) -> None:
    program = tmp_path / "transferred.py"
    program.write_text(TRANSFERRED)
    assert run(str(program)) == "TRANSFERRED\n"


def test_contrib() -> None:
    import mindtorch_v2._torch_npu.contrib as contrib

    x, y = torch.randn(4, 3), torch.tensor([0, 2, 1, 2])
    loss = contrib.LabelSmoothingCrossEntropy(3, 0.3)
    torch.testing.assert_close(
        loss(x.npu(), y.npu()).cpu(), torch.nn.functional.cross_entropy(x, y, label_smoothing=0.45)
    )
    torch.testing.assert_close(contrib.matmul_transpose(x.npu(), x.npu()).cpu(), x @ x.T)
    torch.testing.assert_close(contrib.roll(x.npu(), 1, 0).cpu(), x.roll(1, 0))
    scores, mask = torch.randn(2, 2, 3, 3), torch.zeros(2, 1, 1, 3)
    found = contrib.fuse_add_softmax_dropout(True, torch.nn.Dropout(0.0), mask.npu(), scores.npu(), 16)
    torch.testing.assert_close(found.cpu(), torch.softmax(scores / 4 + mask, -1))
    a, b = torch.zeros(1, 2, 3), torch.ones(1, 2, 3)
    assert contrib.ChannelShuffle(4, split_shuffle=False)(a.npu(), b.npu())[0, :, 0].tolist() == [0.0, 1.0, 0.0, 1.0]
    assert contrib.Focus(1, 5, 3).npu()(torch.randn(2, 1, 4, 6).npu()).shape == (2, 5, 2, 3)
    assert contrib.BiLSTM(3, 2).npu()(torch.randn(5, 1, 3).npu()).shape == (5, 1, 4)
    kept = contrib.NpuDropPath(0.5)(torch.ones(64, 2).npu()).cpu()
    assert {0.0, 2.0} == set(kept.flatten().tolist()) and (kept[:, 0] == kept[:, 1]).all()
    torch.testing.assert_close(contrib.Mish()(x.npu()).cpu(), torch.nn.functional.mish(x))
    torch.testing.assert_close(contrib.Swish()(x.npu()).cpu(), torch.nn.functional.silu(x))
    prefetcher = contrib.Prefetcher([(x, y), (x + 1, y)])
    batches = []
    while (batch := prefetcher.next())[0] is not None:
        batches.append(batch)
    assert len(batches) == 2 and batches[1][0].device.type == "npu" and batches[1][0].cpu().equal(x + 1)
    for name in ("npu_iou", "DCNv2"):
        with pytest.raises(NotImplementedError, match=f"torch_npu.contrib.{name} can be imported but not called"):
            getattr(contrib, name)()
    with pytest.raises(AttributeError, match="has no attribute 'npu_no_such'"):
        contrib.npu_no_such  # noqa: B018 - the error is what is asked for


def test_settings_of_the_profiler() -> None:
    import mindtorch_v2._torch_npu.profiler as profiler

    level, metrics = profiler.ProfilerLevel.Level1, profiler.AiCMetrics.PipeUtilization
    with pytest.warns(UserWarning, match="aic_metrics: the chip's counters are not recorded"):
        config = profiler._ExperimentalConfig(profiler_level=level, aic_metrics=metrics)
    both = [profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU]
    assert level in profiler.supported_profiler_level() and metrics in profiler.supported_ai_core_metrics()
    assert set(both) == profiler.supported_activities() and profiler.supported_export_type() == {"text", "db"}
    with profiler.profile(activities=both, experimental_config=config) as recorded:
        torch.ones(2, device="npu") + 1
    assert "aten::add" in {event.key for event in recorded.key_averages()}
    with pytest.raises(ValueError, match="profiler_level 'Level9' is not known"):
        profiler._ExperimentalConfig(profiler_level="Level9")


@pytest.mark.parametrize("program", NEEDS)
def test_a_program_ends_as_on_the_cpu(program: str) -> None:
    python = interpreter(*NEEDS[program])
    found = []
    for device in ("cpu", "npu"):
        found.append(numbers(run(str(PROGRAMS), program, device, python=python)))
    assert len(found[0]) > 100
    np.testing.assert_allclose(found[1], found[0], rtol=2e-5, atol=2e-5)


def test_the_accelerator() -> None:
    accelerator = torch.accelerator
    assert accelerator.is_available() and accelerator.device_count() == torch.npu.device_count()
    assert accelerator.current_accelerator() == torch.device("npu")
    assert accelerator.current_device_index() == torch.npu.current_device()
    assert torch.device(0) == torch.device("npu:0") and torch.ones(2).to(0).device == torch.ones(2, device=0).device
    with pytest.raises(RuntimeError, match="must not be negative"):
        torch.device(-1)
    x = torch.ones(4, device="npu")
    held = accelerator.memory_allocated()
    assert held >= 512 and accelerator.memory_stats(0)["allocated_bytes.all.current"] == held
    assert accelerator.max_memory_reserved("npu:0") >= accelerator.memory_reserved() >= held
    free, total = accelerator.get_memory_info()
    assert 0 < free <= total
    stream = torch.npu.Stream()
    before = accelerator.current_stream()
    try:
        accelerator.set_stream(stream)
        assert accelerator.current_stream() == stream
    finally:
        accelerator.set_stream(before)
    accelerator.synchronize()
    with accelerator.device_index(torch.npu.device_count() - 1):
        assert accelerator.current_device_index() == torch.npu.device_count() - 1
    with accelerator.device_index(None):
        assert accelerator.current_device_index() == 0
    assert torch.float32 in accelerator.get_device_capability()["supported_dtypes"]
    for call, kind in (
        (lambda: accelerator.synchronize("cpu"), ValueError),
        (lambda: accelerator.set_device_index(None), ValueError),
        (lambda: accelerator.set_device_index("npu"), ValueError),
        (lambda: accelerator.set_device_index(99), RuntimeError),
        (lambda: accelerator.set_stream(3), TypeError),
        (accelerator.Graph, NotImplementedError),
    ):
        with pytest.raises(kind):
            call()
    del x


def test_former_names_of_tensors_and_storages() -> None:
    made = torch.npu.FloatTensor([1, 2])
    assert made.device.type == "npu" and made.type() == "torch.npu.FloatTensor" and made.tolist() == [1.0, 2.0]
    assert isinstance(made, torch.npu.FloatTensor) and not isinstance(made, torch.npu.HalfTensor)
    assert not isinstance(made.cpu(), torch.npu.FloatTensor)
    storage = torch.npu.FloatStorage([3, 4])
    assert storage.device == torch.device("npu:0") and isinstance(storage, torch.npu.FloatStorage)
    storage[1] = 7
    assert storage.tolist() == [3.0, 7.0] and storage.fill_(2).tolist() == [2.0, 2.0] and storage.get_device() == 0
    assert torch.UntypedStorage(3, device="npu").device.type == "npu"
    assert torch.UntypedStorage([1, 2], device="npu:0").tolist() == [1, 2]


def test_waits_are_told() -> None:
    x = torch.ones(2, device="npu")
    try:
        torch.npu.set_sync_debug_mode("warn")
        assert torch.npu.get_sync_debug_mode() == 1
        with pytest.warns(UserWarning, match="synchronizing NPU operation"):
            x.sum().item()
        torch.npu.set_sync_debug_mode(2)
        y = x + 1  # waits for nothing
        with pytest.raises(RuntimeError, match="synchronizing NPU operation"):
            y.cpu()
    finally:
        torch.npu.set_sync_debug_mode(0)
    assert y.tolist() == [2.0, 2.0]


def test_snapshots_are_lists_of_segments_too() -> None:
    x = torch.ones(100, device="npu")
    snapshot = torch.npu.memory_snapshot()
    assert "segments" in snapshot and snapshot["device"] == 0
    assert list(snapshot) == snapshot["segments"] and snapshot[0] is snapshot["segments"][0]
    assert sum(segment["total_size"] for segment in snapshot) == torch.npu.memory_reserved()
    del x


def test_options() -> None:
    npu = torch.npu
    assert npu.is_jit_compile_false() and npu.get_mm_bmm_format_nd() and npu.get_allocator_backend() == "native"
    assert npu.matmul.allow_hf32 is False and npu.conv.allow_hf32 is True
    try:
        npu.set_option({"ALLOW_MATMUL_HF32": "enable", "ALLOW_CONV_HF32": "disable"})
        assert npu.matmul.allow_hf32 is True and npu.conv.allow_hf32 is False
    finally:
        npu.matmul.allow_hf32, npu.conv.allow_hf32 = False, True
    npu.set_op_timeout_ms(1500)
    npu.host_empty_cache(), npu.empty_virt_addr_cache(), npu.ipc_collect()
    kept = torch.ones(4).pin_memory()
    npu.reset_peak_host_memory_stats()
    stats = npu.host_memory_stats_as_nested_dict()
    assert stats["allocated_bytes"]["peak"] == stats["allocated_bytes"]["current"] >= kept.nbytes
    npu.reset_accumulated_host_memory_stats()
    assert npu.host_memory_stats()["allocations.allocated"] == 0


def test_deterministic_algorithms_with_the_backward_pass() -> None:
    seen = []
    x = torch.ones(2, device="npu", requires_grad=True)
    y = torch.npu.enable_deterministic_with_backward(x * 2)
    seen.append(torch.are_deterministic_algorithms_enabled())
    z = torch.npu.disable_deterministic_with_backward(y * 3)
    seen.append(torch.are_deterministic_algorithms_enabled())
    y.register_hook(lambda grad: seen.append(torch.are_deterministic_algorithms_enabled()))
    z.sum().backward()
    assert seen == [True, False, True] and not torch.are_deterministic_algorithms_enabled()
    assert x.grad.tolist() == [6.0, 6.0]
    with pytest.warns(UserWarning, match=r"use_deterministic_algorithms\(True\)"):
        torch.npu.set_deterministic_level(1)
    with pytest.warns(UserWarning, match=r"use_deterministic_algorithms\(False\)"):
        torch.npu.set_deterministic_level(0)


def test_record_stream_wants_a_stream() -> None:
    x = torch.ones(2, device="npu")
    x.record_stream(torch.npu.current_stream())
    for wrong in (3, None, "npu"):
        with pytest.raises(TypeError, match=r"record_stream\(\): argument 's' \(position 1\) must be Stream, not"):
            x.record_stream(wrong)


@pytest.mark.parametrize("dynamic", [True, False])
def test_mixed_precision(dynamic: bool) -> None:
    from mindtorch_v2.npu import amp

    model = torch.nn.Linear(3, 2).to("npu")
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = amp.GradScaler(init_scale=8.0, growth_interval=1, dynamic=dynamic)
    with amp.autocast():
        out = model(torch.ones(4, 3, device="npu"))
        assert out.dtype is torch.float16 and torch.npu.is_autocast_enabled()
        assert torch.npu.get_autocast_dtype() is torch.float16
    before = model.weight.tolist()
    scaler.scale(out.float().square().mean()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert model.weight.tolist() != before and scaler.get_scale() == (16.0 if dynamic else 8.0)
    assert torch.npu.get_amp_supported_dtype() == [torch.float16, torch.bfloat16]
