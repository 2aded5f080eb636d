"""Calls that have a plan: the same results and errors as without one, whatever changes between calls, and nothing left behind."""

from __future__ import annotations

import ctypes
import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import acl_loader, plans
from mindtorch_v2._dispatch import native

pytestmark = pytest.mark.skipif(
    not acl_loader.emulated() or native.extension is None, reason="the emulator counts, and plans are the extension's"
)


@pytest.fixture(autouse=True)
def fresh() -> None:
    plans.forget()


def live() -> list[int]:
    count = acl_loader.load().own("emLive", ctypes.c_int64, ctypes.c_char_p)
    return [count(what) for what in (b"tensors", b"scalars", b"arrays", b"lists", b"executors")]


def kept(name: str) -> int:
    return sum(1 for key, plan in plans._plans.items() if key[0].full_name == name and plan is not None)


def test_what_is_composed_gets_no_plan_when_there_were_too_many() -> None:
    x = torch.tensor([5.0, 7.0])
    a = x.npu()
    assert torch.equal(torch.diag_embed(a).cpu(), torch.diag_embed(x))
    plans._plans.clear()  # as when there are too many, while what was seen is still known
    for _ in range(4):  # zeros that are written to: their launch alone is no plan
        assert torch.equal(torch.diag_embed(a).cpu(), torch.diag_embed(x))


def test_the_third_call_has_a_plan_and_gives_the_same() -> None:
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    a, b = x.npu(), y.npu()
    for _ in range(4):
        assert torch.equal((a + b).cpu(), x + y)
        assert torch.equal(torch.sub(a, b, alpha=2).cpu(), torch.sub(x, y, alpha=2))
        torch.testing.assert_close((a @ b.T).cpu(), x @ y.T)
    assert kept("add.Tensor") == kept("sub.Tensor") == kept("matmul") == 1


def test_what_a_plan_depends_on() -> None:
    x = torch.arange(24.0)
    whole = x.npu()
    for _ in range(3):
        for offset, shape, stride in ((0, (2, 3), (3, 1)), (5, (2, 3), (3, 1)), (1, (2, 3), (1, 2)), (0, (6,), (1,))):
            view, same = whole.as_strided(shape, stride, offset), x.as_strided(shape, stride, offset)
            assert torch.equal((view + view).cpu(), same + same)
            assert torch.equal((view + 1).cpu(), same + 1) and torch.equal((view + 2).cpu(), same + 2)
            assert torch.equal((view + True).cpu(), same + True)
        other = whole.to(torch.float16)
        assert (other + whole).dtype is torch.float32 and torch.equal((other + whole).cpu(), x + x)


def test_one_tensor_twice_is_no_pattern_for_two() -> None:
    x, y = torch.tensor([1.0, -2.0, 3.0], device="npu"), torch.tensor([5.0, 7.0, -11.0], device="npu")
    for _ in range(3):
        assert (x * x).tolist() == [1.0, 4.0, 9.0]
    for _ in range(4):
        assert (x * y).tolist() == [5.0, -14.0, -33.0] and (y - x).tolist() == [4.0, 9.0, -14.0]
    assert (x * x).tolist() == [1.0, 4.0, 9.0]


def test_a_call_that_failed_is_no_pattern_for_others() -> None:
    x = torch.tensor([1.0, -2.0, 3.0], device="npu")
    inject = acl_loader.load().own("emFault", None, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)
    torch.sin(x)
    inject(b"phase1:aclnnSin", 1, 0)
    with pytest.raises(RuntimeError, match="aclnnSin"):
        torch.sin(x)
    torch.testing.assert_close(torch.cos(x).cpu(), torch.cos(x.cpu()))
    for _ in range(3):
        torch.testing.assert_close(torch.sin(x).cpu(), torch.sin(x.cpu()))
        assert torch.full_like(x, -0.0).mul(0.0).sign().tolist() == [0.0] * 3
        assert [str(v) for v in (x * 0.0).tolist()] == ["0.0", "-0.0", "0.0"]
        assert [str(v) for v in (x * -0.0).tolist()] == ["-0.0", "0.0", "-0.0"]


def test_gradients_and_modes_go_on() -> None:
    for _ in range(4):
        x = torch.ones(2, 2, device="npu", requires_grad=True)
        made = x * x
        made.sum().backward()
        assert x.grad.tolist() == [[2.0, 2.0]] * 2
        with torch.no_grad():
            assert not (x * x).requires_grad
        with torch.inference_mode():
            assert (x * x).is_inference()


def test_another_default_dtype_is_another_plan() -> None:
    x = torch.arange(1, 4).npu()
    for _ in range(3):
        assert (x / 2).dtype is torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        for _ in range(3):
            assert (x / 2).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert (x / 2).dtype is torch.float32


def test_other_streams_and_devices() -> None:
    x = torch.ones(4, device="npu:0")
    for _ in range(3):
        x + x
    side = torch.npu.Stream()
    side.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(side):
        made = x + x
        assert made.tolist() == [2.0] * 4
    if torch.npu.device_count() > 1:
        other = torch.ones(4, device="npu:1")
        for _ in range(4):
            found = other + other
            assert found.device.index == 1 and found.tolist() == [2.0] * 4
        assert torch.npu.current_device() == 0


def inject(what: bytes, value: int = 0) -> None:
    acl_loader.load().own("emFault", None, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)(what, 1, value)


def test_errors_name_the_operator_and_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDTORCH_NPU_REPEAT", "0")  # so that each launch has a first phase
    a = torch.ones(2, 3, device="npu")
    for _ in range(4):
        a + a
    before, held = live(), torch.npu.memory_allocated()
    inject(b"phase1:aclnnAdd")
    with pytest.raises(RuntimeError, match=r"add\.Tensor \(aclnnAdd\).*161002.*float32\[2, 3\]"):
        a + a
    inject(b"workspace:aclnnAdd", 1 << 60)
    with pytest.raises(RuntimeError, match=r"add\.Tensor \(aclnnAdd\).*workspace of \d+ bytes"):
        a + a
    assert live() == before and torch.npu.memory_allocated() == held
    assert (a + a).tolist() == [[2.0] * 3] * 2


def executors() -> int:
    return live()[4]


def test_a_plan_keeps_one_executor_and_lets_go_of_it() -> None:
    before = live()
    xs = [torch.full((2, 3), float(i), device="npu") for i in range(4)]
    for x in xs:
        (x + x).sum(1, keepdim=True)
    between = live()
    assert between[4] == before[4] + 2
    for x in xs * 3:
        assert torch.equal((x + x).sum(1, keepdim=True).cpu(), 6 * x.cpu()[:, :1])
    assert live() == between
    plans.forget()
    assert live() == before


def test_an_executor_is_only_repeated_for_tensors_that_begin_where_they_did() -> None:
    base = torch.arange(24.0, device="npu")
    windows = [base[0:8], base[8:16], base[16:24], torch.ones(8, device="npu"), base[0:8]]
    for _ in range(3):
        for x in windows:
            assert torch.equal(torch.exp(-x).cpu(), torch.exp(-x.cpu()))
    assert executors() >= 1


def test_a_repeated_launch_that_fails_is_reported_and_made_anew() -> None:
    a = torch.ones(2, 3, device="npu")
    for _ in range(4):
        a + a
    before, kept, held = live(), executors(), torch.npu.memory_allocated()
    inject(b"phase2:aclnnAdd")
    with pytest.raises(RuntimeError, match=r"add\.Tensor \(aclnnAdd\).*361001"):
        a + a
    assert executors() == kept - 1 and torch.npu.memory_allocated() == held
    assert (a + a).tolist() == [[2.0] * 3] * 2
    assert live() == before
    plans.forget()


def test_what_cannot_be_repeated_is_launched_as_ever() -> None:
    before = executors()
    a = torch.ones(2, 3, device="npu")
    a + a, a + a
    inject(b"repeat:aclnnAdd")
    for _ in range(5):
        assert (a + a).tolist() == [[2.0] * 3] * 2
    assert executors() == before and kept("add.Tensor") == 1


def test_a_result_may_be_released_while_others_are_made() -> None:
    made = [torch.full((256,), float(i), device="npu") for i in range(8)]
    for round_ in range(20):
        results = [x + x for x in made]
        kept_ones = results[round_ % 8 :: 3]
        del results
        assert [r[0].item() for r in kept_ones] == [2.0 * i for i in range(round_ % 8, 8, 3)]


def test_several_threads_share_plans() -> None:
    failures: list[Exception] = []

    def work(number: int) -> None:
        try:
            x = torch.full((4, 4), float(number), device="npu")
            for _ in range(200):
                assert (x + x).sum().item() == 32 * number
        except (AssertionError, RuntimeError) as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
