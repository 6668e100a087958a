"""Samples and densities are differentiable functions of the parameters."""

import pytest
from distributions.cases import CASES
from distributions.doubles import t

import rushlight as torch

D = torch.distributions
REPARAMETERIZED = [
    n
    for n in CASES
    if "-" not in n and CASES[n](D, lambda x: torch.tensor(x, dtype=torch.float64)).has_rsample
]


def with_grad(case):
    """A distribution and the leaves that its case makes."""
    leaves = []

    def leaf(x):
        leaves.append(t(x).requires_grad_())
        return leaves[-1]

    return case(D, leaf), leaves


@pytest.mark.parametrize("name", REPARAMETERIZED)
def test_rsample_reaches_the_parameters_and_sample_does_not(name):
    distribution, leaves = with_grad(CASES[name])
    assert not distribution.sample((3,)).requires_grad
    sample = distribution.rsample((3,))
    grads = torch.autograd.grad(sample.sum(), leaves, allow_unused=True)
    assert any(g is not None for g in grads)
    assert all(torch.isfinite(g).all() for g in grads if g is not None)


# Numbers that are a function of the parameters and of a draw that the seed repeats.
SMOOTH = [
    "Cauchy", "ContinuousBernoulli-logits", "Exponential", "GeneralizedPareto", "Gumbel",
    "HalfCauchy", "HalfNormal", "Independent", "Kumaraswamy", "Laplace", "LogNormal",
    "LogisticNormal", "LowRankMultivariateNormal", "MultivariateNormal-tril", "Normal", "Pareto",
    "RelaxedBernoulli-logits", "RelaxedOneHotCategorical-logits", "TransformedDistribution",
    "Uniform", "Weibull",
]  # fmt: skip


@pytest.mark.parametrize("name", SMOOTH)
def test_gradient_of_rsample_is_that_of_finite_differences(name):
    given = []
    CASES[name](D, lambda x: given.append(t(x)) or given[-1])

    def sample(*parameters):
        torch.manual_seed(1)
        remaining = iter(parameters)
        return CASES[name](D, lambda x: next(remaining)).rsample((2,))

    D.Distribution.set_default_validate_args(False)
    try:
        assert torch.autograd.gradcheck(
            sample, [g.clone().requires_grad_() for g in given], atol=1e-4
        )
    finally:
        D.Distribution.set_default_validate_args(True)


# The mean of the gradient of f(x) is the gradient of the mean of f(x), which is known.
MEANS = {
    "Gamma": (lambda a, b: D.Gamma(a, b), lambda a, b: a / b, (1.7, 0.8)),
    "Gamma below 1": (lambda a, b: D.Gamma(a, b), lambda a, b: a / b, (0.4, 2.0)),
    "Chi2": (lambda df: D.Chi2(df), lambda df: df, (2.5,)),
    "Beta": (lambda a, b: D.Beta(a, b), lambda a, b: a / (a + b), (0.8, 2.0)),
    "StudentT": (
        lambda df, loc: D.TransformedDistribution(D.StudentT(df, loc), D.AbsTransform()),
        lambda df, loc: torch.as_tensor(
            2 * df.sqrt() / (df - 1)
            * torch.exp(torch.lgamma((df + 1) / 2) - torch.lgamma(df / 2)) / torch.pi**0.5
        ),
        (6.0, 0.0),
    ),
    "FisherSnedecor": (lambda a, b: D.FisherSnedecor(a, b), lambda a, b: b / (b - 2), (4.0, 12.0)),
    "InverseGamma": (lambda a, b: D.InverseGamma(a, b), lambda a, b: b / (a - 1), (6.0, 2.0)),
    "Dirichlet": (
        lambda a, b: D.Dirichlet(torch.stack([a, b, b])),
        lambda a, b: torch.stack([a, b, b])[0] / (a + 2 * b),
        (1.2, 0.5),
    ),
    "Wishart": (
        lambda df: D.Wishart(df, torch.eye(2, dtype=torch.float64)),
        lambda df: df,
        (4.0,),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MEANS)
def test_gradient_of_rsample_has_the_right_mean(name):
    torch.manual_seed(4)
    make, mean, at = MEANS[name]
    count = 20_000
    leaves = [torch.full((count,), x, dtype=torch.float64, requires_grad=True) for x in at]
    if name in ("Dirichlet", "Wishart"):
        leaves = [t(x).requires_grad_() for x in at]
        sample = make(*leaves).rsample((count,))
        sample = sample[:, 0] if name == "Dirichlet" else sample[:, 0, 0]
        grads = torch.autograd.grad(sample.mean(), leaves)
        spread = [0.03] * len(at)
    else:
        sample = make(*leaves).rsample()
        each = torch.autograd.grad(sample.sum(), leaves)
        grads = [g.mean() for g in each]
        spread = [5 * g.std().item() / count**0.5 + 1e-9 for g in each]
    exact = [t(x).requires_grad_() for x in at]
    expected = torch.autograd.grad(mean(*exact), exact, allow_unused=True)
    for grad, want, far in zip(grads, expected, spread, strict=True):
        if want is not None:
            assert grad.item() == pytest.approx(want.item(), abs=far)


def test_score_function_gradient_of_a_policy():
    torch.manual_seed(0)
    logits = torch.zeros(2, requires_grad=True)
    policy = D.Categorical(logits=logits)
    action = policy.sample((1000,))
    reward = (action == 1).float()
    loss = -(policy.log_prob(action) * (reward - reward.mean())).mean()
    (grad,) = torch.autograd.grad(loss, logits)
    assert grad[1] < -0.2 and grad[0] > 0.2


def test_straight_through_samples_have_the_gradient_of_probs():
    logits = torch.zeros(3, requires_grad=True)
    sample = D.OneHotCategoricalStraightThrough(logits=logits).rsample()
    weights = torch.tensor([1.0, 2.0, 3.0])
    (grad,) = torch.autograd.grad((sample * weights).sum(), logits)
    (expected,) = torch.autograd.grad((logits.softmax(-1) * weights).sum(), logits)
    torch.testing.assert_close(grad, expected)
