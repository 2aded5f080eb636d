"""How many Python functions a call enters: with the extension, few."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import native

pytestmark = pytest.mark.skipif(native.extension is None, reason="the extension is not built")


def frames(function: Callable[[], object]) -> list[str]:
    """The functions that a call enters, the call itself left out. It runs three times before: first uses import modules."""
    for _ in range(3):
        function()
    entered: list[str] = []

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            entered.append(frame.f_code.co_qualname if hasattr(frame.f_code, "co_qualname") else frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(before)
    return entered[1:]


def test_a_layer_forward_and_backward() -> None:
    layer, rows = torch.nn.Linear(4, 3), torch.randn(2, 4)
    entered = frames(lambda: layer(rows).sum().backward())
    assert len(entered) <= 20, entered


LEAF = torch.arange(16.0).reshape(4, 4)


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("add", lambda a, b: a + b),
        ("mul", lambda a, b: a * b),
        ("matmul", lambda a, b: a @ b),
        ("relu", lambda a, b: a.relu()),
        ("tanh", lambda a, b: a.tanh()),
        ("mean", lambda a, b: a.mean()),
        ("softmax", lambda a, b: a.softmax(-1)),
        ("mse_loss", lambda a, b: torch.nn.functional.mse_loss(a, b)),
    ],
)
def test_a_backward_pass(name: str, program: Callable) -> None:
    a, b = (LEAF + 1).requires_grad_(True), (LEAF / 9).requires_grad_(True)
    outputs = [program(a, b).sum() for _ in range(4)]
    entered = frames(lambda: outputs.pop().backward())
    assert len(entered) <= 20, entered


@pytest.mark.parametrize(
    "make",
    [
        lambda params: torch.optim.AdamW(params, lr=1e-3),
        lambda params: torch.optim.Adam(params, lr=1e-3, weight_decay=0.1),
        lambda params: torch.optim.SGD(params, lr=1e-3, momentum=0.9),
    ],
)
def test_a_step_of_many_parameters(make: Callable) -> None:
    params = [torch.nn.Parameter(LEAF.clone()) for _ in range(20)]
    for param in params:
        param.grad = torch.ones(4, 4)
    entered = frames(make(params).step)
    assert len(entered) <= 12, entered


def test_a_copy_with_a_memory_format_is_planned() -> None:
    spread = LEAF.expand(2, 4, 4)
    assert frames(lambda: spread.clone(memory_format=torch.contiguous_format)) == []
    assert spread.clone(memory_format=torch.contiguous_format).stride() == (16, 4, 1)
    with pytest.raises(TypeError, match="memory_format"):
        spread.clone(memory_format=torch.strided)
