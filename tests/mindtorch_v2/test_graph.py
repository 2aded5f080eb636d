"""What programs ask of the tape: saved values by name, edges, hooks on several tensors. Expected values are PyTorch's."""

from __future__ import annotations

import gc

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.autograd import graph


def test_saved_values_by_name():
    a = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    product = (a * a).grad_fn
    assert product._saved_self is a and product._saved_other is a
    power = a.exp()
    assert torch.equal(power.grad_fn._saved_result, power)
    assert (a.sum(0).grad_fn._saved_dim, a.sum(0).grad_fn._saved_keepdim, a.sum(0).grad_fn._saved_self_sym_sizes) == (
        (0,),
        False,
        (3,),
    )
    assert torch.stack([a, a], -1).grad_fn._saved_dim == 2**64 - 1
    assert a.add(a, alpha=2).grad_fn._saved_alpha == 2
    (index,) = a[torch.tensor([0])].grad_fn._saved_indices
    assert index.tolist() == [0]
    assert {"_saved_self", "_raw_saved_self"} <= set(dir(product))
    with pytest.raises(AttributeError):
        _ = product._saved_nothing


def test_a_saved_result_has_the_version_of_the_result():
    a = torch.ones(2, requires_grad=True)
    b = a.exp()
    assert b.grad_fn._saved_result._version == b._version == 0
    b.detach().mul_(1)
    assert b._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        _ = b.grad_fn._saved_result


def test_saved_values_are_gone_after_the_pass():
    a = torch.ones(2, requires_grad=True)
    b = a.exp()
    b.sum().backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        _ = b.grad_fn._saved_result


def test_hooks_of_one_saved_tensor():
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    y = a * a
    raw = y.grad_fn._raw_saved_self
    raw.register_hooks(lambda x: 2 * x, lambda x: x / 2)
    with pytest.raises(RuntimeError, match="hooks have already been set"):
        raw.register_hooks(lambda x: x, lambda x: x)
    y.sum().backward()
    assert a.grad.tolist() == [2.0, 4.0]
    with pytest.raises(RuntimeError, match="after it has been freed"):
        y.grad_fn._raw_saved_other.register_hooks(lambda x: x, lambda x: x)
    with pytest.raises(RuntimeError, match="from Python is forbidden"):
        torch.autograd.SavedTensor()


def test_gradients_of_edges():
    x = torch.rand(2, requires_grad=True).clone()
    y = torch.rand(2, requires_grad=True).clone()
    edges = tuple(graph.GradientEdge(t.grad_fn, t.output_nr) for t in (x, y))
    first, second = torch.autograd.grad((x * 2 + y * 3).sum(), edges)
    assert first.tolist() == [2.0, 2.0] and second.tolist() == [3.0, 3.0]
    out = x * 2
    edge = graph.get_gradient_edge(out)
    assert torch.autograd.grad(edge, x, torch.ones(2), retain_graph=True)[0].tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        torch.autograd.grad(edge, x)
    with pytest.raises(RuntimeError, match=r"grad_output\[0\] has a shape of torch.Size\(\[3\]\)"):
        torch.autograd.grad(edge, x, torch.ones(3))
    with pytest.raises(RuntimeError, match="all inputs have to be Tensors or GradientEdges, but got int"):
        torch.autograd.grad(out.sum(), (3,))
    with pytest.raises(RuntimeError, match="materialize_grads cannot be used when the given input is a GradientEdge"):
        torch.autograd.grad(out.sum(), (x, edges[1]), allow_unused=True, materialize_grads=True)


def test_a_walk_ends_at_what_is_asked_for():
    a = torch.tensor(1.0, requires_grad=True)
    b = a * 2
    c = b * 2
    seen = []
    b.register_hook(lambda g: seen.append("hook"))
    b.grad_fn.register_prehook(lambda g: seen.append("before"))
    b.grad_fn.register_hook(lambda given, got: seen.append("after"))
    torch.autograd.grad(c, b, retain_graph=True)
    assert seen == ["hook"]
    torch.autograd.grad(c, (a, b), retain_graph=True)
    assert seen == ["hook", "hook", "before", "after"]


def test_hooks_of_a_leaf_run_after_its_gradient_was_added():
    a = torch.tensor(1.0, requires_grad=True)
    b = a * 2
    seen = []
    b.grad_fn.next_functions[0][0].register_hook(lambda given, got: seen.append((given, got[0].item(), a.grad.item())))
    (b * 2).backward()
    assert seen == [((), 4.0, 4.0)]


def test_views_belong_to_inference_as_their_tensors_do():
    normal = torch.ones(2, 2)
    with torch.inference_mode():
        inference = torch.ones(2, 2)
        assert not normal.view(4).is_inference() and inference.view(4).is_inference()
        assert not normal[0].is_inference() and (normal + 1).is_inference()
    assert inference.view(4).is_inference() and not normal.view(4).is_inference()
    assert all(part.is_inference() for part in inference.unbind(0))


def test_what_a_walk_does_not_reach_is_not_freed():
    a = torch.tensor(2.0, requires_grad=True)
    b = a.exp()
    torch.autograd.grad(b * 3, b)
    assert torch.equal(torch.autograd.grad(b, a)[0], b)


def test_a_hook_on_all_of_several_gradients():
    a, b, c = (torch.ones(2, requires_grad=True) for _ in range(3))
    found = []
    handle = graph.register_multi_grad_hook((a, b, c), lambda grads: found.append([g is not None for g in grads]))
    (a * b).sum().backward(retain_graph=True)
    (a * b * c).sum().backward(inputs=(b, c))
    assert found == [[True, True, False], [False, True, True]]
    handle.remove()
    (a * b).sum().backward()
    assert len(found) == 2


def test_a_hook_on_the_first_of_several_gradients():
    x = torch.ones(2, requires_grad=True)
    parts = (x.sin(), x.cos())
    count = []
    graph.register_multi_grad_hook(parts, count.append, mode="any")
    sum(parts).sum().backward()
    assert len(count) == 1
    with pytest.raises(ValueError, match="Expects mode to be one of .'all', 'any'. but got x"):
        graph.register_multi_grad_hook(parts, count.append, mode="x")


def test_callbacks_at_the_end_of_a_pass():
    ends = []

    class Calls(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            torch.autograd.Variable._execution_engine.queue_callback(lambda: ends.append(x.grad.tolist()))
            return grad * 2

    x = torch.ones(2, requires_grad=True)
    Calls.apply(x).sum().backward()
    assert ends == [[2.0, 2.0]]


def test_variable():
    Variable = torch.autograd.Variable
    x = torch.ones(2)
    made = Variable(x, requires_grad=True)
    assert made.requires_grad and made.data_ptr() == x.data_ptr() and not x.requires_grad
    assert isinstance(x, Variable) and type(made) is torch.Tensor
    assert Variable().shape == (0,)
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got int"):
        Variable(3)
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        Variable(torch.tensor([1]), requires_grad=True)


def test_refused_hooks():
    with graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"), graph.saved_tensors_hooks(lambda x: x, lambda x: x):
            pass
    with graph.saved_tensors_hooks(lambda x: x, lambda x: x), pytest.raises(RuntimeError, match="too late"):
        with graph.disable_saved_tensors_hooks("too late"):
            pass


def test_zeros_in_place_of_gradients_can_be_differentiated():
    x = torch.tensor(1.0, requires_grad=True)
    (first,) = torch.autograd.grad(x * 3, x, create_graph=True, materialize_grads=True)
    (second,) = torch.autograd.grad(first * 1 + x * 0, x, create_graph=True, materialize_grads=True)
    y = torch.tensor(1.0, requires_grad=True)
    (zeros,) = torch.autograd.grad(x * 3, y, create_graph=True, materialize_grads=True)
    assert zeros.item() == second.item() == 0 and zeros.requires_grad


def test_batched_cotangents_of_another_shape():
    x = torch.ones(2, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match="If `is_grads_batched=True`, we interpret the first dimension"):
        torch.autograd.grad(x.clone(), x, torch.ones(2, 2), is_grads_batched=True)


def test_attributes_that_cannot_be_deleted():
    x = torch.ones(2, requires_grad=True)
    for name in ("data", "requires_grad", "_grad_fn", "_backward_hooks"):
        with pytest.raises(RuntimeError):
            delattr(x, name)
    del x.grad
    assert x.grad is None and x._backward_hooks is None
    x.register_hook(lambda g: g)
    assert len(x._backward_hooks) == 1


def test_saved_tensors_may_change():
    with graph.allow_mutation_on_saved_tensors() as context:
        a = torch.tensor([1.0, 2.0], requires_grad=True)
        b = a.clone()
        out = (b**2).sum()
        b.sin_()
        assert len(context.cloned) == 1
        out.backward()
        assert a.grad.tolist() == [2.0, 4.0]
        del out
        gc.collect()
        with pytest.raises(RuntimeError, match="cannot be nested"), graph.allow_mutation_on_saved_tensors():
            pass
        late = (a**2).sum()
    with pytest.raises(AssertionError, match="outside of the 'allow_mutation_on_saved_tensors' context"):
        late.backward()
