"""Faults of the device: each ends in an exception that names the operator, the next operation works, and nothing is left behind."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from devices import reset

import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import acl_loader, aclnn, plans, streams
from mindtorch_v2._backends.npu.runtime import NpuError
from mindtorch_v2._generated.npu.functions import aclnnAdd
from mindtorch_v2._pending import settled

pytestmark = pytest.mark.skipif(not acl_loader.emulated(), reason="only the emulator fails on request")
COUNTED = ("tensors", "scalars", "arrays", "lists", "executors", "events")


def emulator(name: str, result: type | None, *parameters: type):
    return acl_loader.load().own(name, result, *parameters)


def inject(what: str, count: int = 1, value: int = 0) -> None:
    emulator("emFault", None, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)(what.encode(), count, value)


def live(what: str) -> int:
    return emulator("emLive", ctypes.c_int64, ctypes.c_char_p)(what.encode())


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """No descriptor, executor, event, thread or block more than before, and the next operation works."""
    torch.ones(1, device="npu").add(1).item()  # what is made once: the stream, the first segment
    plans.forget()  # and the executors that they keep
    gc.collect()
    streams._sweep()  # what other tests have left to be destroyed
    before = {what: live(what) for what in (*COUNTED, "threads")}
    held = torch.npu.memory_allocated()
    yield
    emulator("emClearFaults", None)()
    assert (torch.ones(3, device="npu") + 1).tolist() == [2.0, 2.0, 2.0]
    plans.forget()
    gc.collect()
    streams._sweep()  # retired events go with the next one
    assert {what: live(what) for what in (*COUNTED, "threads")} == before
    assert torch.npu.memory_allocated() == held


def test_an_invalid_parameter_names_operator_shapes_and_code() -> None:
    a = torch.ones(2, 3, device="npu")
    inject("phase1:aclnnAdd")
    with pytest.raises(NpuError, match=r"add\.Tensor \(aclnnAdd\).*161002.*float32\[2, 3\]") as error:
        a + a
    assert error.value.code == 161002


@pytest.mark.parametrize("code", [161001, 361001, 561103])
def test_other_codes_of_the_first_phase(code: int) -> None:
    a = torch.ones(2, device="npu")
    inject("phase1:aclnnMul", 1, code)
    with pytest.raises(NpuError, match=rf"mul\.Tensor \(aclnnMul\).*{code}"):
        a * a


def test_a_failure_that_surfaces_at_synchronize() -> None:
    a = torch.ones(2, device="npu")
    inject("kernel:aclnnExp")
    late = a.exp()
    for _ in range(2):
        with pytest.raises(NpuError, match=r"507015.*(?s:.*)aclnnExp(?s:.*)keeps this failure until it is reset"):
            torch.npu.synchronize()
    reset()
    torch.npu.synchronize()
    del late
    assert a.exp().sum().item() == pytest.approx(2 * 2.718281828, rel=1e-5)


def test_a_failure_that_surfaces_at_a_read() -> None:
    a = torch.ones(2, device="npu")
    inject("kernel:aclnnSqrt")
    with pytest.raises(NpuError, match=r"aclnnSqrt"):
        a.sqrt().tolist()
    reset()


def test_no_memory() -> None:
    torch.npu.empty_cache()
    inject("malloc", 2)
    with pytest.raises(torch.OutOfMemoryError, match=r"(?s)Tried to allocate.*\(in zeros\)"):
        torch.zeros(1 << 22, device="npu")
    assert torch.zeros(1 << 22, device="npu").sum().item() == 0


def test_one_failing_allocation_is_tried_again() -> None:
    torch.npu.empty_cache()
    before = torch.npu.memory_stats()["num_alloc_retries"]
    inject("malloc", 1)
    assert torch.zeros(1 << 22, device="npu").sum().item() == 0
    assert torch.npu.memory_stats()["num_alloc_retries"] == before + 1


def test_a_workspace_of_nonsense() -> None:
    a = torch.ones(2, device="npu")
    inject("workspace:aclnnAdd", 1, 1 << 60)
    with pytest.raises(RuntimeError, match=r"add\.Tensor \(aclnnAdd\).*workspace of \d+ bytes"):
        a + a


def test_a_slow_kernel_is_waited_for() -> None:
    a = torch.ones(2, device="npu")
    inject("slow:aclnnAdd", 1, 200_000)
    made = a + a
    done = torch.npu.Event()
    done.record()
    assert not done.query()
    assert made.tolist() == [2.0, 2.0] and done.query()


def test_an_index_out_of_range_in_a_kernel() -> None:
    with pytest.raises(NpuError, match="aclnnIndexSelect|aclnnEmbedding|aclnnGather"):
        torch.nn.functional.embedding(torch.tensor([7], device="npu"), torch.ones(3, 2, device="npu")).tolist()
    reset()


def test_a_function_that_a_version_lacks() -> None:
    code = "import mindtorch_v2 as torch; x = torch.ones(2, dtype=torch.int64, device='npu'); x << x"
    environment = {**os.environ, "MINDTORCH_NPU_EMULATOR_CANN": "8.1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 1
    assert "aclnnLeftShiftGetWorkspaceSize is not in CANN 8.1" in done.stderr


def test_descriptors_go_when_an_argument_cannot_be_passed() -> None:
    a = torch.ones(2, device="npu")
    with pytest.raises((TypeError, ValueError)):
        aclnn.launch(aclnnAdd, settled(a), settled(a), "no number", settled(a))


def test_a_hundred_thousand_operations_leave_memory_flat() -> None:
    a = torch.ones(8, 8, device="npu")
    b = torch.ones(8, 8, device="npu")
    torch.npu.synchronize()
    reserved = None
    for step in range(10):
        for _ in range(5_000):
            a = (a + b) * 0.5
        torch.npu.synchronize()
        found = torch.npu.memory_reserved(), live("device_bytes"), _resident() if step > 1 else None
        if step == 2:
            reserved = found
    assert found[:2] == reserved[:2]
    assert found[2] - reserved[2] < 8, "MiB"
    assert a.tolist()[0][0] == pytest.approx(1.0)


def _resident() -> float:
    with open("/proc/self/statm") as text:
        return int(text.read().split()[1]) * 4096 / 2**20
