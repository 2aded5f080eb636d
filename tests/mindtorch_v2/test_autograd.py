"""The engine: accumulation, graphs kept and freed, hooks, `grad`, grad modes, anomalies, threads."""

from __future__ import annotations

import gc
import math
import threading
import weakref

import pytest

import mindtorch_v2 as torch

t = torch.tensor


def leaf(*values):
    return t(values or (2.0, 3.0), requires_grad=True)


# Backward


def test_gradients_accumulate() -> None:
    x = leaf()
    (x * 2).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]
    x.grad.zero_()
    (x * x).sum().backward()
    assert x.grad.tolist() == [4.0, 6.0]
    x.grad = None
    (x + x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_diamond_runs_each_node_once() -> None:
    x = leaf(3.0)
    y = x * x
    z = y * 2 + y * 3 + y
    runs = []
    y.grad_fn.register_hook(lambda gi, go: runs.append(1))
    z.backward()
    assert x.grad.tolist() == [36.0] and runs == [1]


def test_deep_graphs_do_not_recurse() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(20000):
        y = y + 1
    y.backward()
    assert x.grad.tolist() == [1.0]


def test_deep_graphs_are_freed_without_recursion() -> None:
    y = leaf(1.0)
    for _ in range(20000):
        y = y * 1.0
    del y
    gc.collect()


def test_only_scalars_start_alone() -> None:
    y = leaf() * 2
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        y.backward()
    with pytest.raises(
        RuntimeError,
        match="Mismatch in shape: grad_output\\[0\\] has a shape of torch.Size\\(\\[3\\]\\) and output\\[0\\] has a shape of torch.Size\\(\\[2\\]\\)",
    ):
        y.backward(torch.ones(3))
    y.backward(t([1.0, 10.0]))


def test_nothing_to_differentiate() -> None:
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"):
        torch.ones(1).backward()


def test_integers_have_no_gradient() -> None:
    with pytest.raises(
        RuntimeError, match="[Oo]nly Tensors of floating point (and complex )?dtype can require gradients"
    ):
        t([1]).requires_grad_()
    with pytest.raises(
        RuntimeError, match="[Oo]nly Tensors of floating point (and complex )?dtype can require gradients"
    ):
        t([1], requires_grad=True)
    assert not (leaf() > 0).requires_grad and not leaf().argmax().requires_grad


def test_a_graph_is_used_once() -> None:
    x = leaf()
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_a_graph_may_be_kept() -> None:
    x = leaf()
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [8.0, 12.0]


def test_gradients_of_another_dtype_and_shape_are_reduced() -> None:
    x = leaf(1.0)
    w = t([[1.0, 2.0]], dtype=torch.float64, requires_grad=True)
    (x.double() * w).sum().backward()
    (x * torch.ones(3, 1)).sum().backward()
    assert x.grad.dtype is torch.float32 and x.grad.tolist() == [6.0]
    assert w.grad.dtype is torch.float64 and w.grad.shape == (1, 2)


def test_the_gradient_of_an_unused_input() -> None:
    x, y = leaf(), leaf()
    assert torch.autograd.grad((x * 2).sum(), [x, y], allow_unused=True)[1] is None
    with pytest.raises(
        RuntimeError, match="The differentiated Tensor at index 1 appears to not have been used in the graph"
    ):
        torch.autograd.grad((x * 2).sum(), [x, y])
    zero = torch.autograd.grad((x * 2).sum(), [x, y], materialize_grads=True)[1]
    assert zero.tolist() == [0.0, 0.0]


def test_grad_leaves_grad_alone() -> None:
    x = leaf()
    (found,) = torch.autograd.grad((x * x).sum(), x)
    assert found.tolist() == [4.0, 6.0] and x.grad is None


def test_grad_of_interior_tensors() -> None:
    x = leaf()
    y = x * 2
    z = (y * y).sum()
    gy, gx = torch.autograd.grad(z, (y, x))
    assert gy.tolist() == [8.0, 12.0] and gx.tolist() == [16.0, 24.0]


def test_grad_of_several_outputs() -> None:
    x = leaf()
    outs = (x * 2, (x * x).sum())
    (found,) = torch.autograd.grad(outs, x, grad_outputs=(t([1.0, 0.0]), None))
    assert found.tolist() == [6.0, 6.0]
    with pytest.raises(RuntimeError, match="does not require grad|element 0 of tensors"):
        torch.autograd.grad(torch.ones(1), x)


def test_inputs_of_backward() -> None:
    x, y = leaf(), leaf()
    (x * y).sum().backward(inputs=[x])
    assert x.grad is not None and y.grad is None


def test_create_graph() -> None:
    x = leaf(2.0)
    (first,) = torch.autograd.grad(x**3, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x, create_graph=True)
    (third,) = torch.autograd.grad(second, x)
    assert (first.item(), second.item(), third.item()) == (12.0, 12.0, 6.0)
    (plain,) = torch.autograd.grad(x**3, x)
    assert not plain.requires_grad


def test_backward_with_create_graph_gives_grad_a_history() -> None:
    x = leaf(2.0)
    (x**3).backward(create_graph=True)
    assert x.grad.requires_grad
    x.grad.backward()
    assert x.grad.tolist() == [24.0]


# Grad modes


def test_no_grad_in_its_forms() -> None:
    x = leaf()
    with torch.no_grad():
        assert not (x * 2).requires_grad and not torch.is_grad_enabled()
        with torch.enable_grad():
            assert (x * 2).requires_grad
        with torch.set_grad_enabled(True):
            assert torch.is_grad_enabled()
        assert not torch.is_grad_enabled()

    @torch.no_grad()
    def decorated():
        """doc"""
        return x * 2

    @torch.no_grad
    def bare():
        return x * 2

    assert not decorated().requires_grad and not bare().requires_grad and decorated.__doc__ == "doc"
    assert (x * 2).requires_grad
    torch.set_grad_enabled(False)
    assert not (x * 2).requires_grad
    torch.set_grad_enabled(True)


def test_a_decorated_generator_changes_the_mode_only_inside() -> None:
    x = leaf()

    @torch.no_grad()
    def steps():
        for _ in range(3):
            got = yield (x * 2).requires_grad
            assert not torch.is_grad_enabled() and got in (None, "sent")

    generator = steps()
    assert next(generator) is False and torch.is_grad_enabled()
    assert generator.send("sent") is False and torch.is_grad_enabled()
    generator.close()
    assert torch.is_grad_enabled()


def test_modes_are_restored_after_errors() -> None:
    with pytest.raises(ValueError), torch.no_grad():
        raise ValueError
    assert torch.is_grad_enabled()


def test_modes_belong_to_their_thread() -> None:
    found = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: found.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    assert found == [True]


def test_views_and_leaves_made_without_grad() -> None:
    x = leaf()
    with torch.no_grad():
        y = x * 2
        z = torch.ones(1, requires_grad=True)
    assert y.is_leaf and z.requires_grad
    x.requires_grad_(False)
    assert not (x * 2).requires_grad
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        (leaf() * 2).requires_grad_(False)


def test_inference_mode() -> None:
    x = leaf()
    with torch.inference_mode():
        y = x * 2
        y.add_(1)
        assert torch.is_inference_mode_enabled() and not torch.is_grad_enabled()
    assert y.is_inference() and not y.requires_grad and not x.is_inference()
    assert not torch.is_inference_mode_enabled()
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed"):
        y.add_(1)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * y
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        y._version  # noqa: B018
    assert (y + 1).is_inference() is False and y.clone().is_inference() is False

    @torch.inference_mode()
    def decorated():
        return x * 2

    assert decorated().is_inference()
    with torch.inference_mode(False):
        assert (x * 2).requires_grad


# Hooks


def test_hooks_on_tensors() -> None:
    x = leaf()
    y = x * 2
    seen = []
    first = y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert seen == [[1.0, 1.0]] and x.grad.tolist() == [20.0, 20.0]
    first.remove()
    (x * 1).sum().backward()
    assert len(seen) == 1
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        torch.ones(1).register_hook(lambda g: g)


def test_hooks_on_leaves() -> None:
    x = leaf()
    handle = x.register_hook(lambda g: g * 3)
    x.sum().backward()
    handle.remove()
    x.sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]


def test_hooks_after_accumulation() -> None:
    x = leaf()
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    handle.remove()
    (x * 2).sum().backward()
    assert seen == [[2.0, 2.0], [4.0, 4.0]]
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"):
        (x * 2).register_post_accumulate_grad_hook(lambda p: None)


def test_hooks_on_nodes() -> None:
    x = leaf()
    y = x * 2
    seen = []
    y.grad_fn.register_hook(lambda gi, go: seen.append(("after", len(gi), go[0].tolist())))
    y.grad_fn.register_prehook(lambda go: (go[0] * 5,))
    y.sum().backward()
    assert seen == [("after", 2, [5.0, 5.0])] or seen[0][0] == "after"
    assert x.grad.tolist() == [10.0, 10.0]


def test_retained_gradients() -> None:
    x = leaf()
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    (y * y).sum().backward()
    assert y.retains_grad and y.grad.tolist() == [8.0, 12.0] and not x.retains_grad
    z = leaf() * 2
    z.sum().backward()
    with pytest.warns(UserWarning, match="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"):
        assert z.grad is None


def test_saved_tensor_hooks() -> None:
    packed = []

    def pack(x):
        packed.append(x.shape)
        return x * 2

    x = leaf()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda y: y / 2):
        y = (x * x).sum()
    y.backward()
    assert x.grad.tolist() == [4.0, 6.0] and packed
    assert all(shape == (2,) for shape in packed)


# Grad itself


def test_assigning_a_gradient() -> None:
    x = leaf()
    x.grad = torch.ones(2)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="attempting to assign a gradient of size"):
        x.grad = torch.ones(3)
    with pytest.raises(RuntimeError, match="assigned grad has data of a different type|dtype"):
        x.grad = torch.ones(2, dtype=torch.float64)
    with pytest.raises(TypeError):
        x.grad = 1


def test_detach_cuts_the_graph() -> None:
    x = leaf()
    y = (x * 2).detach()
    assert not y.requires_grad and y.grad_fn is None
    z = x * 3
    z.detach_()
    assert z.is_leaf and not z.requires_grad


def test_the_graph_can_be_walked() -> None:
    x = leaf()
    y = (x * 2).exp()
    names = []
    node = y.grad_fn
    while node is not None:
        names.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    assert names[:2] == ["ExpBackward0", "MulBackward0"] and names[2].endswith("AccumulateGrad")
    assert y.grad_fn.next_functions[0][0].next_functions[0][0].variable is x


def test_graphs_die_with_their_outputs() -> None:
    x = leaf()
    big = torch.ones(2)
    y = x * big
    gone = weakref.ref(big)
    del big, y
    gc.collect()
    assert gone() is None


# Anomalies and threads


def test_anomaly_detection_finds_nan() -> None:
    x = leaf(0.0)
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="returned nan values in its 0th output"):
        (x.sqrt() * 0).sum().backward()


def test_threads_accumulate_into_one_leaf() -> None:
    x = leaf(0.0)

    def work():
        for _ in range(50):
            (x * 1).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad.item() == 200.0


def test_backward_inside_backward() -> None:
    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                inner = x.detach().requires_grad_()
                (inner * inner).sum().backward()
            return g * inner.grad

    x = leaf()
    Nested.apply(x).sum().backward()
    assert x.grad.tolist() == [4.0, 6.0]


# The functional interface


def test_jacobian_and_products() -> None:
    x = t([1.0, 2.0])
    jacobian = torch.autograd.functional.jacobian(lambda v: v * v, x)
    assert jacobian.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    value, product = torch.autograd.functional.vjp(lambda v: v * v, x, t([1.0, 1.0]))
    assert value.tolist() == [1.0, 4.0] and product.tolist() == [2.0, 4.0]
    hessian = torch.autograd.functional.hessian(lambda v: (v**3).sum(), x)
    assert hessian.tolist() == [[6.0, 0.0], [0.0, 12.0]]


def test_complex_gradients_are_conjugate() -> None:
    z = t([1.0 + 2.0j], requires_grad=True)
    (z * z.conj()).real.sum().backward()
    assert z.grad.tolist() == [2.0 + 4.0j]
    w = t([1.0 + 2.0j], requires_grad=True)
    w.abs().sum().backward()
    assert w.grad[0].abs().item() == pytest.approx(1.0)
    with pytest.raises(
        RuntimeError,
        match="grad can be implicitly created only for real scalar outputs|computed for complex|real scalar",
    ):
        (w * 1).sum().backward()


def test_gradient_of_an_exponent_of_zero():
    for base in (0, torch.zeros(3)):
        exponent = torch.tensor([-1.0, 0.0, 1.0], requires_grad=True)
        (base**exponent).sum().backward()
        assert exponent.grad.tolist() == [-math.inf, 0.0, 0.0]


def test_create_graph_of_backward_warns_once_or_always():
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        for _ in range(2):
            x = torch.ones(1, requires_grad=True)
            with pytest.warns(
                UserWarning, match="Using backward\\(\\) with create_graph=True will create a reference cycle"
            ):
                (x * x).backward(create_graph=True)
    finally:
        torch.set_warn_always(before)


def test_classes_are_decorated_with_a_warning():
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @torch.no_grad()
        class Made:
            def __init__(self):
                self.enabled = torch.is_grad_enabled()

    assert Made().enabled is False


def test_joining_keeps_none_of_its_tensors_for_the_way_back():
    x, y = torch.ones(2, 3, requires_grad=True), torch.ones(0, requires_grad=True)
    for joined in (torch.cat([x + 1, y]), torch.stack([x + 1, x])):
        joined.backward(torch.ones_like(joined))
        joined.backward(torch.ones_like(joined))
    assert x.grad is not None and x.grad.tolist() == [[6.0] * 3] * 2 and y.grad is not None
    part = x + 1
    joined = torch.cat([part, part])
    with torch.no_grad():
        part.zero_()
    joined.sum().backward()
    assert x.grad.tolist() == [[8.0] * 3] * 2
