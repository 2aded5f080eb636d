"""Functions with derivatives of their own."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch

t = torch.tensor


def leaf(*values):
    return t(values or (2.0, 3.0), requires_grad=True)


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale=1):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x**3 * scale

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2 * ctx.scale, None


def test_a_custom_function() -> None:
    x = leaf()
    y = Cube.apply(x, 2)
    assert y.grad_fn.name() == "CubeBackward"
    y.sum().backward()
    assert x.grad.tolist() == [24.0, 54.0]
    (first,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.tolist() == [12.0, 18.0]
    with torch.no_grad():
        assert not Cube.apply(x).requires_grad


def test_several_inputs_and_outputs() -> None:
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, flag):
            assert ctx.needs_input_grad == (True, False, False)
            ctx.mark_non_differentiable(made := (x > y))
            return x + y, x * y, made

        @staticmethod
        def backward(ctx, g1, g2, g3):
            return g1 + 2 * g2, None, None

    x = leaf()
    total, product, greater = Both.apply(x, torch.ones(2), True)
    assert not greater.requires_grad
    (total + product).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_missing_gradients_are_materialised() -> None:
    seen = []

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            seen.append(b.tolist())
            return a

    class Raw(Two):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            seen.append(b)
            return a

    Two.apply(leaf())[0].sum().backward()
    Raw.apply(leaf())[0].sum().backward()
    assert seen == [[0.0, 0.0], None]


def test_setup_context_apart() -> None:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            return 2 * ctx.saved_tensors[0] * grad

    x = leaf()
    Square.apply(x).sum().backward()
    assert x.grad.tolist() == [4.0, 6.0]


def test_once_differentiable() -> None:
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad):
            return 2 * ctx.saved_tensors[0] * grad

    x = leaf()
    weights = leaf(1.0, 1.0)
    (first,) = torch.autograd.grad(Once.apply(x), x, weights, create_graph=True)
    with pytest.raises(
        RuntimeError, match="trying to differentiate twice a function that was marked with @once_differentiable"
    ):
        first.sum().backward()


def test_a_function_that_writes() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = leaf()
    y = x * 1
    z = Double.apply(y)
    assert z is y
    z.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda g: (g, g), "returned an incorrect number of gradients \\(expected 1, got 2\\)"),
        (
            lambda g: torch.ones(5),
            "returned an invalid gradient at index 0 - got \\[5\\] but expected shape compatible with \\[2\\]",
        ),
        (lambda g: 1, "expected Variable or None|expected a Variable|an element of"),
    ],
)
def test_wrong_results_of_backward(result, message) -> None:
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return result(g)

    x = leaf()
    with pytest.raises((RuntimeError, TypeError), match=message):
        Wrong.apply(x).sum().backward()


def test_an_error_in_backward_comes_through() -> None:
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Broken.apply(leaf()).sum().backward()


def test_functions_cannot_be_instances() -> None:
    with pytest.raises((RuntimeError, TypeError, AttributeError, NotImplementedError)):
        torch.autograd.Function()(leaf())


def test_results_that_are_no_tensors_have_a_place_before_hooks_too():
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor, y):
            ctx.factor = factor
            return x * factor, factor, y * factor

        @staticmethod
        def backward(ctx, one, none, other):
            assert none is None
            return one * ctx.factor, None, other * ctx.factor

    x, y = leaf(), leaf(1.0, 1.0)
    first, factor, second = Scaled.apply(x, 3, y)
    seen = []

    def before(grads):
        seen.append([grad is None for grad in grads])
        return grads[0] * 2, None, grads[2] * 5

    first.grad_fn.register_prehook(before)
    (first + second).sum().backward()
    assert factor == 3 and seen == [[False, True, False]]
    assert x.grad.tolist() == [6.0, 6.0] and y.grad.tolist() == [15.0, 15.0]


def test_setup_context_sees_defaults():
    class Power(torch.autograd.Function):
        @staticmethod
        def forward(x, exponent=3):
            return x**exponent

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.exponent = inputs
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.exponent * ctx.saved_tensors[0] ** (ctx.exponent - 1), None

    for args, wanted in (((), [12.0, 27.0]), ((2,), [4.0, 6.0])):
        x = leaf()
        Power.apply(x, *args).sum().backward()
        assert x.grad.tolist() == wanted


def test_gradients_of_what_is_not_differentiable():
    seen = []

    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, zeros):
            ctx._materialize_non_diff_grads = zeros
            result, other = x.clone(), x.clone()
            ctx.mark_non_differentiable(other)
            return result, other

        @staticmethod
        def backward(ctx, one, other):
            seen.append(other if other is None else other.tolist())
            return one, None

    for zeros in (True, False):
        Both.apply(leaf(), zeros)[0].sum().backward()
    assert seen == [[0.0, 0.0], None]


def test_what_is_marked_dirty_is_an_input_and_an_output():
    class Dirty(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, which):
            made = x * 3
            ctx.mark_dirty(made if which == "made" else x)
            return made

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    with pytest.warns(UserWarning, match="Only input Tensors should be given to ctx.mark_dirty"):
        Dirty.apply(leaf().clone(), "made")
    with pytest.raises(RuntimeError, match="Some elements marked as dirty during the forward method were not returned"):
        Dirty.apply(leaf().clone(), "input")


def test_names_in_the_graph_and_hooks_of_what_was_saved():
    saved = Cube.apply(leaf()).grad_fn._raw_saved_tensors
    assert [type(entry).__name__ for entry in saved] == ["SavedTensor"]
    with pytest.raises(TypeError, match="incompatible function arguments"):
        saved[0].register_hooks(lambda x: x)

    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad):
            return grad * 2

    x = leaf()
    (grad,) = torch.autograd.grad(Once.apply(x).sum(), x, create_graph=True)
    assert grad.grad_fn is None  # nothing that requires a gradient went into it
    y = leaf()
    (grad,) = torch.autograd.grad((Once.apply(y) * y).sum(), y, create_graph=True)
    errors = [node for node, _ in grad.grad_fn.next_functions if type(node).__name__ == "Error"]
    assert [type(node).__name__ for node, _ in errors[0].next_functions] == ["AccumulateGrad"]
    with pytest.raises(
        RuntimeError, match="trying to differentiate twice a function that was marked with @once_differ"
    ):
        grad.sum().backward()


def test_a_function_has_a_vmap_that_refuses():
    with pytest.raises(
        NotImplementedError, match="you must either override the vmap static method or set generate_vmap_rule"
    ):
        Cube.vmap(None, (0,), leaf())


def test_a_function_that_writes_to_a_view():
    class Add(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.mark_dirty(x)
            ctx.save_for_backward(y)
            return x.add_(y)

        @staticmethod
        def backward(ctx, grad):
            assert ctx.saved_tensors[0].tolist() == [[1.0], [2.0]]
            return grad * 3, grad * 5

    x, y = torch.zeros(2, 3, requires_grad=True), t([[1.0], [2.0]], requires_grad=True)
    whole = x.clone()
    out = Add.apply(whole.narrow(1, 1, 1), y)
    assert whole.tolist() == [[0.0, 1.0, 0.0], [0.0, 2.0, 0.0]] and out._base is whole
    whole.sum().backward()
    assert x.grad.tolist() == [[1.0, 3.0, 1.0]] * 2 and y.grad.tolist() == [[5.0], [5.0]]


def test_a_function_that_writes_to_a_view_has_one_result():
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.mark_dirty(x)
            return x.add_(y), x + y

        @staticmethod
        def backward(ctx, one, other):
            return one + other, one + other

    with pytest.raises(RuntimeError, match="modifies inplace an input that is a view of another Tensor"):
        Two.apply(leaf().clone().view(2), leaf())
    first, second = Two.apply(leaf().clone(), leaf())
    assert first.tolist() == [4.0, 6.0] and second.tolist() == [6.0, 9.0]
