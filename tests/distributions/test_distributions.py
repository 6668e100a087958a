"""Distributions against SciPy: densities, cdf, moments, entropy, and the samples themselves."""

import numpy as np
import pytest
import scipy.stats as stats
from distributions.cases import CASES
from distributions.doubles import t

import rushlight as torch

D = torch.distributions


# Ours, and a frozen distribution of SciPy.
CONTINUOUS = {
    "Beta": (D.Beta(t(2.0), t(0.7)), stats.beta(2, 0.7)),
    "Cauchy": (D.Cauchy(t(1.0), t(2.0)), stats.cauchy(1, 2)),
    "Chi2": (D.Chi2(t(3.5)), stats.chi2(3.5)),
    "Exponential": (D.Exponential(t(2.0)), stats.expon(scale=0.5)),
    "FisherSnedecor": (D.FisherSnedecor(t(3.0), t(7.0)), stats.f(3, 7)),
    "Gamma": (D.Gamma(t(0.6), t(2.0)), stats.gamma(0.6, scale=0.5)),
    "GeneralizedPareto": (
        D.GeneralizedPareto(t(1.0), t(2.0), t(0.2)),
        stats.genpareto(0.2, loc=1, scale=2),
    ),
    "GeneralizedPareto bounded": (
        D.GeneralizedPareto(t(0.0), t(2.0), t(-0.5)),
        stats.genpareto(-0.5, scale=2),
    ),
    "GeneralizedPareto exponential": (
        D.GeneralizedPareto(t(0.0), t(2.0), t(0.0)),
        stats.genpareto(0.0, scale=2),
    ),
    "Gumbel": (D.Gumbel(t(1.0), t(2.0)), stats.gumbel_r(1, 2)),
    "HalfCauchy": (D.HalfCauchy(t(2.0)), stats.halfcauchy(scale=2)),
    "HalfNormal": (D.HalfNormal(t(2.0)), stats.halfnorm(scale=2)),
    "InverseGamma": (D.InverseGamma(t(3.0), t(2.0)), stats.invgamma(3, scale=2)),
    "Laplace": (D.Laplace(t(1.0), t(2.0)), stats.laplace(1, 2)),
    "LogNormal": (D.LogNormal(t(0.5), t(0.3)), stats.lognorm(0.3, scale=np.exp(0.5))),
    "Normal": (D.Normal(t(1.0), t(2.0)), stats.norm(1, 2)),
    "Pareto": (D.Pareto(t(2.0), t(3.0)), stats.pareto(3, scale=2)),
    "StudentT": (D.StudentT(t(5.0), t(1.0), t(2.0)), stats.t(5, 1, 2)),
    "Uniform": (D.Uniform(t(-1.0), t(3.0)), stats.uniform(-1, 4)),
    "VonMises": (D.VonMises(t(0.5), t(2.0)), stats.vonmises(2, 0.5)),
    "VonMises flat": (D.VonMises(t(0.0), t(1e-6)), stats.vonmises(1e-6)),
    "Weibull": (D.Weibull(t(2.0), t(1.5)), stats.weibull_min(1.5, scale=2)),
}
DISCRETE = {
    "Bernoulli": (D.Bernoulli(t(0.3)), stats.bernoulli(0.3)),
    "Binomial": (D.Binomial(6, t(0.3)), stats.binom(6, 0.3)),
    "Categorical": (
        D.Categorical(t([1.0, 2.0, 5.0])),
        stats.rv_discrete(values=(range(3), [1 / 8, 2 / 8, 5 / 8])),
    ),
    "Geometric": (D.Geometric(t(0.3)), stats.geom(0.3, loc=-1)),
    "NegativeBinomial": (D.NegativeBinomial(t(3.5), t(0.3)), stats.nbinom(3.5, 0.7)),
    "Poisson": (D.Poisson(t(2.5)), stats.poisson(2.5)),
}
ALL = {**CONTINUOUS, **DISCRETE}
NO_MOMENTS = ("Cauchy", "HalfCauchy", "Categorical")


def close(ours, theirs, tolerance=1e-9):
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ALL)
def test_log_prob(name):
    ours, theirs = ALL[name]
    if name in DISCRETE:
        value = np.arange(2.0) if name == "Bernoulli" else np.arange(3.0)
        close(ours.log_prob(t(value)), theirs.logpmf(value))
    else:
        value = theirs.ppf([0.01, 0.3, 0.5, 0.9])
        close(ours.log_prob(t(value)), theirs.logpdf(value))


@pytest.mark.parametrize("name", [n for n in ALL if n not in NO_MOMENTS])
def test_moments(name):
    ours, theirs = ALL[name]
    if not name.startswith("VonMises"):  # whose variance is circular
        close(ours.variance, theirs.var())
        close(ours.stddev, theirs.std())
    close(ours.mean, theirs.mean(), 1e-7)


@pytest.mark.parametrize("name", ALL)
def test_entropy(name):
    ours, theirs = ALL[name]
    try:
        entropy = ours.entropy()
    except NotImplementedError:
        return
    close(entropy, theirs.entropy(), 1e-7)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_cdf_and_icdf(name):
    ours, theirs = CONTINUOUS[name]
    p = np.array([0.01, 0.3, 0.5, 0.9])
    value = theirs.ppf(p)
    try:
        close(ours.cdf(t(value)), p)
    except NotImplementedError:
        return
    try:
        close(ours.icdf(t(p)), value)
    except NotImplementedError:
        return


@pytest.mark.parametrize("name", CONTINUOUS)
def test_samples_pass_a_kolmogorov_smirnov_test(name):
    torch.manual_seed(3)
    ours, theirs = CONTINUOUS[name]
    sample = ours.sample((5000,)).numpy()
    assert stats.kstest(sample, theirs.cdf).pvalue > 1e-3


@pytest.mark.parametrize("name", DISCRETE)
def test_samples_pass_a_chi_square_test(name):
    torch.manual_seed(3)
    ours, theirs = DISCRETE[name]
    sample, count = ours.sample((5000,)).numpy(), 5000
    values = np.arange(2 if name == "Bernoulli" else 3)
    seen = np.array([(sample == k).sum() for k in values])
    expected = theirs.pmf(values) * count
    if (rest := count - expected.sum()) > 1:
        seen, expected = np.append(seen, count - seen.sum()), np.append(expected, rest)
    assert stats.chisquare(seen, expected, sum_check=False).pvalue > 1e-3


@pytest.mark.parametrize("name", CASES)
def test_samples_have_the_mean_and_the_variance(name):
    torch.manual_seed(5)
    distribution = CASES[name](D, t)
    if name.startswith(("GeneralizedPareto", "FisherSnedecor", "VonMises", "Categorical")):
        return  # infinite, or circular, or not there
    count = 20_000
    sample = distribution.sample((count,)).to(torch.float64)
    try:
        mean, variance = distribution.mean, distribution.variance
    except NotImplementedError:
        return
    known = torch.isfinite(mean) & torch.isfinite(variance) & (variance > 1e-12)
    # The fourth moment, of the sample, tells how far its variance may be off.
    far = (sample.mean(0) - mean).abs() / (variance / count).sqrt()
    assert (far[known] < 6).all()
    if name.startswith(("InverseGamma", "LogNormal", "Pareto", "StudentT")):
        return  # of infinite or huge fourth moments
    squares = (sample - mean).square()
    far = (squares.mean(0) - variance).abs() / (squares.std(0) / count**0.5)
    assert (far[known] < 6).all()


def test_vectors_and_matrices_have_scipys_densities():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    covariance, mean, x = root @ root.T + np.eye(3), rng.normal(size=3), rng.normal(size=3)
    expected = stats.multivariate_normal(mean, covariance)
    for form in (
        {"covariance_matrix": covariance},
        {"precision_matrix": np.linalg.inv(covariance)},
        {"scale_tril": np.linalg.cholesky(covariance)},
    ):
        ours = D.MultivariateNormal(t(mean), **{k: t(v) for k, v in form.items()})
        close(ours.log_prob(t(x)), expected.logpdf(x))
        close(ours.entropy(), expected.entropy())
        close(ours.covariance_matrix, covariance)
        close(ours.precision_matrix, np.linalg.inv(covariance))
        close(ours.scale_tril, np.linalg.cholesky(covariance))
    factor, diagonal = rng.normal(size=(3, 1)), rng.uniform(0.5, 1, size=3)
    low_rank = D.LowRankMultivariateNormal(t(mean), t(factor), t(diagonal))
    covariance = factor @ factor.T + np.diag(diagonal)
    expected = stats.multivariate_normal(mean, covariance)
    close(low_rank.log_prob(t(x)), expected.logpdf(x))
    close(low_rank.entropy(), expected.entropy())
    close(low_rank.precision_matrix, np.linalg.inv(covariance))
    close(low_rank.scale_tril, np.linalg.cholesky(covariance))
    matrix = stats.wishart(5, covariance)
    wishart = D.Wishart(t(5.0), t(covariance))
    close(wishart.log_prob(t(covariance * 4)), matrix.logpdf(covariance * 4))
    close(wishart.entropy(), matrix.entropy())
    dirichlet = D.Dirichlet(t([1.0, 2.0, 0.5]))
    close(
        dirichlet.log_prob(t([0.2, 0.3, 0.5])), stats.dirichlet([1, 2, 0.5]).logpdf([0.2, 0.3, 0.5])
    )
    close(dirichlet.entropy(), stats.dirichlet([1, 2, 0.5]).entropy())
    counts = D.Multinomial(6, t([0.2, 0.3, 0.5]))
    close(
        counts.log_prob(t([1.0, 2.0, 3.0])), stats.multinomial(6, [0.2, 0.3, 0.5]).logpmf([1, 2, 3])
    )
    close(counts.entropy(), stats.multinomial(6, [0.2, 0.3, 0.5]).entropy())


@pytest.mark.parametrize("row", [(1, 0), (2, 0), (2, 1)])
def test_correlations_of_lkj_are_beta_numbers(row):
    torch.manual_seed(2)
    L = D.LKJCholesky(3, t(1.5)).sample((4000,))
    correlation = (L @ L.mT)[:, row[0], row[1]].numpy()
    # Each is 2 b - 1 with b of Beta(a, a), a = concentration - 1 + dim / 2.
    assert stats.kstest((correlation + 1) / 2, stats.beta(2.0, 2.0).cdf).pvalue > 1e-3


def test_density_of_lkj_integrates_to_one():
    r = np.linspace(-1, 1, 20001)[1:-1]
    L = np.zeros((len(r), 2, 2))
    L[:, 0, 0], L[:, 1, 0], L[:, 1, 1] = 1, r, np.sqrt(1 - r * r)
    # In terms of r: L has the element sqrt(1 - r^2), whose log_prob is already that of L's row.
    density = D.LKJCholesky(2, t(2.5), validate_args=False).log_prob(t(L)).exp().numpy()
    assert np.trapezoid(density, r) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_density_of_relaxed_bernoulli_integrates_to_one(temperature):
    x = np.linspace(-60, 60, 20_001)
    y = t(x).sigmoid()
    soft = D.RelaxedBernoulli(t(temperature), t(0.3), validate_args=False)
    density = (soft.log_prob(y) + (y * (1 - y)).log()).exp().numpy()  # over the log odds
    assert np.trapezoid(density, x) == pytest.approx(1, abs=1e-3)


def test_extreme_logits_of_continuous_bernoulli_are_those_of_clamped_chances():
    logits = torch.tensor([1e38, -1e38, 100.0], requires_grad=True)
    at_bounds = D.ContinuousBernoulli(torch.tensor([1.0, 0.0, 1.0]))
    found = D.ContinuousBernoulli(logits=logits)
    density = found.log_prob(torch.tensor([1.0, 0.0, 1.0]))
    np.testing.assert_allclose(density.detach(), 2.76898, rtol=1e-5)
    (gradient,) = torch.autograd.grad(density.sum(), logits)
    assert gradient.tolist() == [0.0, 0.0, 0.0]
    for name in ("mean", "variance"):
        assert getattr(found, name).equal(getattr(at_bounds, name))
    assert found.entropy().equal(at_bounds.entropy())


def test_density_of_continuous_bernoulli_integrates_to_one():
    x = np.linspace(0, 1, 20_001)
    for p in (0.05, 0.4995, 0.5, 0.8):
        density = D.ContinuousBernoulli(t(p)).log_prob(t(x)).exp().numpy()
        assert np.trapezoid(density, x) == pytest.approx(1, abs=1e-6)


# Its natural parameters and log normalizer say what entropy says in closed form.
@pytest.mark.parametrize(
    "name",
    [
        "Bernoulli",
        "Beta",
        "ContinuousBernoulli-logits",
        "Dirichlet",
        "Exponential",
        "Gamma",
        "Normal",
    ],
)
def test_entropy_of_exponential_families_is_that_of_their_natural_parameters(name):
    distribution = CASES[name](D, t)
    general = D.ExponentialFamily.entropy(distribution)
    torch.testing.assert_close(general, distribution.entropy())


def test_entropy_of_exponential_families_has_gradients():
    rate = t(2.0).requires_grad_()
    (grad,) = torch.autograd.grad(D.ExponentialFamily.entropy(D.Exponential(rate)), rate)
    assert grad.item() == pytest.approx(-0.5)


def test_gammas_draw_from_a_generator_of_the_program() -> None:
    for gamma in (D.Gamma(t([2.0, 3.0]), t(1.0)), D.Chi2(t([2.0, 3.0]))):
        first, second = (
            draw((4,), generator=torch.Generator().manual_seed(1))
            for draw in (gamma.sample, gamma.rsample)
        )
        assert torch.equal(first, second) and first.shape == (4, 2)
        assert not torch.equal(first, gamma.sample((4,)))
