"""Norms by their formula, outside of pipelines: one function in place of six launches, and nothing that a program could tell it by but the launches."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import _late, acl_loader

counted = pytest.mark.skipif(not acl_loader.emulated(), reason="only the emulator counts launches")


def normal(x: torch.Tensor, weight: torch.Tensor | None = None) -> torch.Tensor:
    """As transformers writes it: what is between has a name while the rest is computed."""
    variance = x.pow(2).mean(-1, keepdim=True)
    x = x * torch.rsqrt(variance + 1e-6)
    return x if weight is None else weight * x.to(x.dtype)


def launched(call: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, int]:
    """What a call gives, and how many launches it made until that was on the host."""
    count = acl_loader.load().own("emLaunches", ctypes.c_int64, ctypes.c_char_p)
    before = count(b"")
    found = call().cpu()
    return found, count(b"") - before


@counted
@pytest.mark.parametrize("shape", [(8,), (3, 8), (2, 3, 1, 8)])
def test_a_norm_is_one_launch(shape: tuple[int, ...]) -> None:
    x, weight = torch.randn(shape), torch.randn(8)
    there, scale = x.to("npu"), weight.to("npu")
    for _ in range(3):  # the later ones have plans, if any
        found, launches = launched(lambda: normal(there, scale))
        torch.testing.assert_close(found, normal(x, weight))
        assert launches == 1
        found, launches = launched(lambda: scale * (torch.rsqrt(torch.mean(there**2, [-1], True) + 1e-6) * there))
        torch.testing.assert_close(found, normal(x, weight))
        assert launches == 1
        found, launches = launched(lambda: normal(there))
        torch.testing.assert_close(found, normal(x))
        assert launches == 2  # a weight of ones
    assert not _late.alive


@counted
@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_a_norm_in_half_types_is_computed_in_float32(kind: torch.dtype) -> None:
    def program(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        given, x = x.dtype, x.to(torch.float32)
        variance = x.pow(2).mean(-1, keepdim=True)
        return weight * (x * torch.rsqrt(variance + 1e-6)).to(given)

    x, weight = torch.randn(3, 8).to(kind), torch.randn(8).to(kind)
    there, scale = x.to("npu"), weight.to("npu")
    for _ in range(3):
        found, launches = launched(lambda: program(there, scale))
        torch.testing.assert_close(found, program(x, weight))
        assert launches == 5  # two casts, a weight of ones, the norm, the product


def test_what_is_between_can_be_looked_at() -> None:
    x, weight = torch.randn(3, 8), torch.randn(8)

    def values(x: torch.Tensor, weight: torch.Tensor) -> list[torch.Tensor]:
        square = x.pow(2)
        mean = square.mean(-1, keepdim=True)
        total = mean + 1e-6
        root = torch.rsqrt(total)
        normal = x * root
        return [square, mean, total, root, normal, weight * normal, square[1:, ::2], mean.expand(3, 8), root.T]

    wanted = values(x, weight)
    for order in (range(len(wanted)), reversed(range(len(wanted)))):
        found = values(x.to("npu"), weight.to("npu"))
        for i in order:
            torch.testing.assert_close(found[i].cpu(), wanted[i])
            assert found[i].stride() == wanted[i].stride()
    assert values(x.to("npu"), weight.to("npu"))[0].data_ptr() != 0


WRITES: dict[str, Callable[[torch.Tensor], object]] = {
    "in place": lambda x: x.add_(1),
    "a part": lambda x: x[:1].zero_(),
    "out": lambda x: torch.mul(x, 3, out=x),
    "copy": lambda x: x.copy_(torch.ones(3, 8)),
    "copy on the device": lambda x: x.copy_(torch.ones(3, 8, device="npu")),
    "storage": lambda x: x.untyped_storage().fill_(0),
    "item": lambda x: x.__setitem__((0, 0), 7.0),
    "random": lambda x: x.normal_(),
    "list": lambda x: torch._foreach_add_([x], 1.0),
    "data": lambda x: setattr(x, "data", torch.zeros(2, 2, device="npu")),
    "transpose": lambda x: x.t_(),
    "another thread": lambda x: run_in_thread(lambda: x.add_(1)),
}


def run_in_thread(call: Callable[[], object]) -> None:
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


@pytest.mark.parametrize("way", WRITES)
@pytest.mark.parametrize("steps", range(5))
def test_operands_are_read_as_they_were(way: str, steps: int) -> None:
    x = torch.randn(3, 8)
    for _ in range(3):
        there, here = x.to("npu"), x.clone()
        made = wanted = None
        for tensor in (there, here):
            value = tensor.pow(2)
            if steps > 0:
                value = value.mean(-1, keepdim=True)
            if steps > 1:
                value = value + 1e-6
            if steps > 2:
                value = torch.rsqrt(value)
            if steps > 3:
                value = tensor * value
            made, wanted = (value, None) if tensor is there else (made, value)
        WRITES[way](there)
        torch.testing.assert_close(made.cpu(), wanted)


def test_a_product_with_what_was_written_since_is_one_of_new_elements() -> None:
    x = torch.randn(3, 8)
    there = x.to("npu")
    for tensor in (there, x):
        root = torch.rsqrt(tensor.pow(2).mean(-1, keepdim=True) + 1e-6)
        tensor.mul_(2)
        tensor.add_(tensor * root)
    torch.testing.assert_close(there.cpu(), x)


def test_nothing_is_left_where_gradients_are_asked_for() -> None:
    x, weight = torch.randn(3, 8), torch.randn(8)
    there, scale = x.to("npu").requires_grad_(), weight.to("npu").requires_grad_()
    x.requires_grad_(), weight.requires_grad_()
    for _ in range(4):
        normal(there, scale).square().sum().backward()
        normal(x, weight).square().sum().backward()
    assert not _late.alive
    torch.testing.assert_close(there.grad.cpu(), x.grad, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(scale.grad.cpu(), weight.grad, rtol=1e-4, atol=1e-5)
    # A weight that learns, over a norm that was left for later.
    given = torch.randn(3, 8)
    scale.grad = weight.grad = None
    normal(given.to("npu"), scale).sum().backward()
    normal(given, weight).sum().backward()
    torch.testing.assert_close(scale.grad.cpu(), weight.grad)


def test_streams_events_waits_and_figures_find_it_done() -> None:
    x = torch.randn(3, 8)
    there, side = x.to("npu"), torch.npu.Stream()
    for ask in (
        torch.npu.synchronize,
        torch.npu.memory_allocated,
        lambda: torch.npu.Event().record(),
        lambda: torch.npu.current_stream().query(),
        lambda: torch.npu.set_stream(torch.npu.current_stream()),
    ):
        value = there.pow(2)
        assert len(_late.alive) == 1
        ask()
        assert not _late.alive
        torch.testing.assert_close(value.cpu(), x.pow(2))
    del value
    before = torch.npu.memory_allocated()
    value = there.pow(2)
    assert torch.npu.memory_allocated() == before + 512
    with torch.npu.stream(side):
        late = there.pow(2)
        side.synchronize()
        late = there.pow(2)
    torch.testing.assert_close((value + late).cpu(), 2 * x.pow(2))


def test_what_nobody_asks_for_is_never_launched() -> None:
    there = torch.randn(3, 8).to("npu")
    for _ in range(3):
        there.pow(2).mean(-1, keepdim=True)
        assert not _late.alive


OTHERS: list[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = [
    lambda a, b: b * torch.rsqrt(a.pow(2).mean(-1, keepdim=True) + 1e-6),  # another x
    lambda a, b: a * torch.rsqrt(a.pow(2).mean(0, keepdim=True) + 1e-6),
    lambda a, b: a * torch.rsqrt(a.pow(2).mean(-1).unsqueeze(-1) + 1e-6),
    lambda a, b: a * torch.rsqrt(torch.add(a.pow(2).mean(-1, keepdim=True), 1.5, alpha=2)),
    lambda a, b: a * torch.rsqrt(a.pow(2).mean(-1, keepdim=True) + 1),
    lambda a, b: b * (a * torch.rsqrt(a.pow(2).mean(-1, keepdim=True) + 1e-6)),  # a weight for each element
    lambda a, b: 3 * (a * torch.rsqrt(a.pow(2).mean(-1, keepdim=True) + 1e-6)),
    lambda a, b: a.T * torch.rsqrt(a.T.pow(2).mean(-1, keepdim=True) + 1e-6),
    lambda a, b: a.pow(2).mean(-1, keepdim=True, dtype=torch.float32) + 1e-6,
    lambda a, b: a.pow(2).sum(-1) + a.pow(3).mean(-1),
    lambda a, b: a[:0].pow(2).mean(-1, keepdim=True) + 1e-6,
    lambda a, b: torch.cat([a.pow(2), a.pow(2).mean(-1, keepdim=True)], -1),
]
"""Programs that are no norm, or another one than the function computes."""


@pytest.mark.parametrize("number", range(len(OTHERS)))
def test_other_compositions_are_as_before(number: int) -> None:
    x, other = torch.randn(3, 8), torch.randn(3, 8)
    for _ in range(3):
        found = OTHERS[number](x.to("npu"), other.to("npu"))
        torch.testing.assert_close(found.cpu(), OTHERS[number](x, other))


def test_a_refused_launch_is_reported_when_it_comes_and_can_be_repeated() -> None:
    there = torch.randn(3, 8).to("npu")
    value = there.pow(2)
    late = next(iter(_late.alive.values()))
    compute, late.compute = late.compute, refuse
    with pytest.raises(RuntimeError, match="no launch now"):
        value.cpu()
    with pytest.raises(RuntimeError, match="no launch now"):
        torch.npu.synchronize()
    late.compute = compute
    torch.testing.assert_close(value.cpu(), there.cpu().pow(2))
    assert not _late.alive


def refuse(late: object) -> object:
    raise RuntimeError("no launch now")


@counted
def test_a_refused_function_is_worked_around_by_the_operators() -> None:
    fault = acl_loader.load().own("emFault", None, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)
    x, weight = torch.randn(3, 8), torch.randn(8)
    there, scale = x.to("npu"), weight.to("npu")
    try:
        for given in ((there, scale), (there,)):
            fault(b"phase1:aclnnRmsNorm", 1, 0)
            found, launches = launched(lambda given=given: normal(*given))
            torch.testing.assert_close(found, normal(x, *(weight for _ in given[1:])))
            # The product without a weight by the function then; and by the operators, when the vector of ones was made.
            assert launches == (3 if given[1:] else 6)
    finally:
        acl_loader.load().own("emClearFaults", None)()
