"""Distributions of every class, with batch and event shapes, for the tests of torch.distributions.

A case makes its distribution from D, a library's `distributions`, and t, which makes a float64
tensor of that library.
"""

from __future__ import annotations

import numpy as np

rng = np.random.default_rng(11)


def positive(*shape):
    return rng.uniform(0.5, 3.0, size=shape)


def chances(*shape):
    return rng.uniform(0.1, 0.9, size=shape)


def normal(*shape):
    return rng.normal(size=shape)


def covariance(*shape):
    root = normal(*shape)
    return root @ np.swapaxes(root, -1, -2) + np.eye(shape[-1])


LOC, SCALE, SHAPE = normal(3, 2), positive(3, 2), positive(2)
P, LOGITS = chances(3, 2), normal(3, 2)
WEIGHTS, LOG_WEIGHTS = positive(3, 4), normal(3, 4)
COV, BATCH_COV = covariance(3, 3), covariance(2, 3, 3)
TRIL = np.linalg.cholesky(BATCH_COV)
FACTOR, DIAG = normal(2, 3, 1), positive(2, 3)

CASES = {
    "Bernoulli": lambda D, t: D.Bernoulli(t(P)),
    "Bernoulli-logits": lambda D, t: D.Bernoulli(logits=t(LOGITS)),
    "Bernoulli-number": lambda D, t: D.Bernoulli(0.25),
    "Beta": lambda D, t: D.Beta(t(SCALE), t(SHAPE)),
    "Beta-number": lambda D, t: D.Beta(0.5, 2.0),
    "Binomial": lambda D, t: D.Binomial(5, t(P)),
    "Binomial-logits": lambda D, t: D.Binomial(t([3, 7]), logits=t(LOGITS)),
    "Categorical": lambda D, t: D.Categorical(t(WEIGHTS)),
    "Categorical-logits": lambda D, t: D.Categorical(logits=t(LOG_WEIGHTS)),
    "Categorical-flat": lambda D, t: D.Categorical(t(WEIGHTS[0])),
    "Cauchy": lambda D, t: D.Cauchy(t(LOC), t(SCALE)),
    "Chi2": lambda D, t: D.Chi2(t(SCALE)),
    "ContinuousBernoulli": lambda D, t: D.ContinuousBernoulli(t([0.1, 0.4995, 0.5, 0.5008, 0.9])),
    "ContinuousBernoulli-logits": lambda D, t: D.ContinuousBernoulli(logits=t(LOGITS)),
    "Dirichlet": lambda D, t: D.Dirichlet(t(WEIGHTS)),
    "Exponential": lambda D, t: D.Exponential(t(SCALE)),
    "FisherSnedecor": lambda D, t: D.FisherSnedecor(t(SCALE), t(SHAPE * 3)),
    "Gamma": lambda D, t: D.Gamma(t(SCALE), t(SHAPE)),
    "GeneralizedPareto": lambda D, t: D.GeneralizedPareto(
        t([0.5, 0.0, 1.0, 0.0]), t([1.0, 2.0, 1.0, 3.0]), t([0.3, 0.0, -1.0, 1.2])
    ),
    "Geometric": lambda D, t: D.Geometric(t(P)),
    "Geometric-logits": lambda D, t: D.Geometric(logits=t(LOGITS)),
    "Gumbel": lambda D, t: D.Gumbel(t(LOC), t(SCALE)),
    "HalfCauchy": lambda D, t: D.HalfCauchy(t(SCALE)),
    "HalfNormal": lambda D, t: D.HalfNormal(t(SCALE)),
    "Independent": lambda D, t: D.Independent(D.Normal(t(LOC), t(SCALE)), 1),
    "Independent-all": lambda D, t: D.Independent(D.Gamma(t(SCALE), t(SHAPE)), 2),
    "InverseGamma": lambda D, t: D.InverseGamma(t(SCALE), t(SHAPE)),
    "Kumaraswamy": lambda D, t: D.Kumaraswamy(t(SCALE), t(SHAPE)),
    "LKJCholesky": lambda D, t: D.LKJCholesky(3, t([0.5, 1.0])),
    "LKJCholesky-2": lambda D, t: D.LKJCholesky(2, t(1.5)),
    "Laplace": lambda D, t: D.Laplace(t(LOC), t(SCALE)),
    "LogNormal": lambda D, t: D.LogNormal(t(LOC), t(SCALE)),
    "LogisticNormal": lambda D, t: D.LogisticNormal(t(LOC), t(SCALE)),
    "LowRankMultivariateNormal": lambda D, t: D.LowRankMultivariateNormal(
        t(normal_loc), t(FACTOR), t(DIAG)
    ),
    "LowRankMultivariateNormal-flat": lambda D, t: D.LowRankMultivariateNormal(
        t(DIAG), t(FACTOR[0]), t(DIAG[0])
    ),
    "MixtureSameFamily": lambda D, t: D.MixtureSameFamily(
        D.Categorical(t(P)), D.Normal(t(LOC), t(SCALE))
    ),
    "MixtureSameFamily-vectors": lambda D, t: D.MixtureSameFamily(
        D.Categorical(t(SHAPE)), D.MultivariateNormal(t(DIAG), t(BATCH_COV))
    ),
    "Multinomial": lambda D, t: D.Multinomial(6, t(WEIGHTS)),
    "Multinomial-logits": lambda D, t: D.Multinomial(3, logits=t(LOG_WEIGHTS)),
    "MultivariateNormal": lambda D, t: D.MultivariateNormal(t(DIAG), t(COV)),
    "MultivariateNormal-precision": lambda D, t: D.MultivariateNormal(
        t(DIAG[0]), precision_matrix=t(BATCH_COV)
    ),
    "MultivariateNormal-tril": lambda D, t: D.MultivariateNormal(t(DIAG), scale_tril=t(TRIL)),
    "NegativeBinomial": lambda D, t: D.NegativeBinomial(t(SHAPE * 4), t(P)),
    "NegativeBinomial-logits": lambda D, t: D.NegativeBinomial(3.0, logits=t(LOGITS)),
    "Normal": lambda D, t: D.Normal(t(LOC), t(SCALE)),
    "Normal-broadcast": lambda D, t: D.Normal(t(LOC), t(SHAPE)),
    "Normal-numbers": lambda D, t: D.Normal(0.5, 2),
    "OneHotCategorical": lambda D, t: D.OneHotCategorical(t(WEIGHTS)),
    "OneHotCategorical-logits": lambda D, t: D.OneHotCategorical(logits=t(LOG_WEIGHTS)),
    "OneHotCategoricalStraightThrough": lambda D, t: D.OneHotCategoricalStraightThrough(t(WEIGHTS)),
    "Pareto": lambda D, t: D.Pareto(t(SCALE), t(SHAPE)),
    "Poisson": lambda D, t: D.Poisson(t(SCALE)),
    "RelaxedBernoulli": lambda D, t: D.RelaxedBernoulli(t(0.7), t(P)),
    "RelaxedBernoulli-logits": lambda D, t: D.RelaxedBernoulli(t(0.7), logits=t(LOGITS)),
    "RelaxedOneHotCategorical": lambda D, t: D.RelaxedOneHotCategorical(t(0.7), t(WEIGHTS)),
    "RelaxedOneHotCategorical-logits": lambda D, t: D.RelaxedOneHotCategorical(
        t(0.7), logits=t(LOG_WEIGHTS)
    ),
    "StudentT": lambda D, t: D.StudentT(t([0.7, 1.5, 4.0]), t([0.0, 1.0, 2.0]), t([1.0, 2.0, 0.5])),
    "StudentT-default": lambda D, t: D.StudentT(t(SCALE)),
    "TransformedDistribution": lambda D, t: D.TransformedDistribution(
        D.Normal(t(LOC), t(SCALE)),
        [D.AffineTransform(t([0.5, 1.0]), -2.0), D.SigmoidTransform()],
    ),
    "TransformedDistribution-vectors": lambda D, t: D.TransformedDistribution(
        D.Normal(t(LOC), t(SCALE)), [D.ExpTransform(), D.StickBreakingTransform()]
    ),
    "Uniform": lambda D, t: D.Uniform(t(LOC), t(LOC + SCALE)),
    "VonMises": lambda D, t: D.VonMises(t(LOC), t(SCALE)),
    "Weibull": lambda D, t: D.Weibull(t(SCALE), t(SHAPE)),
    "Wishart": lambda D, t: D.Wishart(t([3.5, 5.0]), t(COV)),
    "Wishart-precision": lambda D, t: D.Wishart(t(4.0), precision_matrix=t(BATCH_COV)),
    "Wishart-tril": lambda D, t: D.Wishart(t([4.0, 6.5]), scale_tril=t(TRIL)),
}
normal_loc = normal(3)

# Of classes that kl_divergence knows. A pair is compared if PyTorch has it.
KL_CASES = {
    "Bernoulli": lambda D, t: D.Bernoulli(t([0.3, 0.6])),
    "Bernoulli-2": lambda D, t: D.Bernoulli(t([0.0, 0.9])),
    "Beta": lambda D, t: D.Beta(t([1.5, 2.5]), t([3.0, 0.7])),
    "Beta-2": lambda D, t: D.Beta(t([0.5, 1.0]), t([1.0, 4.0])),
    "Binomial": lambda D, t: D.Binomial(t([4.0, 4.0]), t([0.2, 0.6])),
    "Binomial-2": lambda D, t: D.Binomial(t([4.0, 3.0]), t([0.5, 0.6])),
    "Categorical": lambda D, t: D.Categorical(t([[0.2, 0.3, 0.5], [0.5, 0.5, 0.0]])),
    "Categorical-2": lambda D, t: D.Categorical(t([[0.5, 0.2, 0.3], [0.5, 0.0, 0.5]])),
    "Cauchy": lambda D, t: D.Cauchy(t([0.0, 1.0]), t([1.0, 0.5])),
    "ContinuousBernoulli": lambda D, t: D.ContinuousBernoulli(t([0.2, 0.5])),
    "ContinuousBernoulli-2": lambda D, t: D.ContinuousBernoulli(t([0.7, 0.4])),
    "Dirichlet": lambda D, t: D.Dirichlet(t([[1.0, 2.0, 0.5], [3.0, 1.0, 1.0]])),
    "Dirichlet-2": lambda D, t: D.Dirichlet(t([2.0, 1.0, 0.7])),
    "Exponential": lambda D, t: D.Exponential(t([0.5, 2.0])),
    "Exponential-2": lambda D, t: D.Exponential(t([1.5, 0.3])),
    "Gamma": lambda D, t: D.Gamma(t([0.7, 3.0]), t([1.0, 2.0])),
    "Gamma-2": lambda D, t: D.Gamma(t([2.0, 1.0]), t([0.5, 2.5])),
    "Geometric": lambda D, t: D.Geometric(t([0.3, 0.8])),
    "Gumbel": lambda D, t: D.Gumbel(t([0.0, -1.0]), t([1.0, 2.0])),
    "Gumbel-2": lambda D, t: D.Gumbel(t([0.5, 1.0]), t([0.7, 1.0])),
    "HalfNormal": lambda D, t: D.HalfNormal(t([0.5, 2.0])),
    "HalfNormal-2": lambda D, t: D.HalfNormal(t([1.0, 1.0])),
    "Independent": lambda D, t: D.Independent(D.Normal(t([[0.0], [1.0]]), t([[1.0, 2.0]])), 1),
    "Laplace": lambda D, t: D.Laplace(t([0.0, 1.0]), t([1.0, 0.5])),
    "Laplace-2": lambda D, t: D.Laplace(t([0.5, -1.0]), t([2.0, 0.5])),
    "LogNormal": lambda D, t: D.LogNormal(t([0.0, 1.0]), t([1.0, 0.5])),
    "LowRankMultivariateNormal": lambda D, t: D.LowRankMultivariateNormal(
        t(DIAG), t(FACTOR), t(DIAG)
    ),
    "LowRankMultivariateNormal-flat": lambda D, t: D.LowRankMultivariateNormal(
        t(normal_loc), t(FACTOR[1]), t(DIAG[1])
    ),
    "MultivariateNormal": lambda D, t: D.MultivariateNormal(t(DIAG), t(BATCH_COV)),
    "MultivariateNormal-flat": lambda D, t: D.MultivariateNormal(t(normal_loc), t(COV)),
    "Normal": lambda D, t: D.Normal(t([0.3, -1.0]), t([1.0, 0.5])),
    "Normal-2": lambda D, t: D.Normal(t([1.0, 0.0]), t([2.0, 1.5])),
    "OneHotCategorical": lambda D, t: D.OneHotCategorical(t([[0.2, 0.3, 0.5], [0.5, 0.1, 0.4]])),
    "Pareto": lambda D, t: D.Pareto(t([1.0, 0.5]), t([3.0, 2.5])),
    "Pareto-2": lambda D, t: D.Pareto(t([0.5, 1.0]), t([1.0, 4.0])),
    "Poisson": lambda D, t: D.Poisson(t([0.5, 3.0])),
    "Poisson-2": lambda D, t: D.Poisson(t([1.5, 0.7])),
    "Uniform": lambda D, t: D.Uniform(t([0.2, 0.6]), t([0.9, 0.8])),
    "Uniform-2": lambda D, t: D.Uniform(t([-1.0, 0.5]), t([2.0, 3.0])),
    "Wishart": lambda D, t: D.Wishart(t(4.0), t(COV)),
    "Wishart-2": lambda D, t: D.Wishart(t(5.0), t(np.eye(3))),
    "StudentT": lambda D, t: D.StudentT(t(3.0)),
}

TRANSFORM_CASES = {
    "Abs": lambda D, t: D.AbsTransform(),
    "Affine": lambda D, t: D.AffineTransform(t([0.5, -1.0]), t([2.0, -3.0])),
    "Affine-numbers": lambda D, t: D.AffineTransform(1.0, -2.0),
    "Affine-vectors": lambda D, t: D.AffineTransform(t([0.5, -1.0]), t([2.0, -3.0]), event_dim=1),
    "Cat": lambda D, t: D.CatTransform(
        [D.ExpTransform(), D.AffineTransform(0.0, 2.0)], dim=-1, lengths=[1, 1]
    ),
    "Compose": lambda D, t: D.ComposeTransform([D.AffineTransform(1.0, 0.5), D.SigmoidTransform()]),
    "Compose-vectors": lambda D, t: D.ComposeTransform(
        [D.ExpTransform(), D.StickBreakingTransform()]
    ),
    "Compose-reshape": lambda D, t: D.ComposeTransform(
        [D.ReshapeTransform((2,), (2, 1)), D.AffineTransform(0.0, 3.0, event_dim=2)]
    ),
    "CorrCholesky": lambda D, t: D.CorrCholeskyTransform(),
    "Cumulative": lambda D, t: D.CumulativeDistributionTransform(D.Normal(t(0.5), t(2.0))),
    "Exp": lambda D, t: D.ExpTransform(),
    "Identity": lambda D, t: D.transforms.identity_transform,
    "Independent": lambda D, t: D.IndependentTransform(D.SigmoidTransform(), 1),
    "LowerCholesky": lambda D, t: D.LowerCholeskyTransform(),
    "PositiveDefinite": lambda D, t: D.PositiveDefiniteTransform(),
    "Power": lambda D, t: D.PowerTransform(t(1.5)),
    "Power-falling": lambda D, t: D.PowerTransform(t(-0.5)),
    "Reshape": lambda D, t: D.ReshapeTransform((2, 3), (3, 2)),
    "Sigmoid": lambda D, t: D.SigmoidTransform(),
    "Softmax": lambda D, t: D.SoftmaxTransform(),
    "Softplus": lambda D, t: D.SoftplusTransform(),
    "Stack": lambda D, t: D.StackTransform([D.ExpTransform(), D.TanhTransform()], dim=-1),
    "StickBreaking": lambda D, t: D.StickBreakingTransform(),
    "Tanh": lambda D, t: D.TanhTransform(),
}


def transform_input(name, event_dim, batch):
    """Numbers in the domain of a transform."""
    sizes = {"CorrCholesky": (6,), "Compose-reshape": (2,), "Reshape": (2, 3)}.get(name)
    if sizes is None:
        sizes = (3, 3) if event_dim == 2 else (2,)
    x = np.random.default_rng(2).normal(size=(*batch, *sizes))
    return np.abs(x) + 0.1 if name.startswith("Power") else x
