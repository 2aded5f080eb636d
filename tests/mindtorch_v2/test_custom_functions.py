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
