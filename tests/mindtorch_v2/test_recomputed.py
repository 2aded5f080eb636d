"""Large results that nodes alone hold are computed again in the backward pass, and nothing of it is seen: see Note [Results computed again]."""

from __future__ import annotations

import sys
import weakref

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2._autograd.again import Recomputed
from mindtorch_v2._dispatch import native

F = nn.functional
WIDE = 512
pytestmark = pytest.mark.skipif(native.extension is None, reason="the extension puts results away")


def graph(tensor):
    """All nodes behind a tensor, and what they saved."""
    seen, todo, saved = {}, [tensor.grad_fn], []
    while todo:
        node = todo.pop()
        if node is None or id(node) in seen:
            continue
        seen[id(node)] = node
        saved += node.saved if isinstance(node.saved, list) else []
        todo += [edge[0] for edge in node.edges if edge is not None]
    return saved


def put_away(tensor):
    """How many results behind a tensor are computed again, after the last one had its turn."""
    forward_of_another()
    return len({id(entry) for entry in graph(tensor) if isinstance(entry, Recomputed)})


def forward_of_another():
    """A node that saves a large result of a cheap operator: what waits is looked at."""
    x = torch.ones(WIDE, WIDE * 2, requires_grad=True)
    F.linear(F.silu(x), torch.ones(2, WIDE * 2, requires_grad=True)).sum()


@pytest.fixture
def kept(monkeypatch):
    """A function that runs another one while results are kept, as without the extension."""

    def run(function):
        nodes = [torch.ones(1, requires_grad=True).mul(torch.ones(1, requires_grad=True)).grad_fn]
        nodes += [f(torch.ones(1, requires_grad=True)).grad_fn for f in CHEAP.values()]
        with monkeypatch.context() as patch:
            for node in nodes:
                patch.setattr(type(node), "is_cheap", False)
            return function()

    return run


CHEAP = {
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "mish": F.mish,
    "hardswish": F.hardswish,
    "softplus": lambda x: F.softplus(x, 2.0, 3.0),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.3),
    "logsigmoid": F.logsigmoid,
    "elu": lambda x: F.elu(x, 0.7),
    "selu": F.selu,
    "celu": lambda x: F.celu(x, 1.5),
    "hardtanh": lambda x: F.hardtanh(x, -0.5, 0.25),
    "layer_norm": lambda x: F.layer_norm(x, (x.shape[-1],), None, None, 1e-3),
    "rms_norm": lambda x: F.rms_norm(x, (x.shape[-1],), None, 1e-3),
}


def gradients(activation, kind=torch.float32, rows=WIDE, **factors):
    """Those of a product, of its operand, and of what stands before an activation; and how many results were put away."""
    torch.manual_seed(3)
    x = torch.randn(rows, 2 * WIDE, dtype=kind, requires_grad=True)
    weight = torch.randn(5, 2 * WIDE, dtype=kind, requires_grad=True)
    out = F.linear(activation(x * 2), weight)
    count = put_away(out)
    found = torch.autograd.grad(out.square().sum(), (x, weight), **factors)
    return [g.detach() for g in found], count


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", CHEAP)
def test_gradients_have_the_same_bits(name, kind, kept):
    rows = WIDE if kind.itemsize >= 4 else 2 * WIDE
    found, count = gradients(CHEAP[name], kind, rows)
    wanted, none = kept(lambda: gradients(CHEAP[name], kind, rows))
    assert (count, none) == (1, 0)
    for a, b in zip(found, wanted):
        assert a.dtype == b.dtype and torch.equal(a, b)


def test_gates(kept):
    """Products of two results, one of which is computed again for the other's sake."""

    def run():
        torch.manual_seed(1)
        x = torch.randn(WIDE, WIDE, requires_grad=True)
        gate, up, down = (torch.randn(a, b, requires_grad=True) for a, b in ((1024, 512), (1024, 512), (3, 1024)))
        out = F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)
        count = put_away(out)
        return torch.autograd.grad(out.sum(), (x, gate, up, down)), count

    found, count = run()
    wanted, none = kept(run)
    assert (count, none) == (2, 0) and all(map(torch.equal, found, wanted))


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = nn.ModuleList(nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        y = self.norm(x)
        x = x + sum(head(y) for head in self.heads)
        return x + self.down(F.gelu(self.up(x)))


def trained(steps=2):
    torch.manual_seed(0)
    model = nn.Sequential(*(Layer(512) for _ in range(3)))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    x = torch.randn(WIDE, 512)
    for _ in range(steps):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return [p.detach() for p in model.parameters()]


def test_training_has_the_same_bits(kept):
    """Also where several layers read one result."""
    assert all(map(torch.equal, trained(), kept(trained)))


def test_memory():
    """What is put away is no longer there."""
    x = torch.randn(1024, 1024, requires_grad=True)
    weight = torch.randn(4, 1024, requires_grad=True)
    made = F.gelu(x * 1)
    payload = made._payload
    before = sys.getrefcount(payload)
    out = F.linear(made, weight)
    assert put_away(out) == 0  # `made` is held here
    del made
    assert put_away(out) == 0  # its memory is
    assert sys.getrefcount(payload) == before
    del payload
    assert put_away(out) == 1


@pytest.mark.parametrize(
    "write",
    {
        "data": lambda t: t.data.mul_(2),
        "detached": lambda t: np.multiply(t.detach().numpy(), 2, out=t.detach().numpy()),
        "storage": lambda t: t.untyped_storage().fill_(0),
        "parameter": lambda t: nn.init.zeros_(nn.Parameter(t)),
        "view": lambda t: t[:3].data.mul_(3),
        "set": lambda t: setattr(t, "data", torch.ones_like(t)),
    }.items(),
    ids=lambda item: item[0],
)
def test_memory_that_was_handed_out(write, kept):
    """What was written to it without a version is what the pass reads."""

    def run():
        torch.manual_seed(5)
        x, weight = torch.randn(WIDE, 1024, requires_grad=True), torch.randn(4, 1024, requires_grad=True)
        made = F.gelu(x * 1)
        out = F.linear(made, weight)
        write[1](made)
        del made
        count = put_away(out)
        return torch.autograd.grad(out.sum(), (x, weight)), count

    found, count = run()
    wanted, _ = kept(run)
    assert count == 0 and all(map(torch.equal, found, wanted))


def test_changes_in_place():
    """Of the result: the pass refuses it. Of a small operand: the result is that of before. Of a large one: it is refused as before."""
    x, weight = torch.randn(WIDE, 1024, requires_grad=True), torch.randn(4, 1024, requires_grad=True)
    made = F.gelu(x * 1)
    out = F.linear(made, weight)
    with torch.no_grad():
        made.mul_(2)
    del made
    assert put_away(out) == 0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()
    scale = torch.randn(1024, requires_grad=True)
    out = F.linear((x * 1).mul(scale), weight)
    assert put_away(out) == 1
    (wanted,) = torch.autograd.grad(out.sum(), weight, retain_graph=True)
    with torch.no_grad():
        scale.mul_(2)
    assert torch.equal(torch.autograd.grad(out.sum(), weight)[0], wanted)


def test_passes_through_a_part():
    """A pass that frees what the activation saved takes nothing from the layer behind it; a second pass through the layer says so."""
    x, weight = torch.randn(WIDE, 1024, requires_grad=True), torch.randn(4, 1024, requires_grad=True)
    before = x * 1
    made = F.gelu(before)
    first, second = made.sum(), F.linear(made, weight).sum()
    del made, before
    assert put_away(second) == 1
    first.backward()
    (found,) = torch.autograd.grad(second, weight, retain_graph=True)
    torch.testing.assert_close(found, F.gelu(x).sum(0).expand(4, -1).detach(), rtol=1e-4, atol=1e-3)
    again = torch.autograd.grad(second, weight)[0]
    assert torch.equal(found, again)
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(second, weight)


def test_second_derivatives(kept):
    def run():
        torch.manual_seed(2)
        x, weight = torch.randn(WIDE, 1024, requires_grad=True), torch.randn(4, 1024, requires_grad=True)
        out = F.linear(F.silu(x * 1), weight)
        count = put_away(out)
        (grad,) = torch.autograd.grad(out.square().sum(), weight, create_graph=True)
        return torch.autograd.grad(grad.square().sum(), (x, weight)), count

    found, count = run()
    wanted, _ = kept(run)
    assert count == 1 and all(map(torch.equal, found, wanted))


def test_what_is_looked_at():
    """What a node shows of it is the result, with its history."""
    x, weight = torch.randn(WIDE, 1024, requires_grad=True), torch.randn(4, 1024, requires_grad=True)
    out = F.linear(F.gelu(x * 1), weight)
    assert put_away(out) == 1
    shown = out.grad_fn._saved_input
    assert torch.equal(shown, F.gelu(x * 1)) and shown.grad_fn.name() == "GeluBackward0"
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
        out = F.linear(F.gelu(x * 1), weight)
    assert put_away(out) == 0  # hooks were given it


def test_autocast_during_the_pass(kept):
    """Modes of the pass do not reach what is computed again."""

    def run():
        torch.manual_seed(4)
        x, weight = torch.randn(WIDE, 1024, requires_grad=True), torch.randn(4, 1024, requires_grad=True)
        out = F.linear(F.layer_norm(x * 1, (1024,)), weight)
        count = put_away(out)
        with torch.autocast("cpu", torch.bfloat16):
            return torch.autograd.grad(out.sum(), (x, weight)), count

    found, count = run()
    wanted, _ = kept(run)
    assert count == 1 and all(map(torch.equal, found, wanted))


def test_a_graph_that_goes_is_gone():
    """Who waits holds nothing."""
    x = torch.randn(WIDE, 1024, requires_grad=True)
    made = F.gelu(x * 1)
    out = F.linear(made, torch.randn(4, 1024, requires_grad=True))
    reference, node = weakref.ref(made), weakref.ref(out.grad_fn)
    assert put_away(out) == 0
    del made, out
    assert reference() is None and node() is None
