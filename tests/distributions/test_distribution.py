"""What all distributions share: validation, expansion, subclasses of users, constraints."""

import copy
import pickle
import subprocess
import sys

import pytest
from distributions.cases import CASES
from distributions.doubles import t

import rushlight as torch

D = torch.distributions
constraints = D.constraints


class Coin(D.Distribution):
    """As a user writes one."""

    arg_constraints = {"p": constraints.unit_interval}  # noqa: RUF012
    support = constraints.boolean

    def __init__(self, p, validate_args=None):
        self.p = torch.as_tensor(p)
        super().__init__(self.p.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Coin, _instance)
        new.p = self.p.expand(batch_shape)
        super(Coin, new).__init__(torch.Size(batch_shape), validate_args=False)
        new._validate_args = self._validate_args
        return new

    def sample(self, sample_shape=()):
        return torch.bernoulli(self.p.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return torch.where(value == 1, self.p.log(), (1 - self.p).log())


def test_a_users_distribution():
    coin = Coin([0.25, 0.5])
    assert repr(coin) == "Coin(p: torch.Size([2]))"
    assert coin.expand((3, 2)).sample((4,)).shape == (4, 3, 2)
    joint = D.Independent[Coin](coin, 1)
    assert joint.log_prob(torch.ones(2)).item() == pytest.approx(-2.0794415)
    with pytest.raises(ValueError, match="Coin: expected parameter p"):
        Coin([1.5])
    with pytest.raises(ValueError, match=r"within the support Boolean\(\)"):
        coin.log_prob(torch.tensor([0.5, 1.0]))
    with pytest.raises(NotImplementedError):
        _ = coin.mean
    with pytest.raises(NotImplementedError):
        coin.rsample()


def test_a_subclass_with_its_own_init_must_expand_itself():
    class Standard(D.Normal):
        def __init__(self, size):
            super().__init__(torch.zeros(size), torch.ones(size))

    with pytest.raises(NotImplementedError, match="Subclass Standard of Normal that defines"):
        Standard(2).expand((3, 2))

    class Plain(D.Normal):
        pass

    assert type(Plain(t(0.0), t(1.0)).expand((2,))) is Plain

    class Expanding(Standard):
        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Expanding, _instance)
            new.extra = 1
            return super().expand(batch_shape, _instance=new)

    wide = Expanding(2).expand((3, 2))
    assert (wide.extra, wide.mean.shape) == (1, (3, 2))


def test_what_a_class_does_not_define_is_warned_of():
    class Bare(D.Distribution):
        pass

    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        bare = Bare()
    with pytest.warns(UserWarning, match="does not define `support`"):
        bare._validate_sample(torch.zeros(2))
    with pytest.warns(FutureWarning, match="sample_n"):
        assert D.Normal(0.0, 1.0).sample_n(3).shape == (3,)


def test_validation_is_set_for_all_or_for_one():
    with pytest.raises(ValueError, match="expected parameter scale"):
        D.Normal(0.0, -1.0)
    D.Normal(0.0, -1.0, validate_args=False)
    try:
        D.Distribution.set_default_validate_args(False)
        D.Normal(0.0, -1.0)
        with pytest.raises(ValueError, match="expected parameter scale"):
            D.Normal(0.0, -1.0, validate_args=True)
    finally:
        D.Distribution.set_default_validate_args(True)
    normal = D.Normal(0.0, 1.0, validate_args=False).expand((2,))
    assert normal.log_prob(torch.tensor(float("nan"))).isnan().all()


@pytest.mark.parametrize("name", CASES)
def test_values_are_validated(name):
    distribution = CASES[name](D, t)
    if distribution.event_shape:
        with pytest.raises(ValueError, match="event_shape"):
            distribution.log_prob(t([0.5]).expand(7))
    elif distribution.batch_shape:
        with pytest.raises(ValueError, match="broadcast"):
            distribution.log_prob(t([0.5]).expand(7))
    with pytest.raises(ValueError, match="must be a Tensor"):
        distribution.log_prob("a")


@pytest.mark.parametrize("name", CASES)
def test_distributions_are_copied_and_pickled(name):
    distribution = CASES[name](D, t)
    value = distribution.sample()
    for other in (copy.deepcopy(distribution), pickle.loads(pickle.dumps(distribution))):
        assert (type(other), other.batch_shape) == (type(distribution), distribution.batch_shape)
        torch.testing.assert_close(other.log_prob(value), distribution.log_prob(value))


@pytest.mark.parametrize("name", CASES)
def test_an_empty_batch_and_an_empty_sample(name):
    distribution = CASES[name](D, t)
    sample = distribution.sample((0,))
    assert sample.shape == (0, *distribution.batch_shape, *distribution.event_shape)
    assert distribution.log_prob(sample).shape == (0, *distribution.batch_shape)
    empty = distribution.expand((0, *distribution.batch_shape))
    assert empty.sample((2,)).shape == (2, 0, *distribution.batch_shape, *distribution.event_shape)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("name", ["Normal", "Bernoulli", "Categorical", "Uniform", "Laplace"])
def test_samples_have_the_dtype_of_the_parameters(name, dtype):
    distribution = CASES[name](D, lambda x: torch.tensor(x, dtype=dtype))
    sample = distribution.sample((2,))
    assert sample.dtype == (torch.int64 if name == "Categorical" else dtype)
    assert distribution.log_prob(sample).dtype == dtype


def test_the_same_seed_gives_the_same_samples():
    for make in CASES.values():
        samples = []
        for _ in range(2):
            torch.manual_seed(7)
            samples.append(make(D, t).sample((3,)))
        assert torch.equal(*samples)


def test_impossible_categories_are_not_drawn_and_count_nothing():
    categorical = D.Categorical(t([0.0, 1.0, 0.0]))
    assert (categorical.sample((100,)) == 1).all()
    assert categorical.entropy().item() == pytest.approx(0, abs=1e-12)
    masked = D.Categorical(logits=t([-torch.inf, 0.0, 0.0]))
    assert masked.entropy().item() == pytest.approx(0.6931471805599453)
    assert D.Multinomial(2, logits=t([-torch.inf, 0.0])).log_prob(t([0.0, 2.0])).item() == 0


CONSTRAINTS = {
    "boolean": (constraints.boolean, [0.0, 1.0], [0.5, torch.nan]),
    "integer_interval": (constraints.integer_interval(1, 3), [1.0, 3.0], [0.0, 1.5, 4.0]),
    "integer_interval of int64": (constraints.integer_interval(1, 3), [1, 3], [0, 4]),
    "nonnegative_integer": (constraints.nonnegative_integer, [0.0, 7.0], [-1.0, 0.5]),
    "positive_integer": (constraints.positive_integer, [1.0], [0.0, 1.5]),
    "real": (constraints.real, [0.0, torch.inf], [torch.nan]),
    "positive": (constraints.positive, [0.1], [0.0, -1.0, torch.nan]),
    "nonnegative": (constraints.nonnegative, [0.0], [-0.1]),
    "less_than": (constraints.less_than(2.0), [1.0], [2.0]),
    "unit_interval": (constraints.unit_interval, [0.0, 1.0], [-0.1, 1.1]),
    "half_open_interval": (constraints.half_open_interval(0.0, 1.0), [0.0], [1.0]),
    "one_hot": (constraints.one_hot, [[0.0, 1.0]], [[1.0, 1.0], [0.5, 0.5]]),
    "simplex": (constraints.simplex, [[0.25, 0.75]], [[0.5, 0.6], [-0.5, 1.5]]),
    "multinomial": (constraints.multinomial(3), [[1.0, 2.0]], [[2.0, 2.0], [-1.0, 1.0]]),
    "real_vector": (constraints.real_vector, [[0.0, 1.0]], [[0.0, torch.nan]]),
    "lower_triangular": (
        constraints.lower_triangular,
        [[[1.0, 0.0], [1.0, -1.0]]],
        [[[1.0, 1.0], [0.0, 1.0]]],
    ),
    "lower_cholesky": (
        constraints.lower_cholesky,
        [[[1.0, 0.0], [1.0, 1.0]]],
        [[[1.0, 0.0], [1.0, -1.0]]],
    ),
    "corr_cholesky": (
        constraints.corr_cholesky,
        [[[1.0, 0.0], [0.6, 0.8]]],
        [[[1.0, 0.0], [0.6, 0.7]]],
    ),
    "symmetric": (constraints.symmetric, [[[1.0, 2.0], [2.0, 1.0]]], [[[1.0, 2.0], [1.0, 1.0]]]),
    "positive_semidefinite": (
        constraints.positive_semidefinite,
        [[[1.0, 0.0], [0.0, 0.0]]],
        [[[1.0, 2.0], [2.0, 1.0]]],
    ),
    "positive_definite": (
        constraints.positive_definite,
        [[[1.0, 0.5], [0.5, 1.0]]],
        [[[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.2], [0.0, 1.0]]],
    ),
    "cat": (constraints.cat([constraints.positive, constraints.real]), [1.0, -1.0], None),
}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraints(name):
    constraint, right, wrong = CONSTRAINTS[name]
    assert constraint.check(torch.tensor(right)).all()
    if wrong is not None:
        assert not constraint.check(torch.tensor(wrong)).any()


def test_square_matrices():
    assert constraints.square.check(torch.zeros(3, 2, 2)).tolist() == [True] * 3
    assert constraints.square.check(torch.zeros(1, 2, 3)).tolist() == [False]
    assert not constraints.positive_definite.check(torch.zeros(2, 3)).any()


def test_importing_rushlight_does_not_import_distributions():
    code = "import rushlight, sys; assert 'rushlight.distributions' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_gammas_take_numbers_as_values() -> None:
    for gamma in (D.Gamma(t([1.0, 2.0]), t([1.0, 1.0])), D.Chi2(t([2.0, 4.0]))):
        assert gamma.log_prob(0.5).tolist() == gamma.log_prob(t([0.5, 0.5])).tolist()
        with pytest.raises(ValueError, match="support"):
            gamma.log_prob(-1)


def test_a_negative_number_of_draws_is_refused() -> None:
    with pytest.raises(ValueError, match="total_count must be at least 0, but is -1"):
        D.Multinomial(-1, t([0.5, 0.5]))
