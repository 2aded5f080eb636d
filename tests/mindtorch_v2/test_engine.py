"""The walk over the tape: who owns gradients, how they are laid out, what hooks see. The same with and without the extension."""

from __future__ import annotations

import importlib

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import native


def leaf(*shape: int) -> torch.Tensor:
    return torch.ones(shape).requires_grad_(True)


def test_a_first_gradient_is_laid_out_like_its_leaf() -> None:
    turned = torch.ones(3, 2).t().requires_grad_(True)
    (turned * torch.ones(2, 3)).sum().backward()
    assert turned.grad.stride() == (1, 2)
    gaps = torch.ones(3, 4)[:, ::2].detach().requires_grad_(True)
    (gaps * 2).sum().backward()
    assert gaps.stride() == (4, 2) and gaps.grad.stride() == (2, 1)
    dense = leaf(3, 2)
    dense.t().backward(torch.ones(2, 3))
    assert dense.grad.stride() == (2, 1)
    assert torch.autograd.grad(dense.t(), dense, torch.ones(2, 3))[0].stride() == (1, 3)


def test_gradients_share_no_memory() -> None:
    given = torch.ones(3, 2)
    w, v = leaf(3, 2), leaf(3, 2)
    (w + v).backward(given)
    assert len({t.data_ptr() for t in (given, w.grad, v.grad)}) == 3
    total = leaf(4)
    total.sum().backward()
    total.grad[0] = 7.0
    assert total.grad.tolist() == [7.0, 1.0, 1.0, 1.0]


def test_accumulation_is_in_place() -> None:
    w = leaf(2, 3)
    w.sum().backward()
    first = w.grad
    (w * w).sum().backward()
    assert w.grad is first and first.tolist() == [[3.0] * 3] * 2 and first._version > 0
    w.grad = torch.zeros(3, 2).t()
    w.sum().backward()
    assert w.grad.stride() == (1, 2) and w.grad.tolist() == [[1.0] * 3] * 2


def test_gradients_with_history() -> None:
    x = leaf(2)
    (x**2).sum().backward(create_graph=True)
    assert x.grad.requires_grad and x.grad.grad_fn is not None
    (x**2).sum().backward(create_graph=True)
    assert x.grad.tolist() == [4.0, 4.0] and x.grad.grad_fn.name() == "AddBackward0"
    second = torch.autograd.grad(x.grad.sum(), x)[0]
    assert second.tolist() == [4.0, 4.0]
    x.grad = None


def test_gradients_of_broadcast_operands() -> None:
    row, middle, cell = leaf(2), leaf(1, 2, 1), leaf()
    (torch.ones(4, 2, 2) * row * middle + cell).sum().backward()
    assert row.grad.tolist() == [8.0, 8.0] and middle.grad.tolist() == [[[8.0], [8.0]]] and cell.grad.item() == 16.0
    half = torch.ones(2, dtype=torch.float64, requires_grad=True)
    (half * torch.ones(3, 2, dtype=torch.float64) + leaf(2).double()).sum().backward()
    assert half.grad.dtype is torch.float64 and half.grad.tolist() == [3.0, 3.0]


def test_hooks_in_order() -> None:
    seen: list = []
    w = leaf(2)
    y = w * 2
    y.retain_grad()
    y.register_hook(lambda g: seen.append(("y", g.tolist())))
    w.register_hook(lambda g: g * 3)
    w.register_post_accumulate_grad_hook(lambda t: seen.append(("w", t.grad.tolist())))
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append(("node", inputs[0].tolist(), outputs[0].tolist())))
    (y * y).sum().backward()
    assert seen == [("y", [4.0, 4.0]), ("node", [8.0, 8.0], [4.0, 4.0]), ("w", [24.0, 24.0])]
    assert y.grad.tolist() == [4.0, 4.0] and w.grad.tolist() == [24.0, 24.0]
    assert y.grad_fn.metadata == {} and w.__dict__ == {}


def test_a_tape_is_walked_once() -> None:
    w = leaf(2)
    z = (w * w).sum()
    z.backward(retain_graph=True)
    z.backward()
    assert w.grad.tolist() == [4.0, 4.0]
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        z.backward()


def test_changed_tensors_are_noticed() -> None:
    a = leaf(2) * 1
    b = a * a
    a.add_(1)
    with pytest.raises(
        RuntimeError,
        match=r"modified by an inplace operation: \[torch.FloatTensor \[2\]\].* is at version 1; expected version 0",
    ):
        b.sum().backward()


def test_only_the_inputs_that_were_asked_for() -> None:
    w, v = leaf(2), leaf(2)
    inner = w * v
    out = (inner * inner).sum()
    out.backward(inputs=[w, inner], retain_graph=True)
    assert w.grad.tolist() == [2.0, 2.0] and v.grad is None and inner.grad.tolist() == [2.0, 2.0]
    unused = leaf(2)
    assert torch.autograd.grad(out, [v, unused, v], allow_unused=True, retain_graph=True)[1] is None
    with pytest.raises(RuntimeError, match="at index 1 appears to not have been used"):
        torch.autograd.grad(out, [v, unused])


def test_a_long_chain_and_a_wide_one() -> None:
    x = leaf(1)
    y = x
    for _ in range(5000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1.0
    many = [leaf(1) for _ in range(300)]
    torch.cat(many).sum().backward()
    assert all(one.grad.item() == 1.0 for one in many)
    shared = leaf(3)
    sum((shared * i for i in range(10)), torch.zeros(3)).sum().backward()
    assert shared.grad.tolist() == [45.0] * 3


def test_many_roots() -> None:
    """Each root holds its gradient while the walk finds the nodes behind the others."""
    leaves = [torch.ones(3, requires_grad=True) for _ in range(100)]
    roots = [leaf * (number + 1) for number, leaf in enumerate(leaves)]
    found = torch.autograd.grad(roots, leaves, [torch.full((3,), 2.0) for _ in roots])
    assert [grad.tolist() for grad in found] == [[2.0 * (number + 1)] * 3 for number in range(100)]


def test_layouts_of_captured_gradients() -> None:
    x = leaf(3, 4)
    assert torch.autograd.grad(x.sum(), x)[0].stride() == (0, 0)
    assert torch.autograd.grad(x.sum(1).sum(), x)[0].stride() == (0, 0)
    assert torch.autograd.grad(x.mean(), x)[0].stride() == (4, 1)
    assert torch.autograd.grad((x + 1).sum(), x)[0].stride() == (0, 0)
    assert torch.autograd.grad((x * 2).sum(), x)[0].stride() == (4, 1)
    assert torch.autograd.grad(x.t().exp().sum(), x)[0].stride() == (4, 1)
    rows = torch.arange(8.0).reshape(2, 4)
    assert torch.autograd.grad((rows @ x.t()).sum(), x)[0].stride() == (4, 1)


def test_gradients_of_products_and_means() -> None:
    rows, weight, bias = torch.arange(6.0).reshape(2, 3).requires_grad_(True), leaf(4, 3), leaf(4)
    upper = torch.arange(8.0).reshape(2, 4)
    torch.nn.functional.linear(rows, weight, bias).backward(upper)
    assert rows.grad.tolist() == [[6.0] * 3, [22.0] * 3] and bias.grad.tolist() == [4.0, 6.0, 8.0, 10.0]
    assert weight.grad.tolist() == (upper.t() @ rows.detach()).tolist()
    left, right = (
        torch.arange(6.0).reshape(2, 3).requires_grad_(True),
        torch.arange(12.0).reshape(3, 4).requires_grad_(True),
    )
    (left @ right).backward(upper)
    assert left.grad.tolist() == (upper @ right.detach().t()).tolist()
    assert right.grad.tolist() == (left.detach().t() @ upper).tolist()
    deep = leaf(2, 3, 4)
    deep.mean((0, -1), keepdim=True).backward(torch.tensor([[[8.0], [16.0], [24.0]]]))
    assert deep.grad[1, :, 2].tolist() == [1.0, 2.0, 3.0]
    deep.grad = None
    deep.sum(1).backward(torch.arange(8.0).reshape(2, 4))
    assert deep.grad[1].tolist() == [[4.0, 5.0, 6.0, 7.0]] * 3


@pytest.mark.skipif(native.extension is None, reason="the extension is not built")
@pytest.mark.parametrize(
    ("family", "name", "call"),
    [
        ("shape", "cat", lambda a, b: (torch.cat([a, b]), ([a, b], 0))),
        ("shape", "stack", lambda a, b: (torch.stack([a.detach(), b]), ([a.detach(), b], 0))),
        ("view", "split_Tensor", lambda a, b: (a.split(2), (a, 2, 0))),
        ("view", "unbind_int", lambda a, b: (a.unbind(1), (a, 1))),
        ("reduction", "max_dim", lambda a, b: (a.max(1), (a, 1, False))),
        ("sorting", "topk", lambda a, b: (a.topk(2), (a, 2, -1, True, True))),
    ],
)
def test_records_of_lists_and_several_results(family, name, call) -> None:
    """The recorder in C makes the node that the generated function makes."""
    made, args = call(torch.arange(12.0).reshape(3, 4).requires_grad_(True), leaf(3, 4))
    op = getattr(importlib.import_module(f"mindtorch_v2._generated.tables.{family}"), name)
    results = []
    for record in (op.record, op.record.__wrapped__):
        with torch.no_grad():
            fresh = call(args[0][0] if isinstance(args[0], list) else args[0], leaf(3, 4))[0]
        out = record(fresh, *args)
        first = out[0] if isinstance(out, tuple) else out
        outs = out if isinstance(out, tuple) else (out,)
        node = first._node
        saved = [type(entry) for entry in node.saved or ()]
        results.append(
            (type(node), node.edges, node.consts, node.outputs, saved, [(o._nr, type(o._node)) for o in outs])
        )
    assert results[0] == results[1]
    assert results[0][1] == (made if not isinstance(made, tuple) else made[0]).grad_fn.edges


def test_gradients_of_other_payloads() -> None:
    """On the meta device memory is handed on too, and a pass inside a pipeline or a plan gives the same."""
    w = torch.ones(3, 4, device="meta", requires_grad=True)
    (torch.ones(2, 3, device="meta") @ w).sum().backward()
    assert w.grad.shape == (3, 4) and w.grad.device.type == "meta" and w.grad.stride() == (4, 1)
    w.sum().backward()
    turned = torch.ones(3, 4, device="meta").t().requires_grad_(True)
    turned.sum().backward()
    assert turned.grad.stride() == (1, 4)
    x = leaf(2)
    with torch.pipeline():
        (x * 3).sum().backward()
        (x * 4).sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]


def test_a_gradient_without_elements_is_laid_out_like_its_leaf() -> None:
    leaf = torch.ones(0, 2, requires_grad=True)
    torch.constant_pad_nd(leaf, [1, 2], 0).sum().backward()
    assert leaf.grad.stride() == leaf.stride() == (2, 1)
    assert leaf.grad._version == 1  # it was copied


def test_a_walk_from_no_tensor_at_all():
    x = torch.ones(3, requires_grad=True)
    assert torch.autograd.grad([], x, allow_unused=True) == (None,)
    torch.autograd.backward([], inputs=[x])
    assert x.grad is None
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        torch.autograd.grad((), x)
