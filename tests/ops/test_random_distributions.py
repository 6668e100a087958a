"""Every distribution, over its parameters and dtypes, by Kolmogorov and Smirnov or chi-square.

Seeds are fixed, so a test passes always or never; the least p-value is 1e-4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import rushlight as torch

LIKELY = 1e-4
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
HALVES = (torch.float16, torch.bfloat16)


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(20)


def count_of(dtype: Any) -> int:
    """So few numbers of half types that their rounding does not show."""
    return 4001 if dtype in HALVES else 60_001


def assert_continuous(numbers: Any, distribution: Any) -> None:
    assert stats.kstest(numbers.double().numpy(), distribution.cdf).pvalue > LIKELY


def assert_discrete(numbers: Any, distribution: Any) -> None:
    """By chi-square over bins that hold at least 20 numbers on the average."""
    x = numbers.double().numpy()
    assert np.array_equal(x, np.floor(x))
    first, last = (int(distribution.ppf(q)) for q in (1e-3, 1 - 1e-3))
    edges = np.arange(first, last + 1, max(1, (last - first) // 40))
    chances = np.diff(distribution.cdf(edges), prepend=0, append=1)
    counts = np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1)
    large = chances * x.size > 20
    chances = np.append(chances[large], chances[~large].sum())
    counts = np.append(counts[large], counts[~large].sum())
    if chances[-1] * x.size < 1:
        assert counts[-1] < 20
        chances, counts = chances[:-1], counts[:-1]
    expected = chances / chances.sum() * counts.sum()
    if len(expected) > 1:
        assert stats.chisquare(counts, expected).pvalue > LIKELY


CONTINUOUS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "uniform": (lambda x: x.uniform_(), stats.uniform()),
    "uniform wide": (lambda x: x.uniform_(-30, 50), stats.uniform(-30, 80)),
    "uniform narrow": (lambda x: x.uniform_(-0.1, 0.05), stats.uniform(-0.1, 0.15)),
    "normal": (lambda x: x.normal_(), stats.norm()),
    "normal wide": (lambda x: x.normal_(3, 7), stats.norm(3, 7)),
    "normal narrow": (lambda x: x.normal_(0, 1e-3), stats.norm(0, 1e-3)),
    "exponential": (lambda x: x.exponential_(), stats.expon()),
    "exponential fast": (lambda x: x.exponential_(50), stats.expon(scale=1 / 50)),
    "exponential slow": (lambda x: x.exponential_(0.02), stats.expon(scale=50)),
    "cauchy": (lambda x: x.cauchy_(), stats.cauchy()),
    "cauchy wide": (lambda x: x.cauchy_(-1, 10), stats.cauchy(-1, 10)),
    "cauchy narrow": (lambda x: x.cauchy_(0.1, 0.01), stats.cauchy(0.1, 0.01)),
    "log-normal": (lambda x: x.log_normal_(), stats.lognorm(2, scale=np.e)),
    "log-normal flat": (lambda x: x.log_normal_(-1, 0.1), stats.lognorm(0.1, scale=np.exp(-1))),
    "log-normal steep": (lambda x: x.log_normal_(0, 2.5), stats.lognorm(2.5)),
    **{
        f"gamma {alpha}": (
            lambda x, alpha=alpha: torch._standard_gamma(torch.full_like(x, alpha)),
            stats.gamma(alpha),
        )
        for alpha in (0.3, 0.99, 1.0, 2.5, 40.0)
    },
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("draw", "distribution"), CONTINUOUS.values(), ids=CONTINUOUS)
def test_continuous_numbers(draw: Callable[[Any], Any], distribution: Any, dtype: Any) -> None:
    crowded = distribution.std() < 0.2 < abs(distribution.mean())
    underflowing = dtype is torch.float16 and distribution.cdf(2**-14) - distribution.cdf(0) > 0.01
    if dtype in HALVES and (crowded or underflowing):
        pytest.skip("the dtype has too few numbers there")
    assert_continuous(draw(torch.empty(count_of(dtype), dtype=dtype)), distribution)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 1e6])
def test_gamma_numbers_of_extreme_shapes(alpha: float) -> None:
    x = torch._standard_gamma(torch.full((60_001,), alpha, dtype=torch.float64))
    assert_continuous(x, stats.gamma(alpha))


RATES = [0.01, 0.7, 3.0, 9.99, 10.0, 12.0, 60.0, 1000.0, 1e5, 1e9]


@pytest.mark.parametrize("rate", RATES)
def test_poisson_numbers(rate: float) -> None:
    for dtype in FLOATS:
        # Rates beyond these lie where the dtype has no odd numbers.
        if rate < {torch.float16: 100, torch.bfloat16: 15, torch.float32: 1e6}.get(dtype, np.inf):
            x = torch.poisson(torch.full((count_of(dtype),), rate, dtype=dtype))
            assert x.dtype is dtype
            assert_discrete(x, stats.poisson(float(torch.tensor(rate, dtype=dtype))))


TRIES = [
    (1, 0.3), (7, 0.5), (20, 0.4), (20, 0.5), (25, 0.4), (30, 0.5), (40, 0.25), (50, 0.9),
    (1000, 0.003), (1000, 0.3), (1000, 0.999), (10**6, 0.7), (10**6, 1e-7), (10**9, 1e-3),
]  # fmt: skip


@pytest.mark.parametrize(("count", "prob"), TRIES)
def test_binomial_numbers(count: int, prob: float) -> None:
    for dtype in FLOATS:
        if count < {torch.float16: 200, torch.bfloat16: 60, torch.float32: 2000}.get(dtype, 1e12):
            counts = torch.full((count_of(dtype),), float(count), dtype=dtype)
            p = torch.tensor(prob, dtype=dtype)
            assert_discrete(torch.binomial(counts, p), stats.binom(count, p.item()))


@pytest.mark.parametrize("p", [0.01, 0.3, 0.5, 0.97])
def test_geometric_numbers(p: float) -> None:
    for dtype in (torch.float16, torch.float32, torch.float64, torch.int32, torch.int64):
        x = torch.empty(count_of(dtype), dtype=dtype).geometric_(p)
        assert x.min().item() >= 1
        assert_discrete(x, stats.geom(p))


@pytest.mark.parametrize(("low", "high"), [(0, 2), (0, 7), (-5, 100), (-(2**20), 2**20)])
def test_integers(low: int, high: int) -> None:
    for dtype in (torch.int32, torch.int64, torch.float32, torch.float64):
        x = torch.randint(low, high, (60_001,), dtype=dtype)
        assert_discrete(x, stats.randint(low, high))
        assert_discrete(
            torch.empty(60_001, dtype=dtype).random_(low, high), stats.randint(low, high)
        )


@pytest.mark.parametrize("p", [0.001, 0.3, 0.5, 0.9])
def test_bernoulli_numbers(p: float) -> None:
    n = 60_001
    for dtype in (*FLOATS, torch.int64, torch.bool):
        ones = [torch.empty(n, dtype=dtype).bernoulli_(p)]
        ones.append(torch.empty(n, dtype=dtype).bernoulli_(torch.full((n,), p)))
        if dtype.is_floating_point:
            ones.append(torch.bernoulli(torch.full((n,), p, dtype=dtype)))
        for x in ones:
            chance = float(torch.tensor(p, dtype=dtype)) if dtype in HALVES else p
            seen = int((x != 0).sum())
            assert stats.binomtest(seen, n, chance).pvalue > LIKELY
    dropped = torch.native_dropout(torch.ones(n), p, True)[1].logical_not().sum().item()
    assert stats.binomtest(int(dropped), n, p).pvalue > LIKELY


def test_categories_with_replacement() -> None:
    weights = torch.tensor([[1.0, 0.0, 3.0, 6.0], [0.5, 0.5, 0.0, 0.0]])
    for dtype in FLOATS:
        drawn = torch.multinomial(weights.to(dtype), 20_000, replacement=True).numpy()
        for row, chances in zip(drawn, weights.numpy(), strict=True):
            counts = np.bincount(row, minlength=4)
            assert (counts[chances == 0] == 0).all()
            possible = chances > 0
            expected = chances[possible] / chances.sum() * row.size
            assert stats.chisquare(counts[possible], expected).pvalue > LIKELY


def test_categories_without_replacement_come_one_after_the_other_by_weight() -> None:
    weights = np.array([1.0, 2.0, 5.0])
    drawn = torch.multinomial(torch.tensor(weights).expand(30_000, 3), 2).numpy()
    counts = np.bincount(drawn[:, 0] * 3 + drawn[:, 1], minlength=9).reshape(3, 3)
    chances = np.array([[
        0 if i == j else weights[i] / 8 * weights[j] / (8 - weights[i])
        for j in range(3)] for i in range(3)])  # fmt: skip
    assert (np.diag(counts) == 0).all()
    apart = ~np.eye(3, dtype=bool)
    assert stats.chisquare(counts[apart], 30_000 * chances[apart]).pvalue > LIKELY


def test_dirichlet_numbers_are_beta_distributed_and_sum_to_one() -> None:
    concentration = torch.tensor([0.2, 2.0, 7.0], dtype=torch.float64)
    x = torch._sample_dirichlet(concentration.expand(40_000, 3))
    assert torch.allclose(x.sum(-1), torch.ones(40_000, dtype=torch.float64))
    for i, a in enumerate(concentration.tolist()):
        assert_continuous(x[:, i], stats.beta(a, 9.2 - a))
    # Of tiny concentrations one takes all, and each as often.
    winners = torch._sample_dirichlet(torch.full((9_000, 3), 1e-4)).argmax(1)
    assert stats.chisquare(np.bincount(winners.numpy())).pvalue > LIKELY


# Gradients


@pytest.mark.parametrize("alpha", [0.05, 0.3, 1.0, 1.4, 1.6, 3.0, 30.0, 1000.0, 1e5])
def test_gamma_numbers_move_with_their_quantile(alpha: float) -> None:
    quantiles = np.array([1e-3, 0.05, 0.3, 0.5, 0.7, 0.95, 0.999])
    x, h = special.gammaincinv(alpha, quantiles), alpha * 1e-4
    a, b, c, d = (special.gammaincinv(alpha + k * h, quantiles) for k in (-2, -1, 1, 2))
    expected = (8 * (c - b) - (d - a)) / (12 * h)
    shape = torch.full((7,), alpha, dtype=torch.float64)
    slopes = torch._standard_gamma_grad(shape, torch.tensor(x)).numpy()
    np.testing.assert_allclose(slopes, expected, rtol=2e-6)


def test_gradients_of_gamma_and_dirichlet_numbers_are_those_of_their_means() -> None:
    n = 40_000
    alpha = torch.tensor([0.4, 2.0, 9.0], dtype=torch.float64, requires_grad=True)
    x = torch._standard_gamma(alpha.expand(n, 3))
    x.mean(0).sum().backward()  # the mean is alpha
    np.testing.assert_allclose(alpha.grad.numpy(), 1, atol=0.02)
    alpha.grad = None
    torch._sample_dirichlet(alpha.expand(n, 3)).mean(0)[1].backward()  # 2 / 11.4
    total = 11.4
    expected = np.array([-2.0, total - 2.0, -2.0]) / total**2
    np.testing.assert_allclose(alpha.grad.numpy(), expected, atol=3e-3)
    with pytest.raises(NotImplementedError, match="second derivative"):
        torch.autograd.grad(
            torch.autograd.grad(torch._standard_gamma(alpha).sum(), alpha, create_graph=True)[0]
            .sum(),
            alpha,
        )  # fmt: skip


def test_counts_pass_no_gradient() -> None:
    rate = torch.full((3,), 2.0, requires_grad=True)
    torch.poisson(rate).sum().backward()
    assert rate.grad.tolist() == [0, 0, 0]
    mean = torch.zeros(3, requires_grad=True)
    torch.normal(mean, torch.ones(2, 3)).sum().backward()
    assert mean.grad.tolist() == [0, 0, 0]


# Extremes


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (1, 2), (-2, -1), (-1, 0), (0.1, 0.3), (1000, 1001)]
)
def test_uniform_numbers_stay_below_their_upper_end(low: float, high: float, dtype: Any) -> None:
    x = torch.empty(200_001, dtype=dtype).uniform_(low, high)
    assert x.max().item() < high
    assert x.min().item() >= torch.tensor(low, dtype=dtype).item()
    assert (
        torch.empty(3, dtype=dtype).uniform_(high, high).tolist()
        == [torch.tensor(high, dtype=dtype).item()] * 3
    )


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_numbers_stay_in_the_support_of_their_distribution(dtype: Any) -> None:
    n = 200_001
    for rate in (1e-300, 1e-3, 1.0, 1e6, 1e300):
        x = torch.empty(n, dtype=dtype).exponential_(rate)
        assert x.isfinite().all()
        assert (x > 0).all()
    assert torch.empty(n, dtype=dtype).normal_().isfinite().all()
    assert torch.empty(n, dtype=dtype).cauchy_(0, 100).isfinite().all()
    gamma = torch._standard_gamma(torch.full((n,), 1e-3, dtype=dtype))
    assert (gamma > 0).all()
    parts = torch._sample_dirichlet(torch.full((2000, 3), 1e-3, dtype=dtype))
    assert (parts > 0).all()
    assert (parts < 1).all()


def test_impossible_and_certain_events() -> None:
    n = 10_001
    assert (torch.empty(n).bernoulli_(0) == 0).all()
    assert (torch.empty(n).bernoulli_(1) == 1).all()
    assert (torch.poisson(torch.zeros(n)) == 0).all()
    for prob, expected in ((0.0, 0.0), (1.0, 9.0), (-0.5, 0.0), (1.5, 9.0)):
        x = torch.binomial(torch.full((n,), 9.0), torch.tensor(prob))
        assert (x == expected).all()
    assert torch.native_dropout(torch.ones(n), 1.0, True)[1].any().item() is False
    assert torch.native_dropout(torch.ones(n), 0.5, False)[1].all().item() is True


def test_huge_tiny_and_missing_parameters() -> None:
    inf, nan = float("inf"), float("nan")
    assert torch.poisson(torch.tensor([inf])).tolist() == [inf]
    large = torch.poisson(torch.full((1000,), 1e30, dtype=torch.float64))
    assert ((large / 1e30 - 1).abs() < 1e-14).all()
    counts = torch.binomial(torch.tensor([nan, inf, -3.0, 1e30]), torch.tensor(0.5))
    assert counts[0].isnan()
    assert counts[1:3].tolist() == [inf, 0]
    assert counts[3].item() == pytest.approx(5e29, rel=1e-6)
    assert torch.binomial(torch.tensor([5.0]), torch.tensor([nan])).isnan().all()
    assert torch._standard_gamma(torch.tensor([nan, -1.0])).isnan().all()
    assert torch._standard_gamma(torch.tensor([inf])).tolist() == [inf]
    assert torch.empty(3, dtype=torch.int64).geometric_(1e-300).min().item() > 2**62
    assert torch.empty(3, dtype=torch.uint8).geometric_(1e-9).tolist() == [255] * 3


def test_integers_that_a_float_rounds_stay_in_their_range() -> None:
    high = 2**62
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        x = torch.randint(high - 2**54, high, (20_000,), dtype=dtype)
        assert x.max().item() < high
        assert x.min().item() >= high - 2**54
        assert torch.randint(-high, 1 - high, (9,), dtype=dtype).tolist() == [-high] * 9
