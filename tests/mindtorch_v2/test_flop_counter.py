"""`torch.utils.flop_counter`: counts as PyTorch has them."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils.flop_counter import FlopCounterMode, flop_registry, register_flop_formula


def count(call, **options):
    with FlopCounterMode(display=False, **options) as counter:
        call()
    return counter.get_total_flops()


def ones(*shape, **options):
    return torch.ones(shape, **options)


@pytest.mark.parametrize(
    ("call", "flops"),
    [
        (lambda: ones(2, 4, 3) @ ones(3, 5), 240),
        (lambda: torch.addmm(ones(5), ones(4, 3), ones(3, 5)), 120),
        (lambda: torch.baddbmm(ones(2, 4, 5), ones(2, 4, 3), ones(2, 3, 5)), 240),
        (lambda: torch.einsum("ij,jk", ones(2, 3), ones(3, 4)), 48),
        (lambda: torch.nn.functional.conv_transpose1d(ones(2, 3, 4), ones(3, 2, 2)), 192),
        (lambda: torch.nn.Linear(3, 4)(ones(7, 3)).sum().backward(), 336),
        (lambda: torch.nn.Linear(3, 4)(ones(7, 3, requires_grad=True)).sum().backward(), 504),
        (lambda: torch.outer(ones(3), ones(3)).exp().sum(), 0),
    ],
)
def test_counts(call, flops):
    assert count(call) == flops


def test_attention():
    """PyTorch's counter leaves it out on a CPU."""
    q, k = (ones(1, 2, n, 8, device="meta") for n in (3, 5))
    assert count(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, k)) == 960
    q, k = ones(1, 2, 3, 8), ones(1, 2, 5, 8)
    assert count(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, k)) == 0


def wanted(*shape):
    return ones(*shape, requires_grad=True)


@pytest.mark.parametrize(
    ("call", "found"),
    [
        (lambda: torch.nn.Linear(4, 5)(wanted(3, 4)), {"addmm": 120, "mm": 240}),
        (lambda: torch.nn.Linear(4, 5)(wanted(2, 3, 4)), {"addmm": 240, "mm": 480}),
        (lambda: torch.nn.Linear(4, 5)(wanted(3, 2, 4).transpose(0, 1)), {"mm": 720}),
        (lambda: torch.nn.Linear(4, 5, bias=False)(wanted(2, 3, 4)), {"mm": 720}),
        (lambda: wanted(3, 4) @ wanted(4, 5), {"mm": 360}),
        (lambda: wanted(2, 6, 3, 4) @ wanted(2, 6, 4, 5), {"bmm": 4320}),
        (lambda: wanted(3, 4) @ wanted(4), {}),
        (lambda: torch.nn.Conv2d(3, 8, 3)(wanted(2, 3, 9, 9)), {"convolution": 42336, "convolution_backward": 84672}),
        (
            lambda: torch.nn.ConvTranspose2d(3, 8, 3)(wanted(2, 3, 9, 9)),
            {"convolution": 69984, "convolution_backward": 139968},
        ),
    ],
)
def test_operators_are_those_that_pytorch_counts(call, found):
    with FlopCounterMode(display=False) as counter:
        call().sum().backward()
    counts = counter.get_flop_counts().get("Global", {})
    assert {str(packet).removeprefix("aten."): count for packet, count in counts.items()} == found


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.c = torch.nn.Linear(4, 5), torch.nn.Conv1d(3, 6, 2)

    def forward(self, x):
        return self.a(x).sum() + self.c(x).sum()


def test_modules_and_the_table(capsys):
    net, x = Net(), ones(2, 3, 4, requires_grad=True)
    with FlopCounterMode(depth=1) as counter:
        net(x).backward()
    assert counter.get_total_flops() == 2016
    found = {place: sum(counts.values()) for place, counts in counter.get_flop_counts().items()}
    assert found == {"Global": 2016, "Net": 672, "Net.a": 240, "Net.c": 432}
    shown = capsys.readouterr().out
    assert "Global" in shown and "2.016K" in shown and "100.00%" in shown and "Net.a" not in shown
    assert "Net.a" in counter.get_table(depth=2)


def test_one_within_another_counts_for_both():
    with FlopCounterMode(display=False) as outer:
        inner = count(lambda: ones(2, 3) @ ones(3, 4))
        ones(2, 3) @ ones(3, 4)
    assert inner == 48 and outer.get_total_flops() == 96


def test_formulas_of_users():
    seen = []
    try:

        @register_flop_formula(torch.ops.aten.sin)
        def of_sin(shape, *args, out_shape=None, **kwargs):
            seen.append((tuple(shape), args, tuple(out_shape), kwargs))
            return 7

        assert count(lambda: torch.sin(ones(2))) == 7 and seen == [((2,), (), (2,), {})]
        with pytest.raises(RuntimeError, match="duplicate registrations for aten.sin"):
            register_flop_formula(torch.ops.aten.sin)(of_sin)
    finally:
        flop_registry.clear()
    with pytest.raises(ValueError, match="expected each target to be OpOverloadPacket"):
        register_flop_formula(torch.sin)(lambda *shapes, **kwargs: 1)
    assert count(lambda: torch.cos(ones(2)), custom_mapping={torch.ops.aten.cos: lambda *a, **k: 11}) == 11
