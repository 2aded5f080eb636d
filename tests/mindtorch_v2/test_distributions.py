"""Distributions: values recorded with PyTorch 2.13."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import distributions as D
from mindtorch_v2.distributions import constraints

T = torch.tensor

CASES = {
    "normal": (lambda: D.Normal(T([0.0, 1.0]), T([1.0, 2.0])), T([0.5, 0.2])),
    "log_normal": (lambda: D.LogNormal(T([0.0, 1.0]), T([1.0, 2.0])), T([0.5, 0.2])),
    "uniform": (lambda: D.Uniform(T([0.0, 1.0]), T([1.0, 3.0])), T([0.5, 1.2])),
    "bernoulli": (lambda: D.Bernoulli(T([0.3, 0.5])), T([1.0, 0.0])),
    "categorical": (lambda: D.Categorical(T([[0.1, 0.2, 0.7], [1.0, 1.0, 2.0]])), T([1, 2])),
    "one_hot": (lambda: D.OneHotCategorical(T([0.1, 0.2, 0.7])), T([0.0, 1.0, 0.0])),
    "exponential": (lambda: D.Exponential(T([1.0, 2.0])), T([0.5, 0.6])),
    "laplace": (lambda: D.Laplace(T([0.0, 1.0]), T([1.0, 2.0])), T([0.5, 0.6])),
    "gamma": (lambda: D.Gamma(T([1.0, 2.5]), T([1.0, 2.0])), T([0.5, 0.6])),
    "beta": (lambda: D.Beta(T([1.0, 2.5]), T([1.0, 2.0])), T([0.5, 0.6])),
    "dirichlet": (lambda: D.Dirichlet(T([1.0, 2.5, 0.3])), T([0.2, 0.3, 0.5])),
    "poisson": (lambda: D.Poisson(T([1.0, 2.5])), T([2.0, 3.0])),
    "negative_binomial": (lambda: D.NegativeBinomial(T([3.0, 4.0]), T([0.3, 0.4])), T([2.0, 3.0])),
    "geometric": (lambda: D.Geometric(T([0.3, 0.4])), T([2.0, 3.0])),
    "student_t": (lambda: D.StudentT(T([3.0, 4.0]), T([0.0, 1.0]), T([1.0, 2.0])), T([2.0, 3.0])),
    "independent": (lambda: D.Independent(D.Normal(torch.zeros(2, 3), torch.ones(2, 3)), 1), torch.ones(2, 3)),
    "transformed": (
        lambda: D.TransformedDistribution(
            D.Normal(T([0.0, 1.0]), T([1.0, 2.0])), [D.AffineTransform(2.0, 3.0), D.SigmoidTransform()]
        ),
        T([0.3, 0.4]),
    ),
}
RECORDED = {
    "normal": {
        "log_prob": [-1.043939, -1.692086],
        "mean": [0.0, 1.0],
        "mode": [0.0, 1.0],
        "variance": [1.0, 4.0],
        "stddev": [1.0, 2.0],
        "entropy": [1.418939, 2.112086],
    },
    "log_normal": {
        "log_prob": [-0.4660178, -0.8537936],
        "mean": [1.648721, 20.08554],
        "mode": [0.3678795, 0.04978707],
        "variance": [4.670774, 21623.04],
        "stddev": [2.161197, 147.0477],
        "entropy": [1.418939, 3.112086],
    },
    "uniform": {
        "log_prob": [0.0, -0.6931472],
        "mean": [0.5, 2.0],
        "variance": [0.08333334, 0.3333333],
        "stddev": [0.2886751, 0.5773503],
        "entropy": [0.0, 0.6931472],
    },
    "bernoulli": {
        "log_prob": [-1.203973, -0.6931472],
        "mean": [0.3, 0.5],
        "variance": [0.21, 0.25],
        "stddev": [0.4582576, 0.5],
        "entropy": [0.6108643, 0.6931472],
    },
    "categorical": {
        "log_prob": [-1.609438, -0.6931472],
        "mode": [2.0, 2.0],
        "entropy": [0.8018185, 1.039721],
    },
    "one_hot": {
        "log_prob": [-1.609438],
        "mean": [0.1, 0.2, 0.7],
        "mode": [0.0, 0.0, 1.0],
        "variance": [0.09, 0.16, 0.21],
        "stddev": [0.3, 0.4, 0.4582576],
        "entropy": [0.8018185],
    },
    "exponential": {
        "log_prob": [-0.5, -0.5068529],
        "mean": [1.0, 0.5],
        "mode": [0.0, 0.0],
        "variance": [1.0, 0.25],
        "stddev": [1.0, 0.5],
        "entropy": [1.0, 0.3068528],
    },
    "laplace": {
        "log_prob": [-1.193147, -1.586294],
        "mean": [0.0, 1.0],
        "mode": [0.0, 1.0],
        "variance": [2.0, 8.0],
        "stddev": [1.414214, 2.828427],
        "entropy": [1.693147, 2.386294],
    },
    "gamma": {
        "log_prob": [-0.5, -0.5180533],
        "mean": [1.0, 1.25],
        "mode": [0.0, 0.75],
        "variance": [1.0, 0.625],
        "stddev": [1.0, 0.7905694],
        "entropy": [1.0, 1.0368],
    },
    "beta": {
        "log_prob": [0.0, 0.4865245],
        "mean": [0.5, 0.5555556],
        "variance": [0.08333334, 0.04489338],
        "stddev": [0.2886751, 0.2118806],
        "entropy": [0.0, -0.1743954],
    },
    "dirichlet": {
        "log_prob": [-1.154915],
        "mean": [0.2631579, 0.6578947, 0.07894737],
        "mode": [0.0, 1.0, 0.0],
        "variance": [0.04039704, 0.04688942, 0.01514889],
        "stddev": [0.2009901, 0.2165397, 0.1230808],
        "entropy": [-2.714191],
    },
    "poisson": {
        "log_prob": [-1.693147, -1.542887],
        "mean": [1.0, 2.5],
        "mode": [1.0, 2.0],
        "variance": [1.0, 2.5],
        "stddev": [1.0, 1.581139],
    },
    "negative_binomial": {
        "log_prob": [-1.686211, -1.796442],
        "mean": [1.285714, 2.666667],
        "mode": [0.0, 2.0],
        "variance": [1.836735, 4.444445],
        "stddev": [1.355262, 2.108185],
    },
    "geometric": {
        "log_prob": [-1.917323, -2.448768],
        "mean": [2.333333, 1.5],
        "mode": [0.0, 0.0],
        "variance": [7.777777, 3.75],
        "stddev": [2.788867, 1.936492],
        "entropy": [2.036214, 1.682529],
    },
    "student_t": {
        "log_prob": [-2.695485, -2.231835],
        "mean": [0.0, 1.0],
        "mode": [0.0, 1.0],
        "variance": [3.0, 8.0],
        "stddev": [1.732051, 2.828427],
        "entropy": [1.773477, 2.374908],
    },
    "independent": {
        "log_prob": [-4.256815, -4.256815],
        "mean": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        "mode": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        "variance": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
        "stddev": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
        "entropy": [4.256815, 4.256815],
    },
    "transformed": {
        "log_prob": [-0.9072978, -1.689402],
    },
}


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    make, value = CASES[name]
    for what, expected in RECORDED[name].items():
        found = make().log_prob(value) if what == "log_prob" else getattr(make(), what)
        found = found() if callable(found) else found
        assert found.flatten().tolist() == pytest.approx(expected, rel=2e-5, abs=1e-6), what


@pytest.mark.parametrize("name", CASES)
def test_shapes(name):
    make, value = CASES[name]
    made = make()
    shape = made.batch_shape + made.event_shape
    wider = made.expand((4, *made.batch_shape))
    assert wider.batch_shape == (4, *made.batch_shape)
    assert torch.allclose(wider.log_prob(value), made.log_prob(value).expand(wider.batch_shape))
    if name in ("gamma", "beta", "dirichlet", "negative_binomial", "student_t") and not hasattr(
        torch, "_standard_gamma"
    ):
        pytest.xfail("torch._standard_gamma is not implemented")
    assert made.sample((3,)).shape == (3, *shape)
    assert bool(made.support.check(made.sample((50,))).all())


def test_samples_are_pytorchs():
    torch.manual_seed(0)
    assert D.Categorical(T([0.1, 0.2, 0.7])).sample((5,)).tolist() == [2, 2, 2, 2, 2]
    assert D.Normal(T([0.0, 1.0]), T([1.0, 2.0])).sample((2,)).flatten().tolist() == pytest.approx(
        [0.1603813, -0.2129024, -0.7830641, 3.124342], rel=1e-5
    )
    assert D.Bernoulli(T([0.3, 0.5])).sample((4,)).flatten().tolist() == [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]


def test_gradients_reach_the_parameters():
    location = T([0.5], requires_grad=True)
    D.Normal(location, 1.0).rsample((3,)).sum().backward()
    assert location.grad.tolist() == [3.0]
    with pytest.raises(NotImplementedError):
        D.Poisson(T([1.0])).rsample()


def test_divergences():
    first, second = D.Normal(0.0, 1.0), D.Normal(1.0, 2.0)
    assert D.kl_divergence(first, second).item() == pytest.approx(0.44314718)
    assert D.kl_divergence(first, first).item() == 0
    p, q = D.Categorical(T([0.5, 0.5])), D.Categorical(T([0.25, 0.75]))
    assert D.kl_divergence(p, q).item() == pytest.approx(0.1438410)
    with pytest.raises(NotImplementedError, match="The cross KL-divergence between different exponential families"):
        D.kl_divergence(first, D.Poisson(1.0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: D.Normal(T([0.0]), T([-1.0])), "to satisfy the constraint GreaterThan(lower_bound=0.0)"),
        (lambda: D.Categorical(T([0.5, 0.5])).log_prob(T([3])), "to be within the support"),
        (lambda: D.Bernoulli(), "Either `probs` or `logits` must be specified, but not both."),
        (lambda: D.Uniform(1.0, 0.0), "to satisfy the constraint LessThan(upper_bound=0.0)"),
        (
            lambda: D.Normal(T([0.0, 0.0]), 1.0).log_prob(torch.ones(3)),
            "Value is not broadcastable with batch_shape+event_shape",
        ),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(ValueError) as caught:
        call()
    assert message in str(caught.value)


def test_constraints():
    assert constraints.integer_interval(0, 3).check(T([0.0, 1.5, 4.0])).tolist() == [True, False, False]
    assert constraints.simplex.check(T([[0.5, 0.5], [0.5, 0.6]])).tolist() == [True, False]
    assert constraints.lower_cholesky.check(T([[1.0, 0.0], [2.0, 1.0]])).tolist() is True
    assert repr(constraints.real_vector) == "IndependentConstraint(Real(), 1)"
