"""KL divergences between families.

KL(p || q) = -H(p) - E[log q(x)] for x of p. The log density of q is a sum of few functions of x, so
that it is enough to know their means under p: one function here for each family q, and the means in
`_Means` for each family p. Infinite where p has values outside q's support.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions.bernoulli import Bernoulli
from rushlight.distributions.beta import Beta
from rushlight.distributions.binomial import Binomial
from rushlight.distributions.continuous_bernoulli import ContinuousBernoulli
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.exponential import Exponential
from rushlight.distributions.gamma import Gamma
from rushlight.distributions.gumbel import Gumbel
from rushlight.distributions.kl import register_kl
from rushlight.distributions.laplace import Laplace
from rushlight.distributions.normal import Normal
from rushlight.distributions.pareto import Pareto
from rushlight.distributions.poisson import Poisson
from rushlight.distributions.uniform import Uniform

# Means under p


def _mean_log(p: Any) -> Tensor:
    """E[log x], for x > 0."""
    match p:
        case Beta():
            total = p.concentration1 + p.concentration0
            return p.concentration1.digamma() - total.digamma()
        case Exponential():
            return rl.digamma(rl.ones_like(p.rate)) - p.rate.log()
        case Gamma():
            return p.concentration.digamma() - p.rate.log()
        case Pareto():
            return p.scale.log() + p.alpha.reciprocal()
        case Uniform():
            return _uniform_mean_log(p.low, p.high)
    raise NotImplementedError(f"E[log x] of {type(p).__name__}")


def _mean_log1m(p: Any) -> Tensor:
    """E[log(1 - x)], for x in [0, 1]."""
    match p:
        case Uniform():
            return _uniform_mean_log(1 - p.high, 1 - p.low)
    raise NotImplementedError(f"E[log(1 - x)] of {type(p).__name__}")


def _uniform_mean_log(low: Tensor, high: Tensor) -> Tensor:
    return (rl.xlogy(high, high) - rl.xlogy(low, low)) / (high - low) - 1


def _log_mean_exp(p: Any, t: Tensor) -> Tensor:
    """log E[exp(-t x)], for t > 0."""
    match p:
        case Exponential():
            return -(t / p.rate).log1p()
        case Gamma():
            return -p.concentration * (t / p.rate).log1p()
        case Normal():
            return -t * p.loc + 0.5 * (t * p.scale).square()
        case Uniform():
            width = t * (p.high - p.low)
            return -t * p.low + (-(-width).expm1() / width).log()
    raise NotImplementedError(f"E[exp(-t x)] of {type(p).__name__}")


def _mean_distance(p: Normal, center: Tensor) -> Tensor:
    """E|x - center|"""
    z = (p.loc - center) / p.scale
    bell = math.sqrt(2 / math.pi) * (-0.5 * z.square()).exp()
    return p.scale * (bell + z * rl.erf(z / math.sqrt(2)))


# Means of log q


def _of_beta(p: Any, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    norm = (a + b).lgamma() - a.lgamma() - b.lgamma()
    return (a - 1) * _mean_log(p) + (b - 1) * _mean_log1m(p) + norm


def _of_continuous_bernoulli(p: Any, q: ContinuousBernoulli) -> Tensor:
    return p.mean * q.logits + (-q.probs).log1p() + q._cont_bern_log_norm()


def _of_exponential(p: Any, q: Exponential) -> Tensor:
    return q.rate.log() - q.rate * p.mean


def _of_gamma(p: Any, q: Gamma) -> Tensor:
    a, rate = q.concentration, q.rate
    return a * rate.log() - a.lgamma() + (a - 1) * _mean_log(p) - rate * p.mean


def _of_gumbel(p: Any, q: Gumbel) -> Tensor:
    mean_exp = (q.loc / q.scale + _log_mean_exp(p, q.scale.reciprocal())).exp()
    return -(p.mean - q.loc) / q.scale - mean_exp - q.scale.log()


def _of_laplace(p: Any, q: Laplace) -> Tensor:
    return -_mean_distance(p, q.loc) / q.scale - (2 * q.scale).log()


def _of_normal(p: Any, q: Normal) -> Tensor:
    square = p.variance + (p.mean - q.loc).square()
    return -0.5 * square / q.scale.square() - q.scale.log() - 0.5 * math.log(2 * math.pi)


def _of_pareto(p: Any, q: Pareto) -> Tensor:
    return q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _mean_log(p)


def _of_uniform(p: Any, q: Uniform) -> Tensor:
    return -(q.high - q.low).log()


_MEAN_LOG_PROB: dict[type[Distribution], Callable[[Any, Any], Tensor]] = {
    Beta: _of_beta,
    ContinuousBernoulli: _of_continuous_bernoulli,
    Exponential: _of_exponential,
    Gamma: _of_gamma,
    Gumbel: _of_gumbel,
    Laplace: _of_laplace,
    Normal: _of_normal,
    Pareto: _of_pareto,
    Uniform: _of_uniform,
}

# Supports


def _ends(d: Any) -> tuple[Any, Any]:
    """The least and the largest value."""
    match d:
        case Beta() | ContinuousBernoulli():
            return 0.0, 1.0
        case Exponential() | Gamma():
            return 0.0, math.inf
        case Pareto():
            return d.scale, math.inf
        case Uniform():
            return d.low, d.high
    return -math.inf, math.inf


def _kl(p: Any, q: Any) -> Tensor:
    mean_log_prob = next(f for base, f in _MEAN_LOG_PROB.items() if isinstance(q, base))
    kl = -p.entropy() - mean_log_prob(p, q)
    (p_low, p_high), (q_low, q_high) = _ends(p), _ends(q)
    outside = rl.as_tensor(p_low < q_low) | rl.as_tensor(p_high > q_high)
    return rl.where(outside.to(kl.device), math.inf, kl)


def _infinite(p: Any, q: Any) -> Tensor:
    shape = rl.broadcast_shapes(p.batch_shape, q.batch_shape)
    return p.mean.new_full(shape, math.inf)


# Where q has a support that p's is always, or may be, inside of.
_FINITE: dict[type[Distribution], tuple[type[Distribution], ...]] = {
    Beta: (ContinuousBernoulli, Exponential, Gamma, Normal, Uniform),
    ContinuousBernoulli: (Exponential, Normal, Uniform),
    Exponential: (Gamma, Gumbel, Normal),
    Gamma: (Exponential, Gumbel, Normal),
    Gumbel: (Normal,),
    Laplace: (Normal,),
    Normal: (Gumbel, Laplace),
    Pareto: (Exponential, Gamma, Normal),
    Uniform: (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Normal, Pareto),
}
_BOUNDED = (Beta, ContinuousBernoulli, Pareto, Uniform)
_INFINITE: dict[type[Distribution], tuple[type[Distribution], ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: _BOUNDED,
    Gamma: _BOUNDED,
    Gumbel: (*_BOUNDED, Exponential, Gamma),
    Laplace: (*_BOUNDED, Exponential, Gamma),
    Normal: (*_BOUNDED, Exponential, Gamma),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}

for function, pairs in ((_kl, _FINITE), (_infinite, _INFINITE)):
    for type_p, types_q in pairs.items():
        for type_q in types_q:
            register_kl(type_p, type_q)(function)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)
