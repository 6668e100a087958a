"""Transforms: inverses, log determinants against Jacobians by autograd, caches, equality."""

import copy
import pickle

import pytest
from distributions.cases import TRANSFORM_CASES, transform_input
from distributions.doubles import t
from hypothesis import given
from hypothesis import strategies as st

import rushlight as torch

D = torch.distributions
T = D.transforms
constraints = D.constraints


TRANSFORMS = {name: make(D, t) for name, make in TRANSFORM_CASES.items()}
BIJECTIVE = [n for n, transform in TRANSFORMS.items() if transform.bijective]


def an_input(name, batch=(2,)):
    return t(transform_input(name, TRANSFORMS[name].domain.event_dim, batch))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_outputs_are_in_the_codomain_and_come_back(name):
    transform, x = TRANSFORMS[name], an_input(name)
    y = transform(x)
    assert transform.domain.check(x).all()
    assert transform.codomain.check(y).all()
    assert y.shape == transform.forward_shape(x.shape)
    assert transform.inverse_shape(y.shape) == x.shape
    back = transform.inv(y)
    if transform.bijective:
        torch.testing.assert_close(back, x)
    else:
        torch.testing.assert_close(transform(back), y)
    assert transform.inv.inv is transform


@pytest.mark.parametrize("name", BIJECTIVE)
def test_log_abs_det_jacobian_is_that_of_autograd(name):
    transform, x = TRANSFORMS[name], an_input(name, ())
    y = transform(x)
    given = transform.log_abs_det_jacobian(x, y)
    if name in ("CorrCholesky", "StickBreaking", "Compose-vectors"):
        # The outputs have one dim less than elements: all but the last, or below the diagonal.
        def free(x):
            y = transform(x)
            if name == "CorrCholesky":
                return D.utils.tril_matrix_to_vec(y, -1)
            return y[..., :-1]
    else:

        def free(x):
            return transform(x)

    jacobian = torch.autograd.functional.jacobian(free, x).reshape(free(x).numel(), x.numel())
    expected = torch.linalg.slogdet(jacobian).logabsdet
    torch.testing.assert_close(given.sum(), expected)
    torch.testing.assert_close(transform.inv.log_abs_det_jacobian(y, x), -given)
    if name != "Stack":  # which does not sum, as in PyTorch
        assert given.dim() == x.dim() - transform.domain.event_dim


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_cache_gives_back_the_same_tensor(name):
    transform, x = TRANSFORMS[name].with_cache(), an_input(name)
    assert transform._cache_size == 1
    assert transform.with_cache() is transform
    y = transform(x)
    if name != "Identity":
        assert transform(x) is y or isinstance(transform, T.ComposeTransform)
    assert transform.inv(y) is x


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_are_copied_and_pickled(name):
    transform, x = TRANSFORMS[name], an_input(name)
    transform.inv  # noqa: B018
    for other in (copy.deepcopy(transform), pickle.loads(pickle.dumps(transform))):
        assert repr(other) == repr(transform)
        torch.testing.assert_close(other(x), transform(x))


@pytest.mark.parametrize("name", [n for n in BIJECTIVE if n not in ("Reshape", "CorrCholesky")])
def test_sign_says_whether_it_increases(name):
    transform = TRANSFORMS[name]
    if transform.domain.event_dim or name in ("Cat", "Stack"):
        return
    x = an_input(name)
    slope = (transform(x + 1e-3) - transform(x)).sign()
    assert (slope == transform.sign).all()


def test_equality():
    assert T.ExpTransform() == T.ExpTransform()
    assert T.ExpTransform() != T.TanhTransform()
    assert T.ExpTransform().inv == T.ExpTransform().inv
    assert T.AffineTransform(0.0, t(1.0)) == T.AffineTransform(0.0, t(1.0))
    assert T.AffineTransform(0.0, 1.0) != T.AffineTransform(1.0, 1.0)
    assert T.PowerTransform(t(2.0)) == T.PowerTransform(t(2.0))
    assert T.ComposeTransform([T.ExpTransform()]) == T.ComposeTransform([T.ExpTransform()])
    assert T.IndependentTransform(T.ExpTransform(), 1) != T.ExpTransform()


def test_a_users_transform():
    class Cube(D.Transform):
        domain = codomain = constraints.real
        bijective = True
        sign = 1

        def _call(self, x):
            return x**3

        def _inverse(self, y):
            return y.abs().pow(1 / 3) * y.sign()

        def log_abs_det_jacobian(self, x, y):
            return (3 * x.square()).log()

    cubed = D.TransformedDistribution(D.Normal(t(0.0), t(1.0)), Cube(cache_size=1))
    x = cubed.sample((4,))
    expected = D.Normal(t(0.0), t(1.0)).log_prob(Cube().inv(x)) - (3 * Cube().inv(x).square()).log()
    torch.testing.assert_close(cubed.log_prob(x), expected)
    assert cubed.cdf(t(0.0)).item() == 0.5

    class Scaled(Cube):
        def __init__(self, factor):
            super().__init__()

    with pytest.raises(NotImplementedError, match="with_cache"):
        Scaled(2.0).with_cache()


REGISTERED = [
    constraints.real,
    constraints.real_vector,
    constraints.positive,
    constraints.nonnegative,
    constraints.greater_than(2.0),
    constraints.greater_than_eq(-1.0),
    constraints.less_than(3.0),
    constraints.unit_interval,
    constraints.interval(-1.0, 4.0),
    constraints.half_open_interval(0.0, 2.0),
    constraints.simplex,
    constraints.corr_cholesky,
    constraints.lower_cholesky,
    constraints.positive_definite,
    constraints.positive_semidefinite,
    constraints.independent(constraints.positive, 1),
    constraints.cat([constraints.positive, constraints.real], -1, [3, 3]),
    constraints.stack([constraints.positive] * 6, -1),
]
ONLY_TRANSFORM_TO = ("LowerCholesky()", "PositiveDefinite()", "PositiveSemidefinite()")


@pytest.mark.parametrize(
    "registry", [D.biject_to, D.transform_to], ids=["biject_to", "transform_to"]
)
@pytest.mark.parametrize("constraint", REGISTERED, ids=repr)
def test_any_numbers_become_values_of_a_constraint(constraint, registry):
    if registry is D.biject_to and repr(constraint) in ONLY_TRANSFORM_TO:
        with pytest.raises(NotImplementedError, match="Cannot transform"):
            registry(constraint)
        return
    transform = registry(constraint)
    assert transform.bijective or registry is D.transform_to
    torch.manual_seed(1)
    square = repr(constraint) in ONLY_TRANSFORM_TO
    x = torch.randn(2, 4, 4, dtype=torch.float64) if square else torch.randn(2, 6).double()
    y = transform(x)
    assert constraint.check(y).all()
    torch.testing.assert_close(transform(transform.inv(y)), y)


@given(st.floats(-20, 20), st.sampled_from(["Exp", "Sigmoid", "Softplus", "Tanh"]))
def test_increasing_transforms_invert(x, name):
    transform, x = TRANSFORMS[name], t(x)
    y = transform(x)
    if name == "Tanh" and abs(y.item()) == 1:
        return
    torch.testing.assert_close(transform(transform.inv(y)), y)


@given(st.integers(1, 6), st.integers(-2, 1))
def test_triangles_become_vectors_and_come_back(n, diag):
    if not -n <= diag < n or diag > 0:
        return
    mat = torch.arange(1.0, n * n + 1).view(n, n).tril(diag)
    vec = D.utils.tril_matrix_to_vec(mat, diag)
    if vec.numel():
        assert torch.equal(D.utils.vec_to_tril_matrix(vec, diag), mat)
