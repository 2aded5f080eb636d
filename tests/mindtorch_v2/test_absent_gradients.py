"""Gradients that do not come: what nodes, hooks and leaves make of them, as in PyTorch."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.autograd._functions import Resize, UndefinedGrad


class Nothing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return None


class Passing(torch.autograd.Function):
    seen = []

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        Passing.seen.append(grad.tolist())
        return grad


def test_a_function_gets_zeros_where_none_came():
    Passing.seen.clear()
    x = torch.ones(2, requires_grad=True)
    Nothing.apply(Passing.apply(x) * 3).sum().backward()
    assert Passing.seen == [[0.0, 0.0]] and x.grad.tolist() == [0.0, 0.0]
    y = torch.ones(2, requires_grad=True)
    Nothing.apply(y * 3).sum().backward()
    assert y.grad is None
    z = torch.ones(2, requires_grad=True)
    UndefinedGrad()(Passing.apply(z)).sum().backward()
    assert z.grad.tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        torch.autograd.grad(Nothing.apply(z.exp()).sum(), z)


def test_hooks_are_told_of_gradients_that_do_not_come():
    said = []
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda grad: said.append(("tensor", grad)))
    y.grad_fn.register_prehook(lambda grads: said.append(("before", grads)))
    y.grad_fn.register_hook(lambda given, grads: said.append(("after", given, grads)))
    Nothing.apply(y).sum().backward()
    assert said == [("tensor", None), ("before", (None,)), ("after", (None, None), (None,))]

    said.clear()
    first, second = (x * 2).unbind()
    first.register_hook(lambda grad: said.append(("first", grad.item())))
    second.register_hook(lambda grad: said.append(("second", grad)))
    first.backward()
    assert said == [("first", 1.0), ("second", None)]


def test_gradcheck_tries_absent_gradients():
    def hooked(x):
        def hook(grad):
            if grad is None:
                raise RuntimeError("there is none")

        y = x.clone()
        y.register_hook(hook)
        return y

    x = torch.ones(1, dtype=torch.float64, requires_grad=True)
    with (
        pytest.warns(UserWarning, match="New undefined gradient support checking feature"),
        pytest.raises(RuntimeError, match="Expected backward function to handle undefined output grads"),
    ):
        torch.autograd.gradcheck(hooked, (x,))
    assert torch.autograd.gradcheck(hooked, (x,), check_undefined_grad=False)
    assert torch.autograd.gradcheck(lambda x: (x * 2, x.exp()), (x,))


def test_parts_that_are_no_views():
    for split in (
        lambda t: t.unsafe_split(1),
        lambda t: t.unsafe_split_with_sizes((1, 1, 1)),
        lambda t: t.unsafe_chunk(3),
    ):
        a = torch.full((3, 1), 3.0, requires_grad=True)
        whole = a * 2
        one, two, _ = split(whole)
        assert not one._is_view() and one.data_ptr() == whole.data_ptr()
        one.mul_(two)
        one.sum().backward()
        assert a.grad.tolist() == [[12.0], [12.0], [0.0]]


def test_the_resize_of_the_tape():
    x = torch.arange(4.0, requires_grad=True)
    y = Resize.apply(x, (2, 2))
    (y * y).sum().backward()
    assert y.shape == (2, 2) and x.grad.tolist() == [0.0, 2.0, 4.0, 6.0]
    with pytest.raises(RuntimeError, match="requested resize to 3 \\(3 elements in total\\)"):
        Resize.apply(x, (3,))


def test_a_hook_on_several_tensors_counts_passes_of_other_threads_apart():
    import threading

    a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    seen, both = [], threading.Barrier(2)

    class Waiting(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            both.wait(timeout=60)  # each pass has had one of the two gradients when it comes here
            return grad

    handle = torch.autograd.graph.register_multi_grad_hook((a, b), lambda grads: seen.append([g.item() for g in grads]))
    threads = []
    for factor in (2.0, 3.0):
        out = (Waiting.apply(a) + b).sum() * factor
        threads.append(threading.Thread(target=out.backward))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    handle.remove()
    assert sorted(seen) == [[2.0, 2.0], [3.0, 3.0]]
