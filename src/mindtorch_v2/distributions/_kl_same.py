"""Divergences between distributions of one family."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as mt

from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .kl import kl_divergence, register_kl
from .laplace import Laplace
from .lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    _batch_lowrank_logdet,
    _batch_lowrank_mahalanobis,
)
from .multivariate_normal import MultivariateNormal, _batch_mahalanobis
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import _sum_rightmost, euler_constant


@register_kl(Normal, Normal)
def _normal_normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    distance = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + distance - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal_half_normal(p: Any, q: Any) -> Any:
    return _normal_normal(p.base_dist, q.base_dist)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli_bernoulli(p: Any, q: Any) -> Any:
    softplus = mt.nn.functional.softplus
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    ones = mt.where(q.probs == 0, mt.inf, ones)
    ones = mt.where(p.probs == 0, 0.0, ones)
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zeros = mt.where(q.probs == 1, mt.inf, zeros)
    zeros = mt.where(p.probs == 1, 0.0, zeros)
    return ones + zeros


@register_kl(Binomial, Binomial)
def _binomial_binomial(p: Any, q: Any) -> Any:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return mt.where(p.total_count > q.total_count, mt.inf, kl)


@register_kl(Categorical, Categorical)
def _categorical_categorical(p: Any, q: Any) -> Any:
    terms = p.probs * (p.logits - q.logits)
    terms = mt.where((q.probs == 0).expand_as(terms), mt.inf, terms)
    return mt.where((p.probs == 0).expand_as(terms), 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_one_hot(p: Any, q: Any) -> Any:
    return _categorical_categorical(p._categorical, q._categorical)


@register_kl(Geometric, Geometric)
def _geometric_geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - mt.log1p(-q.probs) / p.probs - q.logits


@register_kl(Exponential, Exponential)
def _exponential_exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def _gamma_gamma(p: Any, q: Any) -> Any:
    return (
        q.concentration * (p.rate / q.rate).log()
        + mt.lgamma(q.concentration)
        - mt.lgamma(p.concentration)
        + (p.concentration - q.concentration) * mt.digamma(p.concentration)
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )


@register_kl(Beta, Beta)
def _beta_beta(p: Any, q: Any) -> Any:
    p_total = p.concentration1 + p.concentration0
    q_total = q.concentration1 + q.concentration0
    return (
        (mt.lgamma(q.concentration1) + mt.lgamma(q.concentration0) + mt.lgamma(p_total))
        - (mt.lgamma(p.concentration1) + mt.lgamma(p.concentration0) + mt.lgamma(q_total))
        + (p.concentration1 - q.concentration1) * mt.digamma(p.concentration1)
        + (p.concentration0 - q.concentration0) * mt.digamma(p.concentration0)
        + (q_total - p_total) * mt.digamma(p_total)
    )


@register_kl(Dirichlet, Dirichlet)
def _dirichlet_dirichlet(p: Any, q: Any) -> Any:
    p_total, q_total = p.concentration.sum(-1), q.concentration.sum(-1)
    constants = p_total.lgamma() - q_total.lgamma() - (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    logs = p.concentration.digamma() - p_total.digamma().unsqueeze(-1)
    return constants + ((p.concentration - q.concentration) * logs).sum(-1)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli_continuous_bernoulli(p: Any, q: Any) -> Any:
    return (
        p.mean * (p.logits - q.logits)
        + (p._cont_bern_log_norm() + mt.log1p(-p.probs))
        - (q._cont_bern_log_norm() + mt.log1p(-q.probs))
    )


@register_kl(Laplace, Laplace)
def _laplace_laplace(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    distance = (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * mt.exp(-distance / p.scale) - 1


@register_kl(Gumbel, Gumbel)
def _gumbel_gumbel(p: Any, q: Any) -> Any:
    ratio, at_q, at_p = p.scale / q.scale, q.loc / q.scale, p.loc / q.scale
    moment = mt.exp(at_q + mt.lgamma(1 + ratio) - at_p)
    return -ratio.log() - at_q + at_p + ratio * euler_constant + moment - (1 + euler_constant)


@register_kl(Cauchy, Cauchy)
def _cauchy_cauchy(p: Any, q: Any) -> Any:
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(Pareto, Pareto)
def _pareto_pareto(p: Any, q: Any) -> Any:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return mt.where(p.support.lower_bound < q.support.lower_bound, mt.inf, result)


@register_kl(Poisson, Poisson)
def _poisson_poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform_uniform(p: Any, q: Any) -> Any:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return mt.where((q.low > p.low) | (q.high < p.high), mt.inf, result)


# ------------------------------------------------------------------------------------------------------ normal vectors


def _trace_of_whitened(scale_tril: Any, matrix: Any) -> Any:
    """The trace of `inv(L @ L.T) @ matrix @ matrix.T`, L being lower triangular."""
    return mt.linalg.solve_triangular(scale_tril, matrix, upper=False).pow(2).sum((-2, -1))


def _half_log_det(p: Any) -> Any:
    return p._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _log_det_lowrank(p: Any) -> Any:
    return _batch_lowrank_logdet(p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag, p._capacitance_tril)


def _check_same_size(p: Any, q: Any) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two {type(q).__name__}s with different event shapes cannot be computed"
        )


@register_kl(MultivariateNormal, MultivariateNormal)
def _mvn_mvn(p: Any, q: Any) -> Any:
    _check_same_size(p, q)
    q_tril = q._unbroadcasted_scale_tril
    trace = _trace_of_whitened(*_broadcast(q_tril, p._unbroadcasted_scale_tril))
    distance = _batch_mahalanobis(q_tril, q.loc - p.loc)
    return _half_log_det(q) - _half_log_det(p) + 0.5 * (trace + distance - p.event_shape[0])


def _broadcast(a: Any, b: Any) -> tuple[Any, Any]:
    """Two batches of matrices with equal batches."""
    batch = mt.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return a.expand((*batch, *a.shape[-2:])), b.expand((*batch, *b.shape[-2:]))


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _mvn_lowrank(p: Any, q: Any) -> Any:
    _check_same_size(p, q)
    W, D = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag
    distance = _batch_lowrank_mahalanobis(W, D, q.loc - p.loc, q._capacitance_tril)
    # inv(W @ W.T + D) by Woodbury's identity, times the covariance of p
    A = mt.linalg.solve_triangular(q._capacitance_tril, W.mT / D.unsqueeze(-2), upper=False)
    tril = p._unbroadcasted_scale_tril
    trace = (tril.pow(2) / D.unsqueeze(-1)).sum((-2, -1)) - A.matmul(tril).pow(2).sum((-2, -1))
    return 0.5 * (_log_det_lowrank(q) - 2 * _half_log_det(p) + trace + distance - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _lowrank_mvn(p: Any, q: Any) -> Any:
    _check_same_size(p, q)
    q_tril = q._unbroadcasted_scale_tril
    distance = _batch_mahalanobis(q_tril, q.loc - p.loc)
    trace = _trace_of_whitened(*_broadcast(q_tril, p._unbroadcasted_cov_factor)) + _trace_of_whitened(
        *_broadcast(q_tril, mt.diag_embed(p._unbroadcasted_cov_diag.sqrt()))
    )
    return 0.5 * (2 * _half_log_det(q) - _log_det_lowrank(p) + trace + distance - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _lowrank_lowrank(p: Any, q: Any) -> Any:
    _check_same_size(p, q)
    W, D = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag
    distance = _batch_lowrank_mahalanobis(W, D, q.loc - p.loc, q._capacitance_tril)
    A = mt.linalg.solve_triangular(q._capacitance_tril, W.mT / D.unsqueeze(-2), upper=False)
    p_factor, p_diag = p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag
    trace = (
        (p_diag / D).sum(-1)
        + (p_factor.pow(2) / D.unsqueeze(-1)).sum((-2, -1))
        - (A * p_diag.sqrt().unsqueeze(-2)).pow(2).sum((-2, -1))
        - A.matmul(p_factor).pow(2).sum((-2, -1))
    )
    return 0.5 * (_log_det_lowrank(q) - _log_det_lowrank(p) + trace + distance - p.event_shape[0])


# -------------------------------------------------------------------------------------------------- made of other ones


@register_kl(Independent, Independent)
def _independent_independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed_transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)
