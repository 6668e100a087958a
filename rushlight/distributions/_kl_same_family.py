"""KL divergences within a family: Gil, On Renyi divergence measures for continuous alphabet
sources, 2011, for most of the formulas.
"""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions._covariance import log_diagonal, mahalanobis
from rushlight.distributions.bernoulli import Bernoulli
from rushlight.distributions.beta import Beta
from rushlight.distributions.binomial import Binomial
from rushlight.distributions.categorical import Categorical
from rushlight.distributions.cauchy import Cauchy
from rushlight.distributions.continuous_bernoulli import ContinuousBernoulli
from rushlight.distributions.dirichlet import Dirichlet
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.exponential import Exponential
from rushlight.distributions.gamma import Gamma
from rushlight.distributions.geometric import Geometric
from rushlight.distributions.gumbel import Gumbel
from rushlight.distributions.half_normal import HalfNormal
from rushlight.distributions.independent import Independent
from rushlight.distributions.kl import kl_divergence, register_kl
from rushlight.distributions.laplace import Laplace
from rushlight.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from rushlight.distributions.multivariate_normal import MultivariateNormal
from rushlight.distributions.normal import Normal
from rushlight.distributions.one_hot_categorical import OneHotCategorical
from rushlight.distributions.pareto import Pareto
from rushlight.distributions.poisson import Poisson
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.uniform import Uniform
from rushlight.distributions.utils import euler_constant, sum_rightmost

# Discrete


def _x_log_ratio(x: Tensor, y: Tensor) -> Tensor:
    """x log(x / y): 0 where x is, infinite where only y is."""
    return rl.xlogy(x, x) - rl.xlogy(x, y)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    return _x_log_ratio(p.probs, q.probs) + _x_log_ratio(1 - p.probs, 1 - q.probs)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    kl = p.total_count * _bernoulli(p, q)
    return rl.where(p.total_count > q.total_count, math.inf, kl)


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms = rl.where(q.probs == 0, math.inf, terms)
    return rl.where(p.probs == 0, 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_categorical(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return _x_log_ratio(p.rate, q.rate) - (p.rate - q.rate)


# Continuous


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """The Bregman divergence of the log normalizer, at the natural parameters.

    Source: Nielsen and Nock, Statistical exponential families: a digest with flash cards, 2009.
    """
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families is not defined by a "
            f"Bregman divergence: {type(p).__name__} and {type(q).__name__}."
        )
    with rl.enable_grad():
        at_p = [n if n.requires_grad else n.detach().requires_grad_() for n in p._natural_params]
        normalizer = p._log_normalizer(*at_p)
        slopes = rl.autograd.grad(normalizer.sum(), at_p, create_graph=True)
    at_q = q._natural_params
    result = q._log_normalizer(*at_q) - normalizer
    for n_p, n_q, slope in zip(at_p, at_q, slopes, strict=True):
        term = (n_q - n_p) * slope
        result = result - sum_rightmost(term, n_p.dim() - len(p.batch_shape))
    needs_grad = any(n.requires_grad for n in (*p._natural_params, *at_q))
    return result if needs_grad else result.detach()


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    norms = total.lgamma() - b.sum(-1).lgamma() + (b.lgamma() - a.lgamma()).sum(-1)
    return norms + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    slope = p.mean * (p.logits - q.logits)
    norms = p._cont_bern_log_norm() - q._cont_bern_log_norm()
    return slope + norms + (-p.probs).log1p() - (-q.probs).log1p()


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    norms = b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma()
    return norms + (a - b) * a.digamma() + (q.rate - p.rate) * (a / p.rate)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio = p.scale / q.scale
    shift = (p.loc - q.loc) / q.scale
    moment = ((1 + ratio).lgamma() - shift).exp()  # E[exp(-(x - q.loc) / q.scale)]
    return -ratio.log() + shift + ratio * euler_constant + moment - (1 + euler_constant)


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).square()
    shift = ((p.loc - q.loc) / q.scale).square()
    return 0.5 * (ratio + shift - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio = p.scale / q.scale
    apart = (p.loc - q.loc).abs()
    return -ratio.log() + apart / q.scale + ratio * (-apart / p.scale).exp() - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    # Chyzak and Nielsen, A closed-form formula for the Kullback-Leibler divergence between Cauchy
    # distributions, 2019.
    joint = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return (joint / (4 * p.scale * q.scale)).log()


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    kl = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return rl.where(p.scale < q.scale, math.inf, kl)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    kl = ((q.high - q.low) / (p.high - p.low)).log()
    return rl.where((q.low > p.low) | (q.high < p.high), math.inf, kl)


# Multivariate normal


def _check_event_shapes(p: Distribution, q: Distribution) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two {type(p).__name__}s with different event shapes "
            f"{tuple(p.event_shape)} and {tuple(q.event_shape)} cannot be computed."
        )


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    _check_event_shapes(p, q)
    p_tril, q_tril = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    log_dets = log_diagonal(q_tril) - log_diagonal(p_tril)
    batch = rl.broadcast_shapes(p_tril.shape[:-2], q_tril.shape[:-2])
    solved = rl.linalg.solve_triangular(
        q_tril.expand(*batch, -1, -1), p_tril.expand(*batch, -1, -1), upper=False
    )
    trace = solved.square().sum((-2, -1))
    distance = mahalanobis(q_tril, q.loc - p.loc)
    return log_dets + 0.5 * (trace + distance - p.event_shape[0])


def _log_det(d: MultivariateNormal | LowRankMultivariateNormal) -> Tensor:
    if isinstance(d, LowRankMultivariateNormal):
        return d._log_det
    return 2 * log_diagonal(d._unbroadcasted_scale_tril)


def _roots(d: MultivariateNormal | LowRankMultivariateNormal) -> list[Tensor]:
    """Vectors in rows, (*, k, n), whose outer products have the covariance as their sum."""
    if isinstance(d, LowRankMultivariateNormal):
        diagonal = d._unbroadcasted_cov_diag.sqrt().diag_embed()
        return [d._unbroadcasted_cov_factor.mT, diagonal]
    return [d._unbroadcasted_scale_tril.mT]


def _distances(d: MultivariateNormal | LowRankMultivariateNormal, rows: Tensor) -> Tensor:
    """x^T covariance^-1 x of vectors in rows, (k, *, n) where * is the batch."""
    if isinstance(d, LowRankMultivariateNormal):
        return d._mahalanobis(rows)
    return mahalanobis(d._unbroadcasted_scale_tril, rows)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_multivariate_normal(
    p: MultivariateNormal | LowRankMultivariateNormal,
    q: MultivariateNormal | LowRankMultivariateNormal,
) -> Tensor:
    # The trace of q's precision times p's covariance is the sum of the distances of p's roots.
    _check_event_shapes(p, q)
    trace = 0.0
    for rows in _roots(p):
        ones = [1] * (len(q.batch_shape) - rows.dim() + 2)
        rows = rows.reshape(*ones, *rows.shape).movedim(-2, 0)  # (k, *batch, n)
        trace = trace + _distances(q, rows).sum(0)
    distance = _distances(q, q.loc - p.loc)
    return 0.5 * (_log_det(q) - _log_det(p) + trace + distance - p.event_shape[0])


# Of other distributions


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            "KL of TransformedDistributions needs equal transforms and event shapes."
        )
    dims = len(p.event_shape) - len(p.base_dist.event_shape)
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), max(dims, 0))


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "KL of Independents needs equal reinterpreted_batch_ndims, got "
            f"{p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}."
        )
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
