"""What surrounds operators on an NPU: pinned memory and copies that are not waited for, peers, deterministic kernels, interrupts."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import acl_loader, runtime, transfers
from mindtorch_v2._backends.npu.errors import NpuError

emulated = pytest.mark.skipif(not acl_loader.emulated(), reason="only the emulator can be asked, and fails on request")


def fault(what: str, count: int = 1, value: int = 0) -> None:
    emulator = acl_loader.load().own("emFault", None, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)
    emulator(what.encode(), count, value)


def live(what: str) -> int:
    return acl_loader.load().own("emLive", ctypes.c_int64, ctypes.c_char_p)(what.encode())


@pytest.fixture
def no_faults() -> Iterator[None]:
    yield
    acl_loader.load().own("emClearFaults", None)()


def deterministic() -> int:
    found = runtime.get_runtime().ffi.new("int64_t *")
    runtime.get_runtime().call("aclrtGetSysParamOpt", 0, found)
    return int(found[0])


def test_deterministic_algorithms_reach_cann() -> None:
    torch.ones(1, device="npu")
    assert deterministic() == 0
    torch.use_deterministic_algorithms(True)
    try:
        assert deterministic() == 1
    finally:
        torch.use_deterministic_algorithms(False)
    assert deterministic() == 0


def test_factories_make_pinned_memory() -> None:
    like = torch.ones(2, 3)
    for made in (
        torch.empty(3, pin_memory=True),
        torch.zeros(2, 3, pin_memory=True),
        torch.full((2,), 7.0, pin_memory=True),
        torch.ones_like(like, pin_memory=True),
        like.new_empty((2,), pin_memory=True),
        torch.arange(4, pin_memory=True),
        torch.rand(3, pin_memory=True),
        torch.tensor([1.0], pin_memory=True),
        torch.empty_strided((2, 3), (1, 2), pin_memory=True),
    ):
        assert made.is_pinned()
    assert torch.arange(4, pin_memory=True).tolist() == [0, 1, 2, 3]
    assert torch.zeros(3, pin_memory=True, requires_grad=True).requires_grad
    assert not torch.empty(3, pin_memory=False).is_pinned()
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        torch.empty(3, device="npu", pin_memory=True)


@emulated
def test_copies_to_pinned_memory_are_not_waited_for(no_faults) -> None:
    x = torch.ones(64, device="npu")
    target = torch.zeros(64, pin_memory=True)
    target.copy_(x * 2, non_blocking=True)  # what is imported and made once
    (x * 2).to("cpu", non_blocking=True)
    torch.npu.synchronize()
    fault("slow:aclnnMuls", 1, 300_000)
    begun = time.perf_counter()
    y = x * 3
    assert target.copy_(y, non_blocking=True) is target
    fetched = y.to("cpu", non_blocking=True)
    spent = time.perf_counter() - begun
    assert spent < 0.2 and fetched.is_pinned()
    torch.npu.synchronize()
    assert target.tolist() == [3.0] * 64 == fetched.tolist()
    # Where they cannot be queued they are waited for: pageable memory, another dtype, a strided target.
    fault("slow:aclnnMuls", 1, 100_000)
    assert torch.zeros(64).copy_(x * 4, non_blocking=True).tolist() == [4.0] * 64
    assert torch.zeros(64, dtype=torch.float64, pin_memory=True).copy_(x * 5, non_blocking=True).tolist() == [5.0] * 64
    assert torch.zeros(128, pin_memory=True)[::2].copy_(x * 6, non_blocking=True).tolist() == [6.0] * 64


def test_transposed_and_overwritten_sources_arrive_whole() -> None:
    x = torch.arange(12.0, device="npu").reshape(3, 4)
    there = x.t().to("cpu", non_blocking=True)
    x.zero_()  # behind the copy on the stream
    torch.npu.synchronize()
    assert there.tolist() == torch.arange(12.0).reshape(3, 4).t().tolist()
    moved = torch.arange(4.0, pin_memory=True).to("npu", non_blocking=True)
    assert moved.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_gradients_pass_copies_that_are_not_waited_for() -> None:
    x = torch.ones(3, device="npu", requires_grad=True)
    y = (x * 2).to("cpu", non_blocking=True)
    torch.npu.synchronize()
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2.0] * 3 and x.grad.device.type == "npu"


@emulated
@pytest.mark.skipif(torch.npu.device_count() < 2, reason="there is one device")
def test_peers_are_opened_both_ways(monkeypatch) -> None:
    monkeypatch.setattr(transfers, "_peers", {})
    x = torch.arange(5.0, device="npu:0")
    assert x.to("npu:1").tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    status = acl_loader.load().own(
        "aclrtDevicePeerAccessStatus", ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p
    )
    found = ctypes.c_int32()
    for device, peer in ((0, 1), (1, 0)):
        assert status(device, peer, ctypes.byref(found)) == 0 and found.value == 1
    assert x.to("npu:1").to("npu:0").tolist() == x.tolist()


@pytest.mark.skipif(torch.npu.device_count() < 2, reason="there is one device")
def test_devices_that_do_not_reach_each_other_copy_through_the_host(monkeypatch) -> None:
    monkeypatch.setattr(transfers, "_peers", {})

    def refused(*args: object) -> None:
        raise NpuError("aclrtDeviceEnablePeerAccess failed", code=107000)

    monkeypatch.setattr(runtime.get_runtime(), "enable_peer_access", refused)
    x = torch.arange(5.0, device="npu:0")
    with pytest.warns(UserWarning, match="do not reach each other's memory, and copies go through the host"):
        assert x.to("npu:1").tolist() == x.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x.to("npu:1").to("npu:0").tolist() == x.tolist()


@pytest.mark.parametrize("how", ["held", "in a cycle"])
def test_pinned_memory_that_lives_to_the_end_is_no_leak(how: str) -> None:
    code = (
        "import mindtorch_v2 as torch\n"
        "class Holder: pass\n"
        "holder = Holder()\n"
        "holder.pinned = torch.ones(3).pin_memory()\n"
        "holder.near = holder.pinned.to('npu', non_blocking=True)\n"
        "holder.itself = holder\n"
        "import atexit; atexit.register(print, holder.pinned.tolist()) if HELD else None\n"
    ).replace("HELD", str(how == "held"))
    code += "" if how == "held" else "del holder\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stderr == "", done.stderr
