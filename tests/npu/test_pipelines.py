"""Pipelines on an NPU: operators are recorded and run when they are needed, in order, and a fault of the device says which line it was."""

from __future__ import annotations

import ctypes
import inspect
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2._backends.npu import acl_loader
from mindtorch_v2._backends.npu.runtime import NpuError


def test_operators_wait_until_they_are_needed() -> None:
    a, b = torch.tensor([1.0, 2.0], device="npu"), torch.tensor([3.0, 4.0], device="npu")
    with torch.pipeline():
        other = a * b
        t = torch.relu(a + b)
        assert t._pending and t.device.type == "npu" and t.shape == (2,) and t.stride() == (1,)
        assert t.tolist() == [4.0, 6.0]
        assert not t._pending and other._pending
        host = other.to("cpu")
        assert not other._pending and host.tolist() == [3.0, 8.0]
    assert (t + other).tolist() == [7.0, 14.0]


def test_writes_and_views_keep_their_order() -> None:
    with torch.pipeline():
        t = torch.zeros(4, device="npu")
        before = t + 1
        t[1:3].add_(5)
        after = t * 2
        t.mul_(10)
        out = torch.empty(4, device="npu")
        torch.add(t, after, out=out)
        t[0] = 7
    assert before.tolist() == [1.0] * 4
    assert after.tolist() == [0.0, 10.0, 10.0, 0.0]
    assert t.tolist() == [7.0, 50.0, 50.0, 0.0]
    assert out.tolist() == [0.0, 60.0, 60.0, 0.0]


def test_memory_from_outside_is_written_after_its_readers() -> None:
    t = torch.ones(3, device="npu")
    view = t[1:]
    with torch.pipeline():
        early = view * 2
        t.add_(1)
        late = view * 2
    assert (early.tolist(), late.tolist(), t.tolist()) == ([2.0, 2.0], [4.0, 4.0], [2.0, 2.0, 2.0])


def test_random_numbers_come_in_the_order_of_the_program() -> None:
    def program() -> list:
        torch.manual_seed(4)
        return [torch.rand(3, device="npu"), torch.randn(2, device="npu"), torch.rand(3, device="npu")]

    eager = [t.tolist() for t in program()]
    with torch.pipeline():
        recorded = program()
        assert recorded[2].tolist() == eager[2]
    assert [t.tolist() for t in recorded] == eager


def test_a_training_step_is_that_of_eager_calls() -> None:
    def trained(pipeline: bool) -> list:
        torch.manual_seed(2)
        model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 2)).to("npu")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        inputs, targets = torch.randn(8, 4).to("npu"), torch.randint(0, 2, (8,)).to("npu")

        def step() -> Any:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
            return loss

        losses = []
        for _ in range(3):
            if pipeline:
                with torch.pipeline():
                    losses.append(step())
            else:
                losses.append(step())
        return [loss.item() for loss in losses] + [p.tolist() for p in model.state_dict().values()]

    assert trained(True) == trained(False)


@pytest.mark.skipif(not acl_loader.emulated(), reason="only the emulator fails on request")
def test_a_fault_says_where_the_operator_was_recorded() -> None:
    fault = acl_loader.load().own("emFault", None, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)
    clear = acl_loader.load().own("emClearFaults", None)
    a = torch.ones(3, device="npu")
    try:
        with torch.pipeline():
            bad = a + 1
            line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
            dependant = bad * 2
            fault(b"phase1:aclnnAdds", 1, 0)
            with pytest.raises(NpuError) as caught:
                dependant.tolist()
            independent = a * 3
    finally:
        clear()
    assert f"recorded at {__file__}:{line} in test_a_fault_says" in str(caught.value)
    assert "aten::add.Tensor(self [3] torch.float32" in str(caught.value)
    assert independent.tolist() == [3.0, 3.0, 3.0]
    with pytest.raises(NpuError):
        bad.tolist()
