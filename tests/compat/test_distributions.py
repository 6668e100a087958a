"""Distributions give what PyTorch's give: numbers, shapes, gradients, reprs, classes of errors."""

import warnings

import numpy as np
import pytest
from distributions.cases import CASES, KL_CASES, TRANSFORM_CASES, transform_input

import rushlight as torch

pytorch = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore:Singular sample:UserWarning")

OURS, THEIRS = torch.distributions, pytorch.distributions


def made(case, library):
    def t(x):
        return library.tensor(x, dtype=library.float64)

    return case(library.distributions, t)


@pytest.fixture(autouse=True)
def float64_by_default():
    """As PyTorch's GeneralizedPareto compares its parameters with numbers of the default dtype."""
    for library in (torch, pytorch):
        library.set_default_dtype(library.float64)
    yield
    for library in (torch, pytorch):
        library.set_default_dtype(library.float32)


def pair(name, cases=CASES):
    return made(cases[name], torch), made(cases[name], pytorch)


def values_of(theirs, count=4):
    pytorch.manual_seed(0)
    value = theirs.sample((count,))
    return torch.from_numpy(value.numpy()), value


def same(ours, theirs, tolerance=1e-9):
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert str(ours.dtype) == str(theirs.dtype)
    ours, theirs = ours.detach().numpy(), theirs.detach().numpy()
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CASES)
def test_shapes_and_flags(name):
    ours, theirs = pair(name)
    for attribute in ("batch_shape", "event_shape", "has_rsample", "has_enumerate_support"):
        assert getattr(ours, attribute) == getattr(theirs, attribute), attribute
    assert repr(ours.support) == repr(theirs.support)
    assert ours.support.event_dim == theirs.support.event_dim
    assert ours.support.is_discrete == theirs.support.is_discrete
    assert set(ours.arg_constraints) == set(theirs.arg_constraints)
    for key, constraint in theirs.arg_constraints.items():
        assert repr(ours.arg_constraints[key]) == repr(constraint)
        if key in vars(theirs):
            same(vars(ours)[key], vars(theirs)[key])
    sample = ours.sample((2, 5))
    assert tuple(sample.shape) == tuple(theirs.sample((2, 5)).shape)
    assert str(sample.dtype) == str(theirs.sample().dtype)
    assert ours.support.check(sample).all()


# PyTorch's formula takes logarithms of negative numbers.
UNKNOWN_THERE = {("Kumaraswamy", "mode")}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("what", ["mean", "mode", "variance", "stddev", "entropy", "perplexity"])
def test_moments(name, what):
    ours, theirs = pair(name)

    def of(distribution):
        result = getattr(distribution, what)
        return result() if callable(result) else result

    try:
        expected = of(theirs)
    except NotImplementedError:
        with pytest.raises(NotImplementedError):
            of(ours)
        return
    if (name, what) in UNKNOWN_THERE:
        assert expected.isnan().all()
        return
    same(of(ours), expected, 1e-6 if name in ("VonMises", "Multinomial") else 1e-9)


@pytest.mark.parametrize("name", CASES)
def test_log_prob_with_gradient(name):
    ours, theirs = pair(name)
    value, their_value = values_of(theirs)
    tolerance = 1e-7 if name.startswith(("VonMises", "LKJ")) else 1e-9
    same(ours.log_prob(value), theirs.log_prob(their_value), tolerance)
    if theirs.support.is_discrete or name.startswith("Wishart"):
        return
    grads = []
    for library, distribution, x in ((torch, ours, value), (pytorch, theirs, their_value)):
        x = x.clone().requires_grad_()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            log_prob = distribution.log_prob(x)
        if not log_prob.requires_grad:
            continue
        grads.append(library.autograd.grad(log_prob.sum(), x)[0])
    if len(grads) == 2:
        same(*grads, 1e-6)


@pytest.mark.parametrize("name", CASES)
def test_cdf_and_icdf(name):
    ours, theirs = pair(name)
    value, their_value = values_of(theirs)
    for what in ("cdf", "icdf"):
        try:
            expected = getattr(theirs, what)(their_value)
        except (NotImplementedError, RuntimeError, ValueError):
            with pytest.raises((NotImplementedError, RuntimeError, ValueError)):
                getattr(ours, what)(value)
            return
        same(getattr(ours, what)(value), expected, 1e-7)
        their_value = expected.clamp(0.001, 0.999)
        value = torch.from_numpy(their_value.numpy())


@pytest.mark.parametrize("name", CASES)
def test_enumerate_support(name):
    ours, theirs = pair(name)
    for expand in (True, False):
        try:
            expected = theirs.enumerate_support(expand)
        except NotImplementedError:
            with pytest.raises(NotImplementedError):
                ours.enumerate_support(expand)
            return
        same(ours.enumerate_support(expand), expected)


@pytest.mark.parametrize("name", CASES)
def test_expand(name):
    ours, theirs = pair(name)
    shape = (2, *ours.batch_shape)
    value, their_value = values_of(theirs, 2)
    wide, their_wide = ours.expand(shape), theirs.expand(shape)
    assert type(wide) is type(ours)
    assert (wide.batch_shape, wide.event_shape) == (their_wide.batch_shape, their_wide.event_shape)
    same(wide.log_prob(value), their_wide.log_prob(their_value), 1e-7)
    assert wide.sample((3,)).shape == their_wide.sample((3,)).shape
    assert ours.support.check(wide.sample((3,))).all()
    try:
        expected = their_wide.mean
    except NotImplementedError:
        return
    same(wide.mean, expected)


# Where PyTorch shows no parameters, because it keeps them elsewhere, or those it has computed.
SHOWN = ("Beta", "Chi2", "HalfCauchy", "HalfNormal", "Mixture", "Multinomial", "OneHot")


@pytest.mark.parametrize("name", CASES)
def test_repr(name):
    ours, theirs = pair(name)
    if name.startswith(SHOWN):
        assert repr(ours).startswith(type(theirs).__name__ + "(")
    else:
        assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("q_name", KL_CASES)
@pytest.mark.parametrize("p_name", KL_CASES)
def test_kl_divergence(p_name, q_name):
    our_p, their_p = pair(p_name, KL_CASES)
    our_q, their_q = pair(q_name, KL_CASES)
    try:
        expected = THEIRS.kl_divergence(their_p, their_q)
    except (NotImplementedError, ValueError, RuntimeError):
        with pytest.raises((NotImplementedError, ValueError, RuntimeError)):
            OURS.kl_divergence(our_p, our_q)
        return
    if (p_name[:19], q_name[:7]) == ("ContinuousBernoulli", "Uniform"):
        return  # PyTorch's is infinite for a uniform distribution on [0, 1] itself
    same(OURS.kl_divergence(our_p, our_q), expected, 1e-7)


def test_kl_divergences_are_of_the_same_pairs():
    def names(library):
        registry = library.distributions.kl._KL_REGISTRY
        return {(p.__name__, q.__name__) for p, q in registry}

    assert names(torch) == names(pytorch)


@pytest.mark.parametrize("name", TRANSFORM_CASES)
def test_transforms(name):
    ours, theirs = pair(name, TRANSFORM_CASES)
    x = transform_input(name, theirs.domain.event_dim, (3,))
    x, their_x = torch.from_numpy(x), pytorch.from_numpy(x)
    y, their_y = ours(x), theirs(their_x)
    same(y, their_y)
    same(ours.inv(y), theirs.inv(their_y), 1e-7)
    for what in ("bijective", "domain", "codomain"):
        assert repr(getattr(ours, what)) == repr(getattr(theirs, what))
    assert ours.domain.event_dim == theirs.domain.event_dim
    assert ours.codomain.event_dim == theirs.codomain.event_dim
    assert repr(ours) == repr(theirs)
    assert repr(ours.inv) == repr(theirs.inv)
    if theirs.bijective:
        given = ours.log_abs_det_jacobian(x, y)
        same(given, theirs.log_abs_det_jacobian(their_x, their_y), 1e-7)


def test_constraints_become_the_same_transforms():
    for registry in ("biject_to", "transform_to"):
        registered = [
            {c.__name__ for c in getattr(library, registry)._registry} for library in (OURS, THEIRS)
        ]
        assert registered[0] == registered[1]
    x = [-1.0, 0.5, 2.0]
    for name in ("real", "positive", "nonnegative", "unit_interval", "simplex", "real_vector"):
        for registry in ("biject_to", "transform_to"):
            y, their_y = (
                getattr(library.distributions, registry)(
                    getattr(library.distributions.constraints, name)
                )(library.tensor(x))
                for library in (torch, pytorch)
            )
            same(y, their_y)


def outcome(call, library):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(library.distributions, library.tensor)
    except Exception as error:
        return type(error).__name__
    return None


INVALID = {
    "Bernoulli probs": lambda D, t: D.Bernoulli(t(1.5)),
    "Bernoulli both": lambda D, t: D.Bernoulli(t(0.5), t(0.5)),
    "Bernoulli neither": lambda D, t: D.Bernoulli(),
    "Bernoulli value": lambda D, t: D.Bernoulli(t(0.5)).log_prob(t(0.5)),
    "Bernoulli unvalidated": lambda D, t: D.Bernoulli(t(1.5), validate_args=False),
    "Normal scale": lambda D, t: D.Normal(t([0.0, 1.0]), t([1.0, -1.0])),
    "Normal nan": lambda D, t: D.Normal(t(float("nan")), t(1.0)),
    "Normal text": lambda D, t: D.Normal("a", t(1.0)),
    "Normal None": lambda D, t: D.Normal(None, 1.0),
    "Normal value shape": lambda D, t: D.Normal(t([0.0, 1.0]), 1.0).log_prob(t([1.0, 2.0, 3.0])),
    "Normal value number": lambda D, t: D.Normal(0.0, 1.0).log_prob(1.0),
    "Normal value nan": lambda D, t: D.Normal(0.0, 1.0).log_prob(t(float("nan"))),
    "Normal expand": lambda D, t: D.Normal(t([0.0, 1.0]), 1.0).expand((3,)),
    "Uniform order": lambda D, t: D.Uniform(t(1.0), t(0.0)),
    "Uniform outside": lambda D, t: D.Uniform(t(0.0), t(1.0)).log_prob(t(2.0)),
    "Categorical scalar": lambda D, t: D.Categorical(t(0.5)),
    "Categorical negative": lambda D, t: D.Categorical(t([-0.1, 1.1])),
    "Categorical value": lambda D, t: D.Categorical(t([0.1, 0.9])).log_prob(t(2)),
    "Categorical fraction": lambda D, t: D.Categorical(t([0.1, 0.9])).log_prob(t(0.5)),
    "Dirichlet scalar": lambda D, t: D.Dirichlet(t(1.0)),
    "Dirichlet value": lambda D, t: D.Dirichlet(t([1.0, 1.0])).log_prob(t([0.5, 0.6])),
    "Geometric zero": lambda D, t: D.Geometric(t(0.0)),
    "Multinomial count": lambda D, t: D.Multinomial(t(3), t([0.5, 0.5])),
    "Binomial entropy": lambda D, t: D.Binomial(t([2.0, 3.0]), t([0.5, 0.5])).entropy(),
    "Independent dims": lambda D, t: D.Independent(D.Normal(0.0, 1.0), 1),
    "Independent enumerate": lambda D, t: D.Independent(
        D.Bernoulli(t([0.5])), 1
    ).enumerate_support(),
    "LKJ dim": lambda D, t: D.LKJCholesky(1),
    "LowRank shape": lambda D, t: D.LowRankMultivariateNormal(
        t([0.0, 1.0]), t([[1.0]]), t([1.0, 1.0])
    ),
    "MVN neither": lambda D, t: D.MultivariateNormal(t([0.0])),
    "MVN scalar": lambda D, t: D.MultivariateNormal(t(0.0), t([[1.0]])),
    "MVN vector": lambda D, t: D.MultivariateNormal(t([0.0]), t([1.0])),
    "MVN indefinite": lambda D, t: D.MultivariateNormal(t([0.0]), t([[-1.0]])),
    "MVN value": lambda D, t: D.MultivariateNormal(t([0.0]), t([[1.0]])).log_prob(t([0.0, 1.0])),
    "Mixture of": lambda D, t: D.MixtureSameFamily(D.Normal(0.0, 1.0), D.Normal(t([0.0]), 1.0)),
    "Mixture count": lambda D, t: D.MixtureSameFamily(
        D.Categorical(t([0.5, 0.5])), D.Normal(t([0.0, 1.0, 2.0]), 1.0)
    ),
    "Transformed not": lambda D, t: D.TransformedDistribution(D.Normal(0.0, 1.0), [1]),
    "Transformed dims": lambda D, t: D.TransformedDistribution(
        D.Normal(0.0, 1.0), D.StickBreakingTransform()
    ),
    "Wishart df": lambda D, t: D.Wishart(t(0.5), t([[1.0, 0.0], [0.0, 1.0]])),
    "default": lambda D, t: D.Distribution.set_default_validate_args("yes"),
    "mean": lambda D, t: D.Distribution().mean,
    "log_prob": lambda D, t: D.Distribution(validate_args=False).log_prob(t(0.0)),
    "expand": lambda D, t: D.Distribution(validate_args=False).expand((2,)),
    "kl": lambda D, t: D.kl_divergence(D.Cauchy(0.0, 1.0), D.Normal(0.0, 1.0)),
    "cache": lambda D, t: D.ExpTransform(cache_size=2),
    "biject_to": lambda D, t: D.biject_to(D.constraints.boolean),
    "register": lambda D, t: D.biject_to.register(int, lambda c: None),
    "dependent": lambda D, t: D.constraints.dependent.check(t(1.0)),
    "event_dim": lambda D, t: D.constraints.dependent.event_dim,
    "independent": lambda D, t: D.constraints.real_vector.check(t(1.0)),
    "tril": lambda D, t: D.utils.vec_to_tril_matrix(t([1.0, 2.0])),
    "reshape": lambda D, t: D.ReshapeTransform((2,), (3,)),
}


@pytest.mark.parametrize("name", INVALID)
def test_errors_have_pytorchs_class(name):
    assert outcome(INVALID[name], torch) == outcome(INVALID[name], pytorch)


def gradients(case, library, values, what):
    """The gradients in the parameters of the sum of what a method gives."""
    leaves = []

    def leaf(x):
        leaves.append(library.tensor(x, dtype=library.float64).requires_grad_())
        return leaves[-1]

    distribution = case(library.distributions, leaf)
    result = distribution.log_prob(values) if what == "log_prob" else getattr(distribution, what)
    result = result() if callable(result) else result
    if not leaves or not result.requires_grad:
        return None
    found = library.autograd.grad(result.sum(), leaves, allow_unused=True)
    return [library.zeros_like(p) if g is None else g for g, p in zip(found, leaves, strict=True)]


# What PyTorch's gradients are instead of right.
OTHER_GRADIENTS = {
    ("GeneralizedPareto", "log_prob"),  # where concentration is 0 or -1
    ("FisherSnedecor", "variance"),  # NaN where the variance is not there
    ("Wishart-tril", "log_prob"),  # of elements above the diagonal, which do not count
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("what", ["log_prob", "entropy", "mean", "variance"])
def test_gradients_in_the_parameters(name, what):
    value, their_value = values_of(pair(name)[1])
    try:
        expected = gradients(CASES[name], pytorch, their_value, what)
    except NotImplementedError:
        return
    given = gradients(CASES[name], torch, value, what)
    if expected is None or (name, what) in OTHER_GRADIENTS:
        return
    assert given is not None
    for ours, theirs in zip(given, expected, strict=True):
        same(ours, theirs, 1e-6)
