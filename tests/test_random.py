"""Generators, their seeds and states, and that the same seed gives the same numbers everywhere."""

import copy
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

import rushlight as torch


def test_a_seed_repeats_the_numbers() -> None:
    runs = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        runs.append((torch.rand(3).tolist(), torch.randperm(5).tolist()))
    assert runs[0] == runs[1] != runs[2]
    assert torch.initial_seed() == 4


def test_manual_seed_returns_the_default_generator() -> None:
    assert torch.manual_seed(5) is torch.default_generator
    assert torch.default_generator.initial_seed() == 5


def test_a_state_repeats_the_numbers_from_there() -> None:
    torch.manual_seed(0)
    torch.rand(7)
    state = torch.get_rng_state()
    first = torch.randn(5)
    torch.set_rng_state(state)
    assert torch.equal(torch.randn(5), first)
    assert state.dtype == torch.uint8


def test_seed_takes_another_one_each_time() -> None:
    assert torch.seed() != torch.seed()
    assert torch.initial_seed() == torch.default_generator.initial_seed()


def draw_and_fail() -> None:
    torch.rand(100)
    raise ZeroDivisionError


def test_fork_rng_leaves_the_state_as_it_was() -> None:
    torch.manual_seed(0)
    expected = torch.rand(2)
    torch.manual_seed(0)
    with torch.random.fork_rng():
        torch.rand(100)
    assert torch.equal(torch.rand(2), expected)
    torch.manual_seed(0)
    with pytest.raises(ZeroDivisionError), torch.random.fork_rng():
        draw_and_fail()
    assert torch.equal(torch.rand(2), expected)
    torch.manual_seed(0)
    with torch.random.fork_rng(enabled=False):
        torch.rand(2)
    assert not torch.equal(torch.rand(2), expected)


def test_thread_safe_generator_is_the_default_one_outside_of_workers() -> None:
    assert torch.random.thread_safe_generator() is None
    assert torch.thread_safe_generator is torch.random.thread_safe_generator


# Generators


def test_seeds_count_from_zero_down_and_fill_64_bits() -> None:
    g = torch.Generator()
    assert g.initial_seed() == 67280421310721
    for seed, stored in ((0, 0), (-1, 2**64 - 1), (-(2**63), 2**63), (2**64 - 1, 2**64 - 1)):
        assert g.manual_seed(seed) is g
        assert g.initial_seed() == stored
    assert g.manual_seed(np.int64(5)).initial_seed() == 5
    assert torch.manual_seed(1.9).initial_seed() == 1
    for seed in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError, match="Overflow when unpacking"):
            g.manual_seed(seed)
    for wrong in (1.5, "1", True, None):
        with pytest.raises(RuntimeError, match="manual_seed expected a long"):
            g.manual_seed(wrong)
    assert g.initial_seed() == 5


@pytest.mark.parametrize(
    "copied",
    [
        lambda g: g.clone_state(),
        lambda g: copy.copy(g),
        lambda g: copy.deepcopy(g),
        lambda g: pickle.loads(pickle.dumps(g)),
        lambda g: torch.Generator().set_state(g.get_state()),
        lambda g: torch.Generator().manual_seed(g.initial_seed()).set_offset(g.get_offset()),
    ],
)
def test_a_copy_of_a_generator_goes_on_by_itself(copied: Callable[[Any], Any]) -> None:
    g = torch.Generator().manual_seed(2**64 - 3)
    torch.rand(7, generator=g)
    other = copied(g)
    assert type(other) is torch.Generator
    assert other.device == g.device
    assert other.initial_seed() == g.initial_seed() == 2**64 - 3
    expected = torch.randn(5, generator=g)
    assert torch.equal(torch.randn(5, generator=other), expected)
    torch.rand(5, generator=other)
    assert other.get_offset() == g.get_offset() + 2


def test_a_class_may_be_derived_from_generator() -> None:
    class Named(torch.Generator):
        name = "mine"

    named = Named().manual_seed(3)
    assert named.name == "mine"
    plain = torch.Generator().manual_seed(3)
    assert torch.equal(torch.rand(3, generator=named), torch.rand(3, generator=plain))


def test_states_that_are_none_are_refused() -> None:
    g = torch.Generator()
    before = g.get_state()
    for state, error in ((torch.zeros(16), TypeError), (3, TypeError), (None, TypeError),
                         (torch.zeros(3, dtype=torch.uint8), RuntimeError)):  # fmt: skip
        with pytest.raises(error):
            g.set_state(state)
    for wrong, error in ((-1, RuntimeError), (2**64, ValueError), ("a", TypeError)):
        with pytest.raises(error):
            g.set_offset(wrong)
    with pytest.raises(TypeError):
        g.__setstate__((1, 2))
    for call in (g.graphsafe_get_state, lambda: g.graphsafe_set_state(g)):
        with pytest.raises(NotImplementedError, match="graphsafe"):
            call()
    with pytest.raises(TypeError):
        g.graphsafe_set_state(3)
    with pytest.raises(RuntimeError):
        torch.Generator("nowhere")
    assert torch.equal(g.get_state(), before)


def test_a_draw_uses_up_the_counters_that_the_note_says() -> None:
    g = torch.Generator()
    for draw, counters in (
        (lambda: torch.rand(9, generator=g), 3),
        (lambda: torch.rand(9, generator=g, dtype=torch.float64), 5),
        (lambda: torch.randint(9, (9,), generator=g), 5),
        (lambda: torch.poisson(torch.ones(9), generator=g), 9),
        (lambda: torch.rand(0, generator=g), 0),
    ):
        before = g.get_offset()
        draw()
        assert g.get_offset() - before == counters


def test_programs_take_pieces_of_the_stream() -> None:
    g = torch.Generator().manual_seed(2**64 - 3)
    torch.rand(4, generator=g)
    seed, offset, inside = g.philox_state(5)
    assert (seed.item() & (2**64 - 1), offset.item(), inside.item()) == (2**64 - 3, 4, 0)
    assert all(t.dtype == torch.int64 and t.numel() == 1 for t in (seed, offset, inside))
    assert g.get_offset() == 3
    assert g.philox_state(0)[1] == 12 == g.philox_state(1)[1]
    for wrong, error in ((-1, RuntimeError), ("a", TypeError)):
        with pytest.raises(error):
            g.philox_state(wrong)


# Distributions

COUNT = 100_000


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(11)


CONTINUOUS: dict[str, tuple[Callable[[], Any], Any]] = {
    "rand": (lambda: torch.rand(COUNT), scipy.stats.uniform()),
    "rand_like": (lambda: torch.rand_like(torch.empty(COUNT)), scipy.stats.uniform()),
    "uniform_": (lambda: torch.empty(COUNT).uniform_(-2, 3), scipy.stats.uniform(-2, 5)),
    "randn": (lambda: torch.randn(COUNT), scipy.stats.norm()),
    "randn_like": (lambda: torch.randn_like(torch.empty(COUNT)), scipy.stats.norm()),
    "normal_": (lambda: torch.empty(COUNT).normal_(1, 3), scipy.stats.norm(1, 3)),
    "normal numbers": (lambda: torch.normal(1.0, 3.0, (COUNT,)), scipy.stats.norm(1, 3)),
    "normal means": (lambda: torch.normal(torch.full((COUNT,), 2.0), 3.0), scipy.stats.norm(2, 3)),
    "normal stds": (lambda: torch.normal(2.0, torch.full((COUNT,), 3.0)), scipy.stats.norm(2, 3)),
    "normal tensors": (
        lambda: torch.normal(torch.full((COUNT,), 2.0), torch.full((COUNT,), 3.0)),
        scipy.stats.norm(2, 3),
    ),
    "exponential_": (lambda: torch.empty(COUNT).exponential_(2), scipy.stats.expon(scale=0.5)),
}
DISCRETE: dict[str, tuple[Callable[[], Any], int, int]] = {
    "randint": (lambda: torch.randint(7, (COUNT,)), 0, 7),
    "randint low": (lambda: torch.randint(-3, 7, (COUNT,)), -3, 7),
    "randint_like": (lambda: torch.randint_like(torch.empty(COUNT), 7), 0, 7),
    "randint_like low": (lambda: torch.randint_like(torch.empty(COUNT), -3, 7), -3, 7),
    "random_ to": (lambda: torch.empty(COUNT).random_(5), 0, 5),
    "random_ from": (lambda: torch.empty(COUNT).random_(-2, 5), -2, 5),
    "multinomial": (lambda: torch.multinomial(torch.ones(6), COUNT, replacement=True), 0, 6),
}
BINARY: dict[str, Callable[[], Any]] = {
    "bernoulli": lambda: torch.bernoulli(torch.full((COUNT,), 0.3)),
    "bernoulli p": lambda: torch.bernoulli(torch.empty(COUNT), 0.3),
    "bernoulli_": lambda: torch.empty(COUNT).bernoulli_(0.3),
    "bernoulli_ tensor": lambda: torch.empty(COUNT).bernoulli_(torch.full((COUNT,), 0.3)),
    "dropout": lambda: torch.nn.functional.dropout(torch.ones(COUNT), 0.7) * 0.3,
}


@pytest.mark.parametrize(("draw", "distribution"), CONTINUOUS.values(), ids=CONTINUOUS)
def test_continuous_numbers_follow_their_distribution(
    draw: Callable[[], Any], distribution: Any
) -> None:
    numbers = draw().double().numpy()
    assert scipy.stats.kstest(numbers, distribution.cdf).pvalue > 1e-3
    assert numbers.mean() == pytest.approx(distribution.mean(), abs=0.03)
    assert numbers.std() == pytest.approx(distribution.std(), rel=0.02)
    neighbors = np.corrcoef(numbers[:-1], numbers[1:])[0, 1]
    assert abs(neighbors) < 0.015


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_uniform_numbers_stay_below_one_in_every_dtype(dtype: Any) -> None:
    numbers = torch.rand(COUNT, dtype=dtype).double().numpy()
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert numbers.mean() == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(("draw", "low", "high"), DISCRETE.values(), ids=DISCRETE)
def test_integers_are_equally_likely(draw: Callable[[], Any], low: int, high: int) -> None:
    numbers = draw().numpy().astype(int)
    assert numbers.min() == low
    assert numbers.max() == high - 1
    assert scipy.stats.chisquare(np.bincount(numbers - low)).pvalue > 1e-3


@pytest.mark.parametrize("draw", BINARY.values(), ids=BINARY)
def test_ones_come_with_their_probability(draw: Callable[[], Any]) -> None:
    numbers = draw().numpy()
    assert set(np.round(numbers, 5)) == {0.0, 1.0}
    assert numbers.mean() == pytest.approx(0.3, abs=0.01)


def test_random_without_bounds_fills_what_the_dtype_holds() -> None:
    bytes_ = torch.empty(COUNT, dtype=torch.int8).random_().numpy()
    assert (bytes_.min(), bytes_.max()) == (0, 127)
    assert torch.empty(COUNT).random_().max() <= 2**24


def test_randperm_is_a_permutation_without_pattern() -> None:
    order = torch.randperm(1000)
    assert torch.equal(order.sort().values, torch.arange(1000))
    firsts = [int(torch.randperm(5)[0]) for _ in range(2000)]
    assert scipy.stats.chisquare(np.bincount(firsts)).pvalue > 1e-3
    assert torch.randperm(0).shape == (0,)


def test_multinomial_without_replacement_takes_each_once_by_weight() -> None:
    weights = torch.tensor([0.0, 1.0, 2.0, 5.0])
    firsts = []
    for _ in range(2000):
        drawn = torch.multinomial(weights, 3).tolist()
        assert sorted(drawn) == [1, 2, 3]
        firsts.append(drawn[0])
    assert scipy.stats.chisquare(np.bincount(firsts)[1:], [250, 500, 1250]).pvalue > 1e-3


@pytest.mark.parametrize(
    "draw",
    [
        lambda: torch.rand(2, -1),
        lambda: torch.randint(3, 3, (2,)),
        lambda: torch.bernoulli(torch.tensor([1.5])),
        lambda: torch.empty(2).normal_(0, -1),
        lambda: torch.empty(2).uniform_(1, 0),
        lambda: torch.empty(2).exponential_(-1),
        lambda: torch.multinomial(torch.ones(3), 4),
        lambda: torch.multinomial(torch.tensor([-1.0, 1.0]), 1),
        lambda: torch.randperm(-1),
        lambda: torch.nn.functional.dropout(torch.ones(2), 1.5),
    ],
)
def test_impossible_parameters_raise(draw: Callable[[], Any]) -> None:
    with pytest.raises((RuntimeError, ValueError)):
        draw()


# Dropout


def test_dropout_scales_what_it_keeps_and_its_gradient_alike() -> None:
    x = torch.randn(1000, dtype=torch.float64, requires_grad=True)
    y = torch.nn.functional.dropout(x, 0.25)
    y.sum().backward()
    kept = y != 0
    assert torch.allclose(y[kept], x[kept] / 0.75)
    assert torch.equal(x.grad != 0, kept)
    assert torch.equal(torch.nn.functional.dropout(x, 0.25, training=False), x)
    assert (torch.nn.functional.dropout(x, 1.0) == 0).all()


@pytest.mark.parametrize(("name", "dims"), [("dropout1d", 3), ("dropout2d", 4), ("dropout3d", 5)])
def test_channel_dropout_drops_whole_channels(name: str, dims: int) -> None:
    y = getattr(torch.nn.functional, name)(torch.ones(20, 30, *[4] * (dims - 2)), 0.5)
    channels = y.reshape(600, -1)
    assert (channels == channels[:, :1]).all()
    assert channels[:, 0].mean().item() == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("name", ["alpha_dropout", "feature_alpha_dropout"])
def test_alpha_dropout_keeps_mean_and_variance(name: str) -> None:
    y = getattr(torch.nn.functional, name)(torch.randn(300, 400), 0.3, training=True)
    assert y.mean().item() == pytest.approx(0.0, abs=0.02)
    assert y.std().item() == pytest.approx(1.0, abs=0.02)


# The same numbers everywhere

DRAWS = """
import hashlib, sys
import rushlight as torch
torch.set_num_threads(int(sys.argv[1]))
torch.manual_seed(5)
digest = hashlib.sha256()
for x in (
    torch.rand(100_003), torch.rand(70_001, dtype=torch.float64), torch.randint(1000, (90_001,)),
    torch.empty(80_001).bernoulli_(0.3), torch.randperm(70_001),
    torch.rand(50_000, dtype=torch.bfloat16),
    torch.multinomial(torch.rand(50), 20_000, replacement=True), torch.randn(100_003),
    torch.empty(90_001).exponential_(), torch.nn.functional.dropout(torch.ones(100_003), 0.4),
    torch.empty(50_001).cauchy_(), torch.empty(50_001).log_normal_(),
    torch.empty(50_001).geometric_(0.01), torch.poisson(torch.rand(30_001) * 40),
    torch.binomial(torch.full((30_001,), 70.0), torch.rand(30_001)),
    torch._standard_gamma(torch.rand(30_001) * 3), torch.multinomial(torch.rand(900, 40), 7),
):
    digest.update(x.view(torch.uint8).numpy().tobytes())
print(digest.hexdigest())
"""


def test_threads_and_instruction_sets_do_not_change_the_numbers() -> None:
    sets = [s for s in ("baseline", "v3", "v4") if runs(s)]
    digests = {
        (isa, threads): subprocess.run(
            [sys.executable, "-c", DRAWS, str(threads)],
            env=os.environ | {"RUSHLIGHT_CPU": isa}, capture_output=True, text=True, check=True,
        ).stdout
        for isa in sets
        for threads in (1, 2, 4)
    }  # fmt: skip
    assert len(set(digests.values())) == 1, digests


def runs(isa: str) -> bool:
    """Whether this processor has an instruction set."""
    program = [sys.executable, "-c", "import rushlight"]
    return (
        subprocess.run(
            program, env=os.environ | {"RUSHLIGHT_CPU": isa}, capture_output=True
        ).returncode
        == 0
    )


def test_bernoulli_draws_into_integers_and_bools() -> None:
    for dtype in (torch.bool, torch.uint8, torch.int64, torch.bfloat16):
        out = torch.zeros(3, dtype=dtype)
        assert torch.bernoulli(torch.tensor([1.0, 0.0, 1.0]), out=out) is out
        assert out.tolist() == [1, 0, 1]


def test_exponential_numbers_of_endless_rate_are_zero() -> None:
    assert torch.empty(2).exponential_(float("inf")).tolist() == [0, 0]
