"""Distributions: samples of equal seeds, densities, moments, gradients and divergences as recorded with PyTorch 2.13."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import distribution_cases as cases
import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import distributions as D

RECORDED = json.loads((Path(__file__).parent / "data" / "distributions.json").read_text(encoding="utf-8"))
ACCURACY = 1e-9
# What PyTorch approximates by polynomials (Bessel functions), and draws by float32 functions of the C library.
ROUGH = {"VonMises": 1e-6}

BINOMIAL = [2.0, 10.0, 12.0, 17.0, 26.0, 40.0]
GAMMA = [0.3593026399612427, 0.03164386376738548, 9.129831314086914]
AFTER = 0.9258369207382202

made = functools.cache(lambda: cases.made(torch))


def _same(found: Any, expected: Any, accuracy: float) -> bool:
    if isinstance(expected, dict) or isinstance(found, dict):
        return found == expected
    if expected is None or found is None:
        return found is expected
    a, b = np.array(found, float), np.array(expected, float)
    return a.shape == b.shape and np.allclose(a, b, rtol=accuracy, atol=accuracy, equal_nan=True)


@pytest.mark.parametrize("name", RECORDED["answers"])
def test_answers(name):
    expected = RECORDED["answers"][name]
    distribution = cases.made(torch)[name]
    assert repr(distribution) == expected["repr"]
    asked = cases.answers(torch, distribution, expected["sample"])
    accuracy = ROUGH.get(name, ACCURACY)
    found = {question: cases.outcome(call) for question, call in asked.items()}
    wrong = {question: value for question, value in found.items() if not _same(value, expected[question], accuracy)}
    assert not wrong, {question: (value, expected[question]) for question, value in wrong.items()}


@pytest.mark.parametrize("name", RECORDED["gradients"])
def test_gradients_of_samples(name):
    for found, expected in zip(cases.gradients(torch, name), RECORDED["gradients"][name], strict=True):
        assert _same(found, expected, 1e-8), (found, expected)


def test_divergences():
    wrong = {}
    for pair, expected in RECORDED["divergences"].items():
        p, q = pair.split(" / ")
        found = cases.outcome(lambda p=p, q=q: D.kl_divergence(made()[p], made()[q]))
        if not _same(found, expected, 1e-8):
            wrong[pair] = (found, expected)
    assert not wrong


def test_divergences_that_are_not_known():
    known = set(RECORDED["divergences"])
    for p in ("Cauchy", "VonMises", "Independent", "Categorical"):
        for q in ("Normal", "Wishart", "Poisson"):
            assert f"{p} / {q}" not in known
            with pytest.raises(NotImplementedError):
                D.kl_divergence(made()[p], made()[q])


def test_ambiguous_divergences_warn():
    class Special(D.Normal):
        pass

    @D.register_kl(Special, D.Normal)
    def left(p, q):
        return 1

    @D.register_kl(D.Normal, Special)
    def right(p, q):
        return 2

    try:
        with pytest.warns(RuntimeWarning, match=r"Please register_kl\(Special, Special\)"):
            assert D.kl_divergence(Special(0.0, 1.0), Special(0.0, 1.0)) == 1
    finally:
        for pair in ((Special, D.Normal), (D.Normal, Special)):
            del D.kl._KL_REGISTRY[pair]
        D.kl._KL_MEMOIZE.clear()


def test_a_subclass_with_its_own_constructor_expands_itself():
    class Mine(D.Normal):
        def __init__(self):
            super().__init__(0.0, 1.0)

    with pytest.raises(NotImplementedError, match="Subclass Mine of Normal that defines a custom __init__ method"):
        Mine().expand((2,))

    class Yours(Mine):
        def expand(self, batch_shape, _instance=None):
            return super().expand(batch_shape, self._get_checked_instance(Yours, _instance))

    assert Yours().expand((2,)).loc.shape == (2,) and type(Yours().expand((2,))) is Yours


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: D.Chi2(torch.tensor([-1.0])), ValueError, "Expected parameter df"),
        (lambda: D.LKJCholesky(1), ValueError, "greater than or equal to 2. Found dim=1."),
        (lambda: D.Multinomial(torch.tensor([1, 2]), torch.ones(2)), NotImplementedError, "inhomogeneous total_count"),
        (lambda: D.Wishart(torch.tensor(4.0)), AssertionError, "Exactly one of covariance_matrix"),
        (lambda: D.Wishart(1.0, torch.eye(3)), ValueError, "Value of df=1.0 expected to be greater than ndim - 1 = 2."),
        (lambda: D.Wishart(4.0, torch.ones(3)), ValueError, "must be at least two-dimensional"),
        (lambda: D.MixtureSameFamily(D.Normal(0.0, 1.0), D.Normal(0.0, 1.0)), ValueError, "The Mixture distribution needs"),
        (lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), D.StickBreakingTransform()), ValueError, "size at least 1"),
        (lambda: D.kl_divergence(D.Binomial(3, torch.tensor(0.5)), D.Binomial(5, torch.tensor(0.5))), NotImplementedError, "q.total_count > p.total_count"),
        (lambda: D.Binomial(torch.tensor([2.0, 3.0]), torch.tensor(0.5)).entropy(), NotImplementedError, "Inhomogeneous total count not supported by `entropy`."),
        (lambda: torch.binomial(torch.tensor([3]), torch.tensor([0.5])), ValueError, "binomial only supports floating-point dtypes for count, got: Long"),
        (lambda: torch.binomial(torch.ones(1), torch.ones(1, dtype=torch.float64)), RuntimeError, "Found dtype Double but expected Float"),
        (lambda: torch._standard_gamma(torch.ones(2, dtype=torch.float16)), NotImplementedError, "\"gamma_cpu\" not implemented for 'Half'"),
    ],
)  # fmt: skip
def test_errors(make, error, message):
    with pytest.raises(error) as raised:
        make()
    assert message in str(raised.value)


def test_draws_follow_the_seed_in_float32():
    torch.manual_seed(11)
    counts = torch.binomial(torch.full((6,), 40.0), torch.linspace(0.05, 0.95, 6))
    gammas = torch._standard_gamma(torch.tensor([0.3, 1.0, 7.0]))
    assert counts.tolist() == BINOMIAL and gammas.tolist() == pytest.approx(GAMMA, rel=1e-6)
    assert torch.rand(1).item() == AFTER


# ---------------------------------------------------------------------------------------------------------- transforms

REGIONS = {
    "real": D.constraints.real,
    "positive": D.constraints.positive,
    "greater": D.constraints.greater_than(2.0),
    "less": D.constraints.less_than(-1.0),
    "unit": D.constraints.unit_interval,
    "interval": D.constraints.interval(-2.0, 3.0),
    "half open": D.constraints.half_open_interval(0.5, 1.5),
    "simplex": D.constraints.simplex,
    "correlations": D.constraints.corr_cholesky,
    "vectors": D.constraints.real_vector,
    "cat": D.constraints.cat([D.constraints.positive, D.constraints.unit_interval], dim=-1, lengths=[2, 4]),
    "stack": D.constraints.stack([D.constraints.real] * 5 + [D.constraints.positive], dim=-1),
}


@pytest.mark.parametrize("region", REGIONS)
def test_bijections_have_inverses_and_jacobians(region):
    constraint = REGIONS[region]
    transform = D.biject_to(constraint)
    torch.manual_seed(0)
    x = torch.randn(4, 6, dtype=torch.float64)
    y = transform(x)
    assert constraint.check(y).all() and y.shape == transform.forward_shape(x.shape)
    assert torch.allclose(transform.inv(y), x) and transform.inverse_shape(y.shape) == x.shape
    ladj = transform.log_abs_det_jacobian(x, y)
    if region == "correlations":
        return  # the matrix has more numbers than the region dimensions
    jacobian = torch.autograd.functional.jacobian(transform, x[0])
    if region == "simplex":
        jacobian = jacobian[:-1]
    whole = ladj[0].sum() if ladj.dim() > 1 else ladj[0]
    assert torch.allclose(whole, torch.linalg.slogdet(jacobian)[1])


@pytest.mark.parametrize("region", [*REGIONS, "lower_cholesky", "positive_definite"])
def test_transforms_lead_into_their_region(region):
    constraint = REGIONS.get(region) or getattr(D.constraints, region)
    torch.manual_seed(0)
    x = torch.randn((3, 6) if region in REGIONS else (3, 4, 4), dtype=torch.float64)
    transform = D.transform_to(constraint)
    y = transform(x)
    assert constraint.check(y).all()
    assert torch.allclose(transform(transform.inv(y)), y)


def test_correlations_have_the_jacobian_of_their_free_entries():
    transform = D.CorrCholeskyTransform()
    x = torch.tensor([0.3, -0.4, 0.9], dtype=torch.float64)
    free = torch.autograd.functional.jacobian(lambda v: D.utils.tril_matrix_to_vec(transform(v), diag=-1), x)
    assert torch.allclose(transform.log_abs_det_jacobian(x, transform(x)), torch.linalg.slogdet(free)[1])
    with pytest.raises(ValueError, match="not a flattened lower-diagonal number"):
        transform.forward_shape((4,))


def test_transforms_of_transforms():
    base = D.ExpTransform()
    deep = D.IndependentTransform(base, 1)
    x = torch.tensor([[0.1, 0.2], [0.3, 0.4]])
    assert deep.log_abs_det_jacobian(x, deep(x)).tolist() == pytest.approx([0.3, 0.7]) and deep.event_dim == 1
    with pytest.raises(ValueError, match="Too few dimensions"):
        deep(torch.tensor(1.0))
    chain = D.ComposeTransform([base, D.AffineTransform(1.0, 2.0), D.ReshapeTransform((2,), (2, 1))])
    y = chain(x)
    assert y.shape == (2, 2, 1) and torch.allclose(chain.inv(y), x) and chain.inv.inv is chain
    assert chain.codomain.event_dim == 2 and chain.domain.event_dim == 1
    assert chain.log_abs_det_jacobian(x, y).shape == (2,)
    cached = D.SigmoidTransform(cache_size=1)
    z = cached(x)
    assert cached.inv(z) is x and cached.with_cache(0) == D.SigmoidTransform()
    normal = D.Normal(0.0, 1.0)
    uniform = D.CumulativeDistributionTransform(normal)
    assert torch.allclose(uniform.inv(uniform(x)), x) and torch.equal(
        uniform.log_abs_det_jacobian(x, x), normal.log_prob(x)
    )


def test_constraint_registry():
    with pytest.raises(NotImplementedError, match="Cannot transform _Boolean constraints"):
        D.transform_to(D.constraints.boolean)
    with pytest.raises(TypeError, match="Expected constraint to be either a Constraint subclass or instance"):
        D.transform_to.register(3, lambda c: c)
    registry = D.constraint_registry.ConstraintRegistry()

    @registry.register(D.constraints.boolean)
    def of_boolean(constraint):
        return "made"

    assert registry(D.constraints.boolean) == "made"
