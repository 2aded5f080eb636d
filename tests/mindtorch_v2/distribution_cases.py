"""Distributions with given parameters, and what is asked of them: by tests/record_distributions.py of PyTorch, by test_distribution_values.py of the library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SPREAD = [[0.3, -1.2, 0.7], [1.1, 0.4, -0.5], [-0.9, 0.8, 1.6]]
COVARIANCE = [[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.0]]
FACTOR = [[1.2, 0.0, 0.0], [0.3, 0.9, 0.0], [-0.4, 0.2, 1.1]]

# name: (class, parameters). Lists become float64 tensors; what else there is stays.
PARAMETERS: dict[str, tuple[str, dict[str, Any]]] = {
    "Bernoulli": ("Bernoulli", {"probs": [0.3, 0.5, 0.9]}),
    "Bernoulli by logits": ("Bernoulli", {"logits": [-0.3, 0.0, 2.0]}),
    "Beta": ("Beta", {"concentration1": [0.5, 2.5], "concentration0": [1.5, 2.0]}),
    "Binomial": ("Binomial", {"total_count": [7.0, 7.0], "probs": [0.3, 0.8]}),
    "Categorical": ("Categorical", {"probs": [[0.1, 0.2, 0.7], [1.0, 1.0, 2.0]]}),
    "Categorical by logits": ("Categorical", {"logits": [[0.1, 0.2, 0.7], [1.0, 1.0, 2.0]]}),
    "Cauchy": ("Cauchy", {"loc": [0.0, 1.0], "scale": [1.0, 2.0]}),
    "Chi2": ("Chi2", {"df": [1.0, 3.0]}),
    "ContinuousBernoulli": ("ContinuousBernoulli", {"probs": [0.2, 0.4995, 0.7]}),
    "Dirichlet": ("Dirichlet", {"concentration": [[1.0, 2.5, 0.3], [2.0, 3.0, 4.0]]}),
    "Exponential": ("Exponential", {"rate": [1.0, 2.0]}),
    "FisherSnedecor": ("FisherSnedecor", {"df1": [3.0, 1.0], "df2": [5.0, 3.0]}),
    "Gamma": ("Gamma", {"concentration": [0.7, 2.5], "rate": [1.0, 2.0]}),
    "Geometric": ("Geometric", {"probs": [0.3, 0.4]}),
    "Gumbel": ("Gumbel", {"loc": [0.0, 1.0], "scale": [1.0, 2.0]}),
    "HalfCauchy": ("HalfCauchy", {"scale": [1.0, 2.0]}),
    "HalfNormal": ("HalfNormal", {"scale": [1.0, 2.0]}),
    "InverseGamma": ("InverseGamma", {"concentration": [0.9, 3.0], "rate": [1.0, 2.0]}),
    "Kumaraswamy": ("Kumaraswamy", {"concentration1": [1.0, 3.0], "concentration0": [1.0, 2.0]}),
    "LKJCholesky": ("LKJCholesky", {"dim": 3, "concentration": [1.0, 2.0]}),
    "Laplace": ("Laplace", {"loc": [0.0, 1.0], "scale": [1.0, 2.0]}),
    "LogNormal": ("LogNormal", {"loc": [0.0, 1.0], "scale": [1.0, 0.5]}),
    "LogisticNormal": ("LogisticNormal", {"loc": [0.0, 1.0], "scale": [1.0, 0.5]}),
    "LowRankMultivariateNormal": (
        "LowRankMultivariateNormal",
        {"loc": SPREAD[:2], "cov_factor": [[0.5, 1.0], [-0.3, 0.2], [0.8, 0.1]], "cov_diag": [1.0, 2.0, 0.5]},
    ),
    "Multinomial": ("Multinomial", {"total_count": 5, "probs": [[0.1, 0.2, 0.7], [1.0, 1.0, 2.0]]}),
    "MultivariateNormal": ("MultivariateNormal", {"loc": SPREAD[:2], "covariance_matrix": COVARIANCE}),
    "MultivariateNormal by precision": ("MultivariateNormal", {"loc": SPREAD[0], "precision_matrix": COVARIANCE}),
    "MultivariateNormal by factor": ("MultivariateNormal", {"loc": SPREAD[0], "scale_tril": FACTOR}),
    "NegativeBinomial": ("NegativeBinomial", {"total_count": [3.0, 4.0], "probs": [0.3, 0.4]}),
    "Normal": ("Normal", {"loc": [0.0, 1.0], "scale": [1.0, 2.0]}),
    "OneHotCategorical": ("OneHotCategorical", {"probs": [0.1, 0.2, 0.7]}),
    "OneHotCategoricalStraightThrough": ("OneHotCategoricalStraightThrough", {"probs": [0.1, 0.2, 0.7]}),
    "Pareto": ("Pareto", {"scale": [1.0, 2.0], "alpha": [1.5, 3.0]}),
    "Poisson": ("Poisson", {"rate": [1.0, 2.5]}),
    "RelaxedBernoulli": ("RelaxedBernoulli", {"temperature": [0.7], "probs": [0.3]}),
    "RelaxedOneHotCategorical": ("RelaxedOneHotCategorical", {"temperature": [0.7], "probs": [0.3, 0.6, 0.1]}),
    "StudentT": ("StudentT", {"df": [3.0, 1.5], "loc": [0.0, 1.0], "scale": [1.0, 2.0]}),
    "Uniform": ("Uniform", {"low": [0.0, 1.0], "high": [1.0, 3.0]}),
    "VonMises": ("VonMises", {"loc": [0.0, 1.0], "concentration": [1.0, 4.0]}),
    "Weibull": ("Weibull", {"scale": [1.0, 2.0], "concentration": [1.5, 3.0]}),
    "Wishart": ("Wishart", {"df": [5.0, 6.0], "covariance_matrix": COVARIANCE}),
}

ATTRIBUTES = ("mean", "variance", "stddev", "mode")
QUANTILES = [[0.1], [0.5], [0.9]]


def parameters(torch: Any, name: str, leaves: bool = False) -> tuple[type, dict[str, Any]]:
    """The class and its arguments; with `leaves` the tensors want gradients."""
    kind, given = PARAMETERS[name]
    made = {
        key: torch.tensor(value, dtype=torch.float64, requires_grad=leaves) if isinstance(value, list) else value
        for key, value in given.items()
    }
    return getattr(torch.distributions, kind), made


def composite(torch: Any) -> dict[str, Any]:
    """Distributions that are made of others."""
    D = torch.distributions

    def t(value: Any) -> Any:
        return torch.tensor(value, dtype=torch.float64)

    return {
        "Independent": D.Independent(D.Normal(t(SPREAD), t(1.0)), 1),
        "MixtureSameFamily": D.MixtureSameFamily(D.Categorical(t([0.3, 0.7])), D.Normal(t([0.0, 1.0]), t([1.0, 2.0]))),
        "MixtureSameFamily of vectors": D.MixtureSameFamily(
            D.Categorical(t([0.3, 0.7])), D.Independent(D.Normal(t(SPREAD[:2]), t(1.0)), 1)
        ),
        "TransformedDistribution": D.TransformedDistribution(
            D.Normal(t([0.0, 1.0]), t([1.0, 2.0])), [D.AffineTransform(2.0, 3.0), D.SigmoidTransform()]
        ),
        "TransformedDistribution to probabilities": D.TransformedDistribution(
            D.Normal(t([0.0, 1.0]), t([1.0, 0.5])), D.StickBreakingTransform()
        ),
    }


def made(torch: Any) -> dict[str, Any]:
    """Every distribution by name."""
    found = {}
    for name in PARAMETERS:
        kind, given = parameters(torch, name)
        found[name] = kind(**given)
    return found | composite(torch)


def answers(torch: Any, distribution: Any, sample: Any = None) -> dict[str, Callable[[], Any]]:
    """Questions by name. `sample`: where densities are asked for; it is drawn if it is not given."""
    torch.manual_seed(3)
    drawn = distribution.sample((2,))
    at = drawn if sample is None else torch.tensor(sample, dtype=drawn.dtype)
    batch = (2, *distribution.batch_shape)
    asked: dict[str, Callable[[], Any]] = {
        "sample": lambda: drawn,
        "log_prob": lambda: distribution.log_prob(at),
        "cdf": lambda: distribution.cdf(at),
        "icdf": lambda: distribution.icdf(torch.tensor(QUANTILES, dtype=torch.float64)),
        "entropy": distribution.entropy,
        "enumerate_support": distribution.enumerate_support,
        "expanded": lambda: distribution.expand(batch).log_prob(at),
    }
    return asked | {name: lambda name=name: getattr(distribution, name) for name in ATTRIBUTES}


def gradients(torch: Any, name: str) -> list[Any]:
    """How samples of one seed move with the parameters, each sample weighed by its place."""
    kind, given = parameters(torch, name, leaves=True)
    torch.manual_seed(4)
    sample = kind(**given).rsample((3,))
    weights = torch.linspace(0.5, 1.5, sample.numel(), dtype=torch.float64).reshape(sample.shape)
    leaves = [value for value in given.values() if isinstance(value, torch.Tensor)]
    return [
        None if grad is None else grad.tolist()
        for grad in torch.autograd.grad((sample * weights).sum(), leaves, allow_unused=True)
    ]


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives, as JSON has it; the class of the error that it raises."""
    try:
        value = call()
    except Exception as error:  # noqa: BLE001  (any error is an answer)
        return {"error": type(error).__name__}
    return value.tolist() if hasattr(value, "tolist") else value
