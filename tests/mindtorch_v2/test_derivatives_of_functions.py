"""`torch.autograd.functional` and `gradcheck`; values are PyTorch's."""

import pytest

import mindtorch_v2 as torch

F = torch.autograd.functional
gradcheck = torch.autograd.gradcheck


def cubes(x, y):
    return (x**3 + y * x).sum()


X = torch.tensor([1.0, 2.0])
Y = torch.tensor([3.0, 4.0])


def test_products():
    outputs, found = F.vjp(lambda x: x**2, X, Y)
    assert (outputs.tolist(), found.tolist()) == ([1.0, 4.0], [6.0, 16.0])
    outputs, found = F.jvp(lambda x, y: (x * y, x.sum()), (X, Y), (Y, X))
    assert [t.tolist() for t in outputs] == [[3.0, 8.0], 3.0]
    assert [t.tolist() for t in found] == [[10.0, 20.0], 7.0]
    output, found = F.vhp(cubes, (X, Y), (Y, X))
    assert output.item() == 20.0
    assert [t.tolist() for t in found] == [[19.0, 50.0], [3.0, 4.0]]
    assert [t.tolist() for t in F.hvp(cubes, (X, Y), (Y, X))[1]] == [[19.0, 50.0], [3.0, 4.0]]
    assert F.jvp(lambda x: x * 2, torch.tensor(3.0))[1].item() == 2.0


@pytest.mark.parametrize("options", [{}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}])
def test_jacobian(options):
    found = F.jacobian(lambda x, y: (x * y, x.sum()), (X, Y), **options)
    assert [[t.tolist() for t in row] for row in found] == [
        [[[3.0, 0.0], [0.0, 4.0]], [[1.0, 0.0], [0.0, 2.0]]],
        [[1.0, 1.0], [0.0, 0.0]],
    ]
    assert not found[0][0].requires_grad


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_hessian(strategy):
    found = F.hessian(cubes, (X, Y), vectorize=strategy == "forward-mode", outer_jacobian_strategy=strategy)
    assert [[t.tolist() for t in row] for row in found] == [
        [[[6.0, 0.0], [0.0, 12.0]], [[1.0, 0.0], [0.0, 1.0]]],
        [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]],
    ]


def test_create_graph_reaches_the_inputs():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    found = F.jacobian(lambda t: (t**3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(found.sum(), x)
    assert second.tolist() == [6.0, 12.0]


def test_what_does_not_depend_gives_zeros():
    assert F.vjp(lambda x: torch.ones(1), X)[1].tolist() == [0.0, 0.0]
    assert F.jacobian(lambda x: torch.ones(2), X).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def constant(x):
    return torch.ones(1)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: F.vjp(cubes, (X, 2)),
            TypeError,
            "inputs given to vjp must be either a Tensor or a tuple of Tensors but the value at index 1",
        ),
        (
            lambda: F.jvp(lambda x: 3, X, X),
            TypeError,
            "The outputs of the user-provided function given to jvp must be either a Tensor",
        ),
        (
            lambda: F.vjp(lambda x: x, X),
            RuntimeError,
            "v can only be None if the user-provided function returns a single Tensor",
        ),
        (
            lambda: F.jvp(lambda x: x, X, Y[:1]),
            RuntimeError,
            r"v has invalid size: should be torch.Size\(\[2\]\) but got torch.Size\(\[1\]\)",
        ),
        (lambda: F.hvp(cubes, (X, Y), X), RuntimeError, "v is a tuple of invalid length: should be 2 but got 1"),
        (
            lambda: F.hvp(lambda x: x, X, X),
            RuntimeError,
            "The Tensor returned by the function given to hvp should contain a single element",
        ),
        (
            lambda: F.vhp(lambda x: (x, x), X, X),
            RuntimeError,
            "The function given to vhp should return a single Tensor",
        ),
        (
            lambda: F.vjp(constant, X, strict=True),
            RuntimeError,
            "Output 0 of the user-provided function does not require gradients",
        ),
        (lambda: F.jacobian(cubes, (X, Y), strict=True, vectorize=True), RuntimeError, "not supported together"),
        (lambda: F.jacobian(cubes, (X, Y), strategy="sideways"), AssertionError, "Expected strategy to be either"),
        (
            lambda: F.hessian(lambda x: x.sum(), X, strict=True),
            RuntimeError,
            "the jacobian of the user-provided function with respect to input 0",
        ),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()


# gradcheck


def doubles(*shape, dtype=torch.float64):
    return (
        torch.arange(torch.Size(shape).numel(), dtype=torch.float64).reshape(shape).to(dtype) / 3 + 0.5
    ).requires_grad_()


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_both_modes_agree_with_differences(dtype):
    x, y = doubles(3, dtype=dtype), doubles(2, 3, dtype=dtype)
    assert gradcheck(lambda a, b: (a * b, b.exp(), a), (x, y), check_forward_ad=True, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(lambda a, b: (a * b).sum(0), (x, y), check_fwd_over_rev=True)


def test_mixed_outputs():
    z = doubles(2, dtype=torch.complex128)
    assert gradcheck(lambda t: (t * t.conj(), t.abs(), torch.view_as_real(t * 1j)), z, check_forward_ad=True)
    assert gradcheck(lambda t: torch.pow(-torch.ones(2, dtype=torch.float64), t), z)


class Wrong(torch.autograd.Function):
    backward_factor = forward_factor = 1.0
    noise = 0.0

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        Wrong.noise += 1e-3 * (Wrong.noise > 0)
        return grad * (Wrong.backward_factor + Wrong.noise)

    @staticmethod
    def jvp(ctx, moved):
        return moved * Wrong.forward_factor


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("backward_factor", "Jacobian mismatch for output 0 with respect to input 0"),
        ("forward_factor", "Jacobian computed with forward mode mismatch for output 0 with respect to input 0"),
        ("noise", "Backward is not reentrant"),
    ],
)
def test_wrong_derivatives(monkeypatch, attribute, message):
    assert gradcheck(Wrong.apply, doubles(3), check_forward_ad=True)
    monkeypatch.setattr(Wrong, attribute, 1.5)
    with pytest.raises(torch.autograd.GradcheckError, match=message):
        gradcheck(Wrong.apply, doubles(3), check_forward_ad=True)
    assert not gradcheck(Wrong.apply, doubles(3), check_forward_ad=True, raise_exception=False)


def test_what_gradcheck_refuses():
    with pytest.raises(ValueError, match="none of them have requires_grad=True"):
        gradcheck(lambda x: x, torch.ones(2, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        gradcheck(lambda x: x, torch.ones(1, dtype=torch.float64).expand(3).requires_grad_())
    with pytest.raises(
        AssertionError, match="Expected at least one of check_forward_ad or check_backward_ad to be True"
    ):
        gradcheck(lambda x: x, doubles(2), check_backward_ad=False)
    with pytest.raises(AssertionError, match="Expected `func` to return outputs with the same dtype"):
        gradcheck(lambda x: x.to(torch.float32) if bool((x.detach() > doubles(2).detach()).any()) else x, doubles(2))
