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


def written_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))


def rotated(x: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def embedded(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    return x * cos + rotated(x) * sin


def launched(names: str, call: Any) -> tuple[Any, list[int]]:
    """What a call in a pipeline gives, and how many launches of each function it made."""
    count = acl_loader.load().own("emLaunches", ctypes.c_int64, ctypes.c_char_p)
    before = [count(name.encode()) for name in names.split()]
    with torch.pipeline():
        found = call()
    return found, [count(name.encode()) - earlier for name, earlier in zip(names.split(), before)]


@pytest.mark.skipif(not acl_loader.emulated(), reason="only the emulator counts launches")
def test_compositions_are_one_function() -> None:
    x, weight = torch.randn(2, 3, 8), torch.randn(8)
    near = x.npu(), weight.npu()
    names = "aclnnRmsNorm aclnnPowTensorScalar aclnnMul aclnnRotaryPositionEmbedding aclnnCat"
    found, counts = launched(names, lambda: written_norm(*near))
    assert counts == [1, 0, 0, 0, 0]
    torch.testing.assert_close(found.cpu(), written_norm(x, weight))
    found, counts = launched(names, lambda: near[0] * torch.rsqrt(torch.mean(near[0].pow(2), -1, True) + 1e-5))
    assert counts == [1, 0, 0, 0, 0]
    torch.testing.assert_close(found.cpu(), written_norm(x, torch.ones(8)))
    q, cos, sin = torch.randn(2, 3, 4, 8), torch.randn(2, 1, 3, 8), torch.randn(2, 1, 3, 8)
    near = tuple(t.npu() for t in (q, cos, sin))
    turned, counts = launched(names, lambda: embedded((near[0] * 2).transpose(1, 2), *near[1:]))
    assert counts == [0, 0, 0, 1, 0]
    expected = embedded((q * 2).transpose(1, 2), cos, sin)
    assert turned.stride() == expected.stride()
    torch.testing.assert_close(turned.cpu(), expected)


@pytest.mark.skipif(not acl_loader.emulated(), reason="only the emulator counts launches")
def test_compositions_that_somebody_sees_stay_as_they_are() -> None:
    x, weight = torch.randn(3, 8, device="npu"), torch.randn(8, device="npu")
    kept = []

    def with_a_part_kept() -> torch.Tensor:
        squares = x.pow(2)
        kept.append(squares)
        return weight * (x * torch.rsqrt(squares.mean(-1, keepdim=True) + 1e-5))

    def written_in_between() -> torch.Tensor:
        y = x.clone()
        factor = torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)
        y[0] = 0.0
        return weight * (y * factor)

    def in_halves() -> torch.Tensor:
        return written_norm(x.half(), weight.half())

    def with_a_history() -> torch.Tensor:
        return written_norm(x.detach().requires_grad_(), weight)

    def other_dimension() -> torch.Tensor:
        return weight * (x * torch.rsqrt(x.pow(2).mean(0, keepdim=True) + 1e-5))

    def twice_the_number() -> torch.Tensor:
        return weight * (x * torch.rsqrt(x.pow(3).mean(-1, keepdim=True).abs() + 1e-5))

    for call in (with_a_part_kept, written_in_between, in_halves, with_a_history, other_dimension, twice_the_number):
        expected = call()
        found, counts = launched("aclnnRmsNorm", call)
        assert counts == [0], call.__name__
        if call is with_a_part_kept:  # outside of pipelines it is one function all the same, which rounds once
            torch.testing.assert_close(found.cpu(), expected.cpu())
        else:
            assert torch.equal(found.cpu(), expected.cpu()), call.__name__
    assert torch.equal(kept[1].cpu(), x.cpu().square())


@pytest.mark.skipif(not acl_loader.emulated(), reason="only the emulator fails on request")
def test_a_fault_of_a_combined_function_is_worked_around_by_the_operators() -> None:
    fault = acl_loader.load().own("emFault", None, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)
    x, weight = torch.randn(3, 8), torch.randn(8)
    near = x.npu(), weight.npu()
    fault(b"phase1:aclnnRmsNorm", 1, 0)
    try:
        found, counts = launched("aclnnRmsNorm aclnnRsqrt", lambda: written_norm(*near))
    finally:
        acl_loader.load().own("emClearFaults", None)()
    assert counts == [0, 1]
    torch.testing.assert_close(found.cpu(), written_norm(x, weight))


def test_operands_go_with_their_last_reader() -> None:
    import gc
    import weakref

    gc.collect()
    gc.disable()
    try:
        for call in (torch.mean, torch.sum, torch.amax):
            x = torch.ones(3, 4, device="npu")
            seen = weakref.ref(x)
            call(x, -1)
            del x
            assert seen() is None, call
    finally:
        gc.enable()


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

    # Steps of eager optimizers go by functions of lists, which round once where operators round each.
    for recorded, eager in zip(trained(True), trained(False), strict=True):
        torch.testing.assert_close(torch.tensor(recorded), torch.tensor(eager))


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
