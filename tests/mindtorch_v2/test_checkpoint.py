"""Checkpointing computes the same gradients as keeping everything, and notices when it cannot."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils.checkpoint import (
    CheckpointError,
    _infer_device_type,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)


@pytest.fixture
def parts():
    torch.manual_seed(0)
    weight = torch.randn(4, 4, requires_grad=True)
    x = torch.randn(3, 4, requires_grad=True)

    def part(x, factor=1):
        y = torch.nn.functional.dropout(torch.tanh(x @ weight), 0.3)
        return torch.exp(y) * factor

    return part, x, weight


def gradients(run, x, weight):
    x.grad = weight.grad = None
    torch.manual_seed(1)
    run().sum().backward()
    return x.grad.tolist(), weight.grad.tolist(), torch.rand(2).tolist()


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_same_gradients_and_the_generator_moves_on_as_before(parts, use_reentrant):
    part, x, weight = parts
    plain = gradients(lambda: part(x), x, weight)
    assert gradients(lambda: checkpoint(part, x, use_reentrant=use_reentrant), x, weight) == plain


def test_without_early_stop(parts):
    part, x, weight = parts
    plain = gradients(lambda: part(x), x, weight)
    with set_checkpoint_early_stop(False):
        assert gradients(lambda: checkpoint(part, x, use_reentrant=False), x, weight) == plain


def test_backward_twice(parts):
    part, x, weight = parts
    out = checkpoint(part, x, factor=2, use_reentrant=False).sum()
    out.backward(retain_graph=True)
    once = weight.grad.clone()
    out.backward()
    assert torch.equal(weight.grad, once * 2)


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_outputs_that_are_no_tensors(parts, use_reentrant):
    part, x, weight = parts
    first, nothing, second = checkpoint(lambda x: (part(x), None, x * 2), x, use_reentrant=use_reentrant)
    (first.sum() + second.sum()).backward()
    assert nothing is None and x.grad is not None and weight.grad is not None


def test_nested(parts):
    part, x, weight = parts
    plain = gradients(lambda: part(part(x)), x, weight)

    def outer(x):
        return checkpoint(part, checkpoint(part, x, use_reentrant=False), use_reentrant=False)

    assert gradients(lambda: checkpoint(outer, x, use_reentrant=False), x, weight) == plain


def test_sequential():
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(5)))
    x = torch.randn(3, 4, requires_grad=True)
    model(x).sum().backward()
    expected = [p.grad.clone() for p in model.parameters()]
    for use_reentrant in (True, False):
        model.zero_grad()
        checkpoint_sequential(model, 2, x, use_reentrant=use_reentrant).sum().backward()
        assert all(torch.equal(p.grad, e) for p, e in zip(model.parameters(), expected))


def test_a_part_that_changes_is_noticed():
    x = torch.ones(3, requires_grad=True)
    calls = []

    def part(x):
        calls.append(1)
        y = x.exp()
        return (y * y).sum() if len(calls) == 1 else y.sum()

    with pytest.raises(CheckpointError, match="A different number of tensors was saved") as caught:
        checkpoint(part, x, use_reentrant=False).backward()
    assert "Number of tensors saved during forward: 3" in str(caught.value)

    shapes = iter([3, 2])
    y = torch.ones(3, requires_grad=True)
    with pytest.raises(CheckpointError, match="have different metadata than during the forward pass"):
        checkpoint(lambda y: y[: next(shapes)].exp().sum(), y, use_reentrant=False).backward()


def test_without_gradients(parts):
    part, x, _ = parts
    with torch.no_grad():
        assert not checkpoint(part, x, use_reentrant=False).requires_grad


def test_arguments(parts):
    part, x, _ = parts
    with pytest.raises(ValueError, match="Unexpected keyword arguments: factor"):
        checkpoint(part, x, factor=2, use_reentrant=True)
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        checkpoint(part, x, use_reentrant=False, determinism_check="some")
    with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly"):
        checkpoint(part, x)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        checkpoint(part, x.detach(), use_reentrant=True)


def test_the_older_variant_refuses_passes_to_some_inputs(parts):
    part, x, weight = parts
    out = checkpoint(part, x, use_reentrant=True).sum()
    with pytest.raises(
        RuntimeError, match="torch.utils.checkpoint is incompatible with .grad\\(\\) or passing an `inputs`"
    ):
        torch.autograd.grad(out, x)
    out = checkpoint(part, x, use_reentrant=True).sum()
    with pytest.raises(RuntimeError, match="incompatible"):
        out.backward(inputs=[x])
    checkpoint(part, x, use_reentrant=True).sum().backward()  # the refusal leaves nothing behind
    assert x.grad is not None


def test_the_kind_of_device_of_arguments():
    assert _infer_device_type(1, [torch.ones(1)]) == "cpu"
    assert _infer_device_type({"a": (torch.ones(1), torch.ones(1, device="meta"))}) == "meta"


class Changing:
    """A function that computes something else each time."""

    def __init__(self, *functions):
        self.functions = list(functions)

    def __call__(self, x):
        return self.functions.pop(0)(x)


def test_more_tensors_than_in_the_forward_pass():
    def two(x):
        return x.sin().exp()

    def three(x):
        return x.sin().exp().sin()

    x = torch.ones(1, requires_grad=True)
    with set_checkpoint_early_stop(False):
        out = checkpoint(Changing(two, three), x, use_reentrant=False)
    with pytest.raises(
        CheckpointError, match="trying to save more tensors during recomputation than during the original"
    ):
        out.backward()
    checkpoint(Changing(two, three), x, use_reentrant=False).backward()  # stops before the third
    out = checkpoint(Changing(three, two), x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="A different number of tensors was saved"):
        out.backward()


def test_debug_says_what_was_computed():
    x = torch.ones(1, requires_grad=True)
    wide = torch.ones(3)
    for debug, override in ((True, None), (False, True)):
        with set_checkpoint_debug_enabled(override):
            out = checkpoint(
                Changing(lambda x: x.sin().exp(), lambda x: x.sin() * wide), x, use_reentrant=False, debug=debug
            )
        with pytest.raises(CheckpointError, match="have different metadata") as error:
            out.backward()
        assert "because you passed `debug=True` to checkpoint" in str(error.value)
        assert "aten.exp.default" in str(error.value) and "aten.mul.Tensor" in str(error.value)


def test_saved_tensors_are_there_once_in_each_pass():
    seen = []

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            with pytest.raises(
                RuntimeError, match="Unpack is being triggered for a tensor that was already unpacked once"
            ):
                ctx.saved_tensors  # noqa: B018
            seen.append((x.item(), y.item()))
            return grad * y, grad * x

    x = torch.tensor(2.0, requires_grad=True)
    out = checkpoint(lambda x: Product.apply(x * 3, x * 5), x, use_reentrant=False)
    out.backward(retain_graph=True)
    out.backward()
    assert seen == [(6.0, 10.0)] * 2 and x.grad.item() == 120.0


@pytest.mark.parametrize("early_stop", [True, False])
def test_gradients_within_a_checkpoint(early_stop):
    def slope(x):
        with torch.enable_grad():
            y = checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False)
            (grad,) = torch.autograd.grad(y, x, create_graph=True)
        return grad * 2

    x = torch.tensor(0.5, requires_grad=True)
    with set_checkpoint_early_stop(early_stop):
        out = checkpoint(slope, x, use_reentrant=False)
    (grad,) = torch.autograd.grad(out, x)
    y = x.detach().requires_grad_()
    (first,) = torch.autograd.grad(y.sin().exp(), y, create_graph=True)
    (second,) = torch.autograd.grad(first * 2, y)
    torch.testing.assert_close(grad, second)
