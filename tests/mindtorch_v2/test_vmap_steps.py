"""Libraries replace the steps of `vmap` in `torch._functorch.vmap`, so that containers of theirs are mapped as tensors are."""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace

import pytest

import mindtorch_v2 as torch

STEPS = importlib.import_module("mindtorch_v2.func.vmap")


class Rows:
    """A container that no tree of torch knows."""

    def __init__(self, tensor):
        self.tensor = tensor


@pytest.fixture
def replaced(monkeypatch):
    def process(in_dims, args, func):
        return len(args[0].tensor), [0], [args[0].tensor], None

    def create(flat_in_dims, flat_args, vmap_level, args_spec):
        assert vmap_level == 1
        return (Rows(STEPS.batched(flat_args[0], vmap_level)),)

    def unwrap(batched_outputs, out_dims, vmap_level, batch_size, func):
        return Rows(STEPS._unwrap_batched(batched_outputs.tensor, out_dims, vmap_level, batch_size, func))

    names = {"_process_batched_inputs": process, "_create_batched_inputs": create, "_unwrap_batched": unwrap}
    monkeypatch.setitem(sys.modules, "torch._functorch.vmap", SimpleNamespace(**names))


def test_replaced_steps_are_taken(replaced):
    made = torch.vmap(lambda rows: Rows(rows.tensor.sum() * 2))(Rows(torch.arange(6.0).reshape(2, 3)))
    assert made.tensor.tolist() == [6.0, 24.0]


@pytest.fixture
def own(monkeypatch):
    """The library's own steps, one by one: by one that is only wrapped."""
    names = {step.__name__: step for step in STEPS._STEPS}
    names["_unwrap_batched"] = lambda *given: STEPS._unwrap_batched(*given)
    monkeypatch.setitem(sys.modules, "torch._functorch.vmap", SimpleNamespace(**names))


def test_own_steps_give_the_same(own, monkeypatch):
    x, y = torch.randn(2, 3), torch.randn(3)

    def both(x, y):
        return x * y, x.sum()

    stepwise = torch.vmap(both, (-2, None), (1, 0))(x, y), torch.vmap(both, (1, 0), chunk_size=2)(x, y)
    torch.manual_seed(0)
    drawn = torch.vmap(lambda x: x + torch.randn(3), randomness="different")(x)
    nested = torch.vmap(lambda a: torch.vmap(lambda b: a * b)(y))(y)
    monkeypatch.delitem(sys.modules, "torch._functorch.vmap")
    plain = torch.vmap(both, (-2, None), (1, 0))(x, y), torch.vmap(both, (1, 0), chunk_size=2)(x, y)
    for ours, theirs in zip(sum(stepwise, ()), sum(plain, ()), strict=True):
        assert torch.equal(ours, theirs)
    torch.manual_seed(0)
    assert torch.equal(drawn, torch.vmap(lambda x: x + torch.randn(3), randomness="different")(x))
    assert torch.equal(nested, torch.outer(y, y))


def test_refusals_by_steps(own):
    with pytest.raises(ValueError, match="got no inputs"):
        torch.vmap(lambda: 3)()
    with pytest.raises(ValueError, match="must only return Tensors"):
        torch.vmap(lambda x: 3)(torch.ones(2))
