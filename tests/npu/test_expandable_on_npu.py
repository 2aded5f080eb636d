"""Segments that grow, by the driver's addresses and memory: programs in processes of their own, which PYTORCH_NPU_ALLOC_CONF tells to."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mindtorch_v2._backends.npu import acl_loader

pytestmark = pytest.mark.skipif(not acl_loader.emulated(), reason="the emulator counts what is mapped")

START = """
import ctypes
import warnings
import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import acl_loader
def live(what):
    return acl_loader.load().own("emLive", ctypes.c_int64, ctypes.c_char_p)(what)
"""


def run(program: str, **env: str) -> list[str]:
    env = os.environ | {"PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True"} | env
    done = subprocess.run([sys.executable, "-c", START + program], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_tensors_lie_across_granules_and_the_memory_goes_back() -> None:
    assert run("""
parts = [torch.full((300, 1000), float(i), device="npu") for i in range(40)]
joined = torch.cat(parts)
print(joined.sum().item() == 300000 * sum(range(40)), torch.equal(joined[-300:].cpu(), parts[-1].cpu()))
print(torch.npu.memory_reserved() == live(b"device_bytes") == 102 << 20, live(b"physical") == 6)
del parts[::2]
torch.npu.empty_cache()
print(torch.equal(joined[300:600].cpu(), parts[0].cpu()), len(torch.npu.memory_snapshot()["segments"]) >= 1)
del parts, joined
torch.npu.empty_cache()
print(torch.npu.memory_reserved(), live(b"device_bytes"), live(b"physical"))
""") == ["True True", "True True", "True True", "0 0 0"]  # fmt: skip


def test_training_is_the_same() -> None:
    program = """
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8)).to("npu")
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(5):
    loss = model(torch.randn(32, 64).to("npu")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item())
"""
    assert run(program) == run(program, PYTORCH_NPU_ALLOC_CONF="")


def test_out_of_memory() -> None:
    assert run("""
held = torch.empty(150 << 20, dtype=torch.uint8, device="npu")
try:
    torch.empty(100 << 20, dtype=torch.uint8, device="npu")
except torch.OutOfMemoryError as error:
    print("out of memory" in str(error), torch.npu.memory_reserved() == live(b"device_bytes") == 160 << 20)
del held
print(torch.ones(180 << 20, dtype=torch.uint8, device="npu")[-1].item())
""", MINDTORCH_NPU_EMULATOR_MEMORY=str(200 << 20)) == ["True True", "1"]  # fmt: skip


def test_a_driver_without_it_is_said_once() -> None:
    assert run("""
acl_loader.load().own("emFault", None, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)(b"reserve", 100, 0)
with warnings.catch_warnings(record=True) as given:
    warnings.simplefilter("always")
    x = torch.ones(3, device="npu") + 1
    y = torch.ones(30 << 20, device="npu")
print([str(w.message).split(":")[2].split(",")[0] for w in given], x.tolist(), live(b"physical"))
print(torch.npu.memory_snapshot()["segments"][0]["is_expandable"])
""") == ["[' this driver has no virtual memory'] [2.0, 2.0, 2.0] 0", "False"]  # fmt: skip
