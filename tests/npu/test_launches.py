"""How many launches everyday calls make on an NPU, and that they give what the CPU gives."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import acl_loader

pytestmark = pytest.mark.skipif(not acl_loader.emulated(), reason="the emulator counts launches")
F = torch.nn.functional


def launches() -> int:
    return acl_loader.load().own("emLaunches", ctypes.c_int64, ctypes.c_char_p)(b"")


def counted(run: Callable[[], Any]) -> tuple[Any, int]:
    """(what the second call gives, its launches): what is made once is left out."""
    run()
    before = launches()
    made = run()
    return made, launches() - before


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("kind", ["plain", "causal", "bool", "float", "groups", "bool per head"])
def test_attention_is_one_launch_each_way(dtype: torch.dtype, turned: bool, kind: str) -> None:
    torch.manual_seed(0)
    heads = 2 if kind == "groups" else 4
    shapes = [(2, 4, 3, 8), (2, heads, 5, 8), (2, heads, 5, 8)]
    given = [torch.randn(*s) for s in shapes]
    if turned:
        given = [t.transpose(1, 2).contiguous().transpose(1, 2) for t in given]
    options: dict[str, Any] = {"is_causal": kind == "causal", "enable_gqa": kind == "groups"}
    if kind in ("bool", "bool per head"):
        mask = torch.rand(2, 4 if "head" in kind else 1, 3, 5) > 0.4
        mask[0, 0, 1] = False  # a row that sees nothing is zero
        options["attn_mask"] = mask
    elif kind == "float":
        options["attn_mask"] = torch.randn(3, 5)
    outcome = {}
    for device in ("cpu", "npu"):
        leaves = [t.to(dtype).to(device).detach().requires_grad_() for t in given]
        more = {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in options.items()}
        if kind == "float":
            more["attn_mask"] = more["attn_mask"].to(dtype)
        run = lambda leaves=leaves, more=more: F.scaled_dot_product_attention(*leaves, **more)  # noqa: E731
        made, count = counted(run) if device == "npu" else (run(), 0)
        extra = {"bool": 2, "bool per head": 1, "float": 1}.get(kind, 0)
        assert count <= 1 + extra
        before = launches()
        upper = torch.ones_like(made)
        gradients = torch.autograd.grad(made, leaves, upper)
        assert device == "cpu" or launches() - before <= 2
        outcome[device] = [made.detach().cpu().float(), *(g.cpu().float() for g in gradients)]
    limit = {torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}[dtype]
    for a, b in zip(*outcome.values(), strict=True):
        torch.testing.assert_close(a, b, rtol=limit, atol=limit)


def test_attention_with_dropout_keeps_a_share_and_its_gradient() -> None:
    torch.manual_seed(3)
    ones = torch.ones(1, 1, 64, 64, device="npu")
    query = torch.zeros(1, 1, 64, 64, device="npu", requires_grad=True)
    value = ones.clone().requires_grad_()
    made = F.scaled_dot_product_attention(query, ones, value, dropout_p=0.25)
    assert made.mean().item() == pytest.approx(1.0, abs=0.05)
    made.sum().backward()
    assert value.grad.mean().item() == pytest.approx(1.0, abs=0.05)
    assert value.grad.cpu().unique().numel() > 1


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (4,)])
def test_linear_with_a_bias_is_one_launch(shape: tuple[int, ...]) -> None:
    x, weight, bias = torch.randn(*shape), torch.randn(5, 4), torch.randn(5)
    made, count = counted(lambda: F.linear(x.npu(), weight.npu(), bias.npu()))
    assert count == 1
    torch.testing.assert_close(made.cpu(), F.linear(x, weight, bias))


def test_clamp_is_one_launch() -> None:
    x = torch.randn(40)
    for bounds in ((-0.5, 0.5), (None, 0.25), (-0.25, None), (0.5, -0.5)):
        y = x.npu()
        made, count = counted(lambda y=y, bounds=bounds: torch.clamp(y, *bounds))
        assert count == 1
        assert torch.equal(made.cpu(), torch.clamp(x, *bounds))
    low, high = torch.zeros(40), torch.ones(40)
    made, count = counted(lambda: torch.clamp(x.npu(), low.npu(), high.npu()))
    assert count == 1 and torch.equal(made.cpu(), torch.clamp(x, low, high))


def test_dropout_is_one_launch_each_way() -> None:
    torch.manual_seed(0)
    x = torch.ones(1000, device="npu", requires_grad=True)
    made, count = counted(lambda: F.dropout(x, 0.25))
    assert count == 1
    assert made.detach().cpu().unique().tolist() == [0.0, pytest.approx(4 / 3)]
    assert 0.68 < (made != 0).float().mean().item() < 0.82
    before = launches()
    (gradient,) = torch.autograd.grad(made, x, torch.ones(1000, device="npu"))
    assert launches() - before == 2
    assert torch.equal(gradient, made.detach())


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.Adam])
@pytest.mark.parametrize("options", [{}, {"amsgrad": True}, {"weight_decay": 0.1}, {"maximize": True}])
def test_adam_steps_by_one_launch_for_each_parameter(kind: type, options: dict) -> None:
    torch.manual_seed(0)
    start = [torch.randn(3, 4) for _ in range(10)]
    sides = []
    for device in ("cpu", "npu"):
        params = [torch.nn.Parameter(t.to(device).clone()) for t in start]
        optimizer = kind(params, lr=0.1, **options)
        for step in range(3):
            for k, p in enumerate(params):
                p.grad = torch.full_like(p, 0.5) * (k + 1 - step)
            if device == "npu":
                before = launches()
            optimizer.step()
            if device == "npu" and step:
                limit = 11 + 10 * (
                    options.get("maximize", False) + ("weight_decay" in options and kind is torch.optim.Adam)
                )
                assert launches() - before <= limit
        sides.append([p.detach().cpu() for p in params])
    for a, b in zip(*sides, strict=True):
        torch.testing.assert_close(a, b)
