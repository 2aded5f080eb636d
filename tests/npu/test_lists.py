"""Operators of lists of tensors: one launch for a list, and what the operators give tensor by tensor."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import acl_loader, lists
from mindtorch_v2._generated import functions

CALLS: dict[str, Callable[[list, list, list], Any]] = {
    "add": lambda a, b, c: torch._foreach_add(a, b, alpha=-2),
    "add a number": lambda a, b, c: torch._foreach_add(a, 1.5),
    "sub": lambda a, b, c: torch._foreach_sub(a, b, alpha=2),
    "sub a number": lambda a, b, c: torch._foreach_sub(a, 3),
    "mul": lambda a, b, c: torch._foreach_mul(a, b),
    "mul by a number": lambda a, b, c: torch._foreach_mul(a, 0.3),
    "div": lambda a, b, c: torch._foreach_div(a, c),
    "div by a number": lambda a, b, c: torch._foreach_div(a, 3),
    "addcmul": lambda a, b, c: torch._foreach_addcmul(a, b, c, value=0.5),
    "addcdiv": lambda a, b, c: torch._foreach_addcdiv(a, b, c, value=-0.5),
    "lerp": lambda a, b, c: torch._foreach_lerp(a, b, 0.7),
    "maximum": lambda a, b, c: torch._foreach_maximum(a, b),
    "clamp_min": lambda a, b, c: torch._foreach_clamp_min(a, b),
    "norm": lambda a, b, c: torch._foreach_norm(a),
    "norm of another order": lambda a, b, c: torch._foreach_norm(a, float("inf")),
    "neg": lambda a, b, c: torch._foreach_neg(a),
    "abs": lambda a, b, c: torch._foreach_abs(a),
    "exp": lambda a, b, c: torch._foreach_exp(a),
    "sqrt": lambda a, b, c: torch._foreach_sqrt(c),
    "reciprocal": lambda a, b, c: torch._foreach_reciprocal(c),
    "add in place": lambda a, b, c: torch._foreach_add_(a, b, alpha=2),
    "mul in place": lambda a, b, c: torch._foreach_mul_(a, 0.5),
    "sqrt in place": lambda a, b, c: torch._foreach_sqrt_(c),
}


def launches() -> int:
    return acl_loader.load().own("emLaunches", ctypes.c_int64, ctypes.c_char_p)(b"")


def given(device: str, dtype: torch.dtype) -> list[list[torch.Tensor]]:
    generator = torch.Generator().manual_seed(7)
    shapes = ((3, 2), (5,), (), (1, 4, 2))
    made = [[torch.randn(s, generator=generator).to(dtype).to(device) for s in shapes] for _ in range(2)]
    return [*made, [x.abs() + 0.5 for x in made[1]]]


@pytest.mark.skipif(not acl_loader.emulated(), reason="only the emulator counts launches")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_a_list_is_one_launch(name: str, dtype: torch.dtype) -> None:
    near, far = given("npu", dtype), given("cpu", dtype)
    versions = [x._version for x in near[0]]
    before = launches()
    found = CALLS[name](*near)
    assert launches() - before == 1
    limit = {torch.float32: 1e-6, torch.float16: 2e-3, torch.bfloat16: 2e-2}[dtype]
    for a, b in zip(found, CALLS[name](*far), strict=True):
        assert a.dtype is b.dtype and a.shape == b.shape
        torch.testing.assert_close(a.cpu(), b, rtol=limit, atol=limit)
    if name.endswith("in place"):
        assert all(a is b for a, b in zip(found, near[2] if "sqrt" in name else near[0]))
        assert [x._version for x in found] == [v + 1 for v in versions]


def test_what_is_nothing_for_a_list_goes_tensor_by_tensor() -> None:
    a = [torch.ones(2, 3, device="npu"), torch.ones(3, 2, device="npu").T]
    b = [torch.full((3,), 2.0, device="npu"), torch.full((2, 3), 3.0, device="npu")]
    assert [x.tolist()[0] for x in torch._foreach_add(a, b)] == [[3.0] * 3, [4.0] * 3]
    mixed = [torch.ones(2, device="npu"), torch.ones(2, dtype=torch.float16, device="npu")]
    assert [x.dtype for x in torch._foreach_mul(mixed, 2.0)] == [torch.float32, torch.float16]
    assert torch._foreach_add([torch.ones(2, dtype=torch.int64, device="npu")], 1)[0].tolist() == [2, 2]
    assert torch._foreach_norm(a, 3)[0].item() == pytest.approx(6 ** (1 / 3))
    leaf = torch.ones(2, device="npu", requires_grad=True)
    torch._foreach_mul([leaf, leaf], 3.0)[1].sum().backward()
    assert leaf.grad.tolist() == [3.0, 3.0]
    twice = torch.ones(4, device="npu")
    torch._foreach_mul_([twice[:2], twice[1:]], 2.0)
    assert twice.tolist() == [2.0, 4.0, 2.0, 2.0]
    first = torch.ones(2, device="npu")
    second = torch.full((2,), 5.0, device="npu")
    torch._foreach_add_([first, second], [second, first])
    assert (first.tolist(), second.tolist()) == ([6.0, 6.0], [11.0, 11.0])
    with pytest.raises(RuntimeError, match="same number of tensors"):
        torch._foreach_add([first], [first, second])


@pytest.mark.skipif(not acl_loader.emulated(), reason="only the emulator counts launches")
def test_long_lists_and_steps_of_optimizers() -> None:
    many = [torch.ones(2, device="npu") for _ in range(100)]
    before = launches()
    assert all(x.tolist() == [2.0, 2.0] for x in torch._foreach_add(many, 1.0))
    assert launches() - before == 3
    for options in (
        {"lr": 0.1},
        {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01},
        {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    ):
        sides = []
        for device in ("cpu", "npu"):
            torch.manual_seed(0)
            params = [torch.nn.Parameter(torch.randn(3, 2).to(device)) for _ in range(10)]
            optimizer = torch.optim.SGD(params, **options)
            for _ in range(4):
                for p in params:
                    p.grad = p.detach() * 0.5 + 1
                torch.nn.utils.clip_grad_norm_(params, 1.0)
                before = launches()
                optimizer.step()
            assert launches() - before <= (5 if device == "npu" else 0)
            sides.append([p.detach().cpu() for p in params])
        for a, b in zip(*sides, strict=True):
            torch.testing.assert_close(b, a)
    grads = [torch.nn.Parameter(torch.ones(2, device="npu")) for _ in range(10)]
    for p in grads:
        p.grad = torch.full((2,), 3.0, device="npu")
    before = launches()
    assert torch.nn.utils.clip_grad_norm_(grads, 1.0).item() == pytest.approx(180**0.5)
    assert launches() - before <= 8
    assert grads[3].grad.tolist() == pytest.approx([3 / 180**0.5] * 2, rel=1e-5)


def test_the_functions_are_of_operators() -> None:
    for name in lists.FUNCTIONS:
        assert hasattr(functions, name.partition(".")[0]), name
