"""`torch.func`: derivatives of functions, and `vmap`, with PyTorch's values and refusals."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import func, nn
from mindtorch_v2.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap

T = torch.tensor


def squares(x: torch.Tensor) -> torch.Tensor:
    return (x**2).sum()


def test_gradients_of_examples():
    assert vmap(grad(squares))(torch.ones(3, 2)).tolist() == [[2, 2]] * 3
    w, x = T([1.0, 2.0]), T([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    shared = vmap(grad(lambda w, x: ((w * x).sum()) ** 2), in_dims=(None, 0))(w, x)
    assert shared.tolist() == [[2, 0], [0, 4], [6, 6]]
    assert vmap(vmap(grad(squares)))(torch.ones(2, 3, 2)).tolist() == [[[2, 2]] * 3] * 2


def test_gradients_of_examples_through_a_module():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    x = torch.randn(4, 2)

    def loss(parameters, x):
        return func.functional_call(model, parameters, (x,)).sum()

    each = vmap(grad(loss), in_dims=(None, 0))(parameters, x)
    for row in range(4):
        alone = grad(loss)(parameters, x[row])
        for name in parameters:
            assert torch.allclose(each[name][row], alone[name], atol=1e-6)


def test_higher_derivatives():
    x = T([1.0, 2.0])
    assert hessian(lambda x: (x**3).sum())(x).tolist() == [[6, 0], [0, 12]]
    assert vmap(hessian(lambda x: (x**3).sum()))(x[None]).tolist() == [[[6, 0], [0, 12]]]
    assert grad(lambda x: grad(lambda y: (y**3).sum())(x).sum())(x).tolist() == [6, 12]
    assert jacrev(lambda x: {"a": x * x})(x)["a"].tolist() == [[2, 0], [0, 4]]
    assert jacfwd(lambda x, y: x * y, argnums=(0, 1))(x, x)[1].tolist() == [[1, 0], [0, 2]]


def test_products_with_jacobians():
    x = T([1.0, 2.0])
    value, pull_back = vjp(lambda x: (x * x, x.sum()), x)
    assert value[0].tolist() == [1, 4]
    assert pull_back((T([1.0, 1.0]), T(10.0)))[0].tolist() == [12, 14]
    with pytest.raises(RuntimeError, match="Expected pytree structure of cotangents"):
        pull_back(x)
    value, tangent = jvp(lambda x: x**3, (x,), (T([1.0, 10.0]),))
    assert (value.tolist(), tangent.tolist()) == ([1, 8], [3, 120])
    value, push = linearize(lambda x: x**3, x)
    assert push(T([1.0, 10.0])).tolist() == [3, 120]


def test_results_have_a_history_only_where_something_outside_asks():
    x, y = torch.ones(2), torch.ones(2, requires_grad=True)
    assert not grad(squares)(x).requires_grad
    assert not jvp(squares, (x,), (x,))[1].requires_grad
    outer = grad(lambda x: (x**2 * y).sum())(x)
    outer.sum().backward()
    assert y.grad.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: grad(lambda x: x)(torch.ones(2)), RuntimeError, "to return a scalar Tensor, got tensor with 1 dims"),
        (lambda: grad(lambda x: 3)(torch.ones(2)), RuntimeError, "to return a Tensor, got <class 'int'>"),
        (lambda: grad(squares, argnums=3)(torch.ones(2)), RuntimeError, "Got argnum=3, but only 1 positional"),
        (lambda: grad(squares)(torch.arange(3)), RuntimeError, "only Tensors of floating point dtype"),
        (lambda: vmap(squares, in_dims=5)(torch.ones(2)), ValueError, "expected in_dim to satisfy -1 <= in_dim < 1"),
        (
            lambda: vmap(squares, in_dims=(0, 0))(torch.ones(2)),
            ValueError,
            "in_dims is not compatible with the structure",
        ),
        (lambda: vmap(squares)(3), ValueError, "We cannot vmap over non-Tensor arguments"),
        (lambda: vmap(squares, chunk_size=0), ValueError, "chunk_size should be None or greater than 0"),
        (lambda: vmap(squares, randomness="some"), RuntimeError, "Only allowed values for randomness"),
        (
            lambda: vmap(lambda x: x.nonzero())(torch.ones(2, 2)),
            RuntimeError,
            "can output dynamic shape. .* aten::nonzero",
        ),
        (lambda: vmap(lambda x: x[x > 0])(torch.ones(2, 2)), RuntimeError, "indexing with a boolean mask"),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_structures_and_chunks():
    x = torch.arange(6.0).reshape(3, 2)
    pair = vmap(lambda d: (d["a"] + d["b"], d["a"].sum()), in_dims=({"a": 0, "b": None},), out_dims=(1, 0))
    first, second = pair({"a": x, "b": T([1.0, 1.0])})
    assert first.tolist() == [[1, 3, 5], [2, 4, 6]]
    assert second.tolist() == [1, 5, 9]
    assert vmap(lambda v: v[0], chunk_size=2)(x).tolist() == [0, 2, 4]
    assert vmap(torch.dot)(x, x).tolist() == [1, 13, 41]
    assert vmap(torch.mv, in_dims=(None, 0))(torch.eye(2), x).tolist() == x.tolist()


def test_examples_do_not_write_into_what_they_share():
    x = torch.ones(3, 2)
    for write in (
        lambda v: torch.zeros(2).copy_(v),
        lambda v: torch.zeros(2).add_(v),
        lambda v: torch.zeros(2).__setitem__(0, v[0]),
    ):
        with pytest.raises(RuntimeError, match="vmap: .* is not possible because there exists a Tensor `other`"):
            vmap(write)(x)
    given = torch.ones(3, 2)
    assert vmap(lambda v: v.add_(1))(given).tolist() == given.tolist() == [[2, 2]] * 3


def draw(function, randomness: str) -> torch.Tensor:
    torch.manual_seed(0)
    return vmap(function, randomness=randomness)(torch.zeros(3, 2))


def test_draws_by_randomness():
    torch.manual_seed(0)
    whole = torch.rand(3, 2)
    torch.manual_seed(0)
    one = torch.rand(2)
    for function in (lambda v: v + torch.rand(2), torch.rand_like, lambda v: v.clone().uniform_()):
        assert torch.equal(draw(function, "different"), whole)
        assert torch.equal(draw(function, "same"), one.expand(3, 2))
        with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
            draw(function, "error")


def test_dropout_and_permutations_by_randomness():
    dropout = torch.nn.functional.dropout
    torch.manual_seed(0)
    whole = dropout(torch.ones(3, 2))
    assert torch.equal(draw(lambda v: dropout(v + 1), "different"), whole)
    same = draw(lambda v: dropout(v + 1), "same")
    assert torch.equal(same, same[:1].expand(3, 2))
    assert torch.equal(draw(lambda v: dropout(v + 1, training=False), "error"), torch.ones(3, 2))
    torch.manual_seed(0)
    rows = torch.stack([torch.randperm(4) for _ in range(3)])
    assert torch.equal(draw(lambda v: torch.randperm(4) + v[0].long(), "different"), rows)
    with pytest.raises(RuntimeError, match="different inplace randomness on an unbatched tensor"):
        draw(lambda v: torch.zeros(2).normal_() + v, "different")
    with pytest.raises(RuntimeError, match="does not currently support same randomness"):
        draw(torch.bernoulli, "same")


def test_states_of_modules_are_stacked():
    models = [nn.Linear(2, 1) for _ in range(3)]
    parameters, buffers = func.stack_module_state(models)
    assert (tuple(parameters["weight"].shape), buffers) == ((3, 1, 2), {})
    out = vmap(lambda p, x: func.functional_call(models[0], p, (x,)), in_dims=(0, None))(parameters, torch.ones(2))
    assert torch.allclose(out, torch.stack([m(torch.ones(2)) for m in models]))


def test_transforms_refuse_what_is_not_theirs():
    x = torch.ones(3)
    for inside in (lambda x: vmap(lambda x: x.sum().backward())(x), torch.func.grad(lambda x: x.sum().backward())):
        with pytest.raises(RuntimeError, match=r"backward\(\) called inside a functorch transform"):
            inside(x)
    x.requires_grad_()
    (x * 2).sum().backward()  # outside it works again
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    x = torch.ones(3)
    with pytest.raises(RuntimeError, match=r"Tensor.requires_grad_\(\)"):
        vmap(lambda x: x.requires_grad_())(x)
    with pytest.raises(RuntimeError, match="argnums must be non-empty"):
        torch.func.grad(torch.sum, argnums=())(x)
    with pytest.raises(RuntimeError, match=r"argnums elements must be unique, got \(0, 0\)"):
        torch.func.grad(torch.sum, argnums=(0, 0))(x)
    with pytest.raises(RuntimeError, match="argnums must be int or Tuple"):
        torch.func.jacrev(torch.sin, argnums="a")(x)
    with pytest.raises(RuntimeError, match="to return only tensors, got unsupported type <class 'int'>"):
        torch.func.vjp(lambda x: 3, x)
    with pytest.raises(RuntimeError, match="to contain at least one Tensor"):
        torch.func.jvp(lambda: 3, (), ())
    with pytest.raises(ValueError, match="chunk_size"):
        torch.func.jacrev(torch.sin, chunk_size=0)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        torch.func.jacfwd(torch.bernoulli)(x)
    assert torch.func.jacfwd(torch.bernoulli, randomness="same")(x).shape == (3, 3)
    with pytest.raises(RuntimeError, match="tangent:0 with shape"):
        torch.func.linearize(torch.sin, x)[1](torch.ones(2))


def test_gradients_of_64_examples():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3))
    x, y = torch.randn(64, 5), torch.randn(64, 3)
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(parameters, x, y):
        return ((torch.func.functional_call(model, parameters, (x,)) - y) ** 2).mean()

    each = vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    for row in (0, 17, 63):
        model.zero_grad()
        ((model(x[row]) - y[row]) ** 2).mean().backward()
        for name, p in model.named_parameters():
            assert torch.allclose(each[name][row], p.grad, atol=1e-6)
