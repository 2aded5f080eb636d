"""Histories of views that are written to: second derivatives, complex and real numbers, inference mode, gradients that are kept. As in PyTorch."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch


def twice(function, values):
    """The gradient of the sum of `function`, and of the sum of that gradient."""
    x = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    return first.tolist(), second.tolist()


def test_second_derivative_of_a_write_into_a_view():
    def squares_in_a_view(x):
        y = x.clone()
        y[1:].pow_(3)
        return y

    assert twice(squares_in_a_view, [2.0, 3.0, 4.0]) == ([1.0, 27.0, 48.0], [0.0, 18.0, 24.0])

    def activation_in_a_view(x):
        return torch.relu_((x + 1).view_as(x)).pow(2)

    assert twice(activation_in_a_view, [[1.0, -3.0]]) == ([[4.0, 0.0]], [[2.0, 0.0]])

    def result_is_saved(x):
        y = x.clone()
        z = y[:1]
        z.sqrt_()
        return y

    assert twice(result_is_saved, [4.0, 4.0]) == ([0.25, 1.0], [-0.03125, 0.0])


def test_a_complex_view_of_real_numbers_and_the_reverse():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x.clone()
    torch.view_as_complex(y).mul_(2j)
    (y * torch.tensor([[1.0, 10.0], [100.0, 1000.0]])).sum().backward()
    assert x.grad.tolist() == [[20.0, -2.0], [2000.0, -200.0]]

    z = torch.tensor([1 + 2j, 3 - 4j], requires_grad=True)
    w = z.clone()
    torch.view_as_real(w)[:, 0].mul_(5)
    torch.view_as_real(w).sum().backward()
    assert z.grad.tolist() == [5 + 1j, 5 + 1j]

    v = torch.tensor([2 + 1j], requires_grad=True)
    u = v.clone()
    u.real.pow_(3)
    torch.view_as_real(u).sum().backward()
    assert v.grad.tolist() == [12 + 1j]


def test_a_view_of_one_of_several_views_may_not_be_written_to():
    several = torch.ones(3, requires_grad=True).clone().unbind(0)
    with pytest.raises(RuntimeError, match="This view is the output of a function that returns multiple views"):
        several[1].view_as(several[1]).mul_(2)
    alone = torch.ones(3, requires_grad=True).clone()
    alone[1:][1:].view(1).mul_(2)
    alone.sum().backward()


def test_views_in_place_make_a_version_and_a_history_for_views():
    x = torch.ones(2, 3, requires_grad=True).clone()
    row = x[0]
    x.t_()
    assert (x._version, row._version) == (1, 1)
    assert row.grad_fn.name() == "AsStridedBackward0" and row.grad_fn.next_functions[0][0] is x.grad_fn
    row.sum().backward()
    y = torch.ones(2)
    y.unsqueeze_(0).squeeze_(0)
    assert y._version == 2
    z = torch.rand(1)
    z.resize_((1, 2))
    assert z._version == 1
    z.resize_((1, 2))
    assert z._version == 1
    z.resize_as_(torch.ones(3))
    assert z._version == 2


def test_views_that_keep_their_gradient_go_on_to():
    base = torch.tensor([3.0], requires_grad=True).clone()
    first, second = base[:], base[:]
    first.retain_grad()
    second.retain_grad()
    first.mul_(2)
    (first * second).sum().backward()
    assert first.grad.tolist() == [6.0] and second.grad.tolist() == [6.0]


def test_a_leaf_that_looks_elsewhere_is_another_leaf():
    x = torch.ones(2, requires_grad=True)
    edge = torch.autograd.graph.get_gradient_edge(x)
    out = x * 2
    with torch.no_grad():
        x.set_(torch.zeros(2))
    with pytest.raises(RuntimeError, match="to not have been used in the graph"):
        torch.autograd.grad(out.sum(), x, retain_graph=True)
    assert torch.autograd.grad(out.sum(), edge)[0].tolist() == [2.0, 2.0]


def test_views_of_inference_mode():
    made = torch.ones(2, requires_grad=True).clone()
    with torch.inference_mode():
        view, copy = made.view(-1), made.clone()
        parts = made.split(1)
    assert view.requires_grad and view.is_leaf and not view.is_inference() and parts[0].requires_grad
    assert not copy.requires_grad and copy.is_inference() and (view * 2).requires_grad
    with pytest.raises(
        RuntimeError, match="A view was created in inference mode and is being modified inplace in normal"
    ):
        view.add_(1)
    made.add_(1)
    with pytest.raises(
        RuntimeError, match="in inference mode and its base or another view of its base has been modified"
    ):
        view.grad_fn  # noqa: B018


def test_inference_tensors_are_written_to_in_inference_mode_only():
    for _ in range(3):  # writes of the same geometry, so that they are known
        known = torch.ones(2)
        known[0] = 3.0
        known[0:1] = torch.ones(1)
        known[0].zero_()
    with torch.inference_mode():
        made = torch.ones(2)
        part = made[0]
        made.add_(1)
        leaf = torch.ones(1, 2, requires_grad=True)
        assert leaf.resize_(1, 1).requires_grad
    for write in (
        lambda: made.mul_(2),
        lambda: part.zero_(),
        lambda: torch.add(torch.ones(2), 1, out=made),
        lambda: torch.max(torch.ones(2, 2), 0, out=(made, torch.empty(2, dtype=torch.int64))),
        lambda: made.__setitem__(0, 3.0),
        lambda: made.unsqueeze_(0),
        lambda: made[0].zero_(),
        lambda: made.__setitem__(slice(0, 1), torch.ones(1)),
    ):
        for _ in range(3):
            with pytest.raises(
                RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed"
            ):
                write()
    assert made.tolist() == [2.0, 2.0]
