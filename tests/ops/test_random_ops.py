"""Random ops: their distributions, and that threads, instruction sets and layouts do not show."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats

import rushlight as torch
from rushlight.nn import functional as F

N = 200_001  # odd: the last pair of normal numbers is half used
LIKELY = 1e-4  # the least p-value; seeds are fixed, so a test passes always or never


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(2)


def fits(numbers: Any, distribution: str, *args: float) -> None:
    expected = getattr(stats, distribution)(*args).cdf
    assert stats.kstest(numbers.double().numpy(), expected).pvalue > LIKELY


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_numbers_follow_their_distribution(dtype: Any) -> None:
    fits(torch.rand(N, dtype=dtype), "uniform")
    fits(torch.empty(N, dtype=dtype).uniform_(-2, 3), "uniform", -2, 5)
    fits(torch.randn(N, dtype=dtype), "norm")
    fits(torch.normal(2.0, 3.0, (N,), dtype=dtype), "norm", 2, 3)
    fits(torch.empty(N, dtype=dtype).exponential_(4), "expon", 0, 0.25)


def test_neighbors_are_independent() -> None:
    x = torch.randn(N).numpy()
    pairs = [(x[:-1], x[1:]), (x[:-1:2] ** 2, x[1::2] ** 2), (x[:-4], x[4:])]
    for a, b in pairs:
        assert abs(np.corrcoef(a, b)[0, 1]) < 0.01


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_uniform_numbers_never_reach_the_upper_end(dtype: Any) -> None:
    x = torch.rand(N, dtype=dtype)
    assert x.min().item() >= 0
    assert x.max().item() < 1


@pytest.mark.parametrize(
    ("low", "high"), [(0, 10), (-3, 4), (-(2**62), 2**62), (-(2**63), 2**63 - 1)]
)
def test_integers_are_even_over_their_range(low: int, high: int) -> None:
    x = torch.randint(low, high, (N,)).numpy()
    assert x.min() >= low
    assert x.max() < high
    edges = [low + (high - low) * i // 7 for i in range(8)]
    counts = [int(((x >= a) & (x < b)).sum()) for a, b in pairwise(edges)]
    widths = np.diff(np.array(edges, dtype=object)).astype(float)
    assert stats.chisquare(counts, sum(counts) * widths / widths.sum()).pvalue > LIKELY


def test_random_covers_what_the_dtype_holds() -> None:
    assert torch.empty(20_000, dtype=torch.uint8).random_().unique().numel() == 256
    assert torch.empty(100, dtype=torch.bool).random_().unique().tolist() == [False, True]
    assert torch.empty(1000).random_(3).unique().tolist() == [0, 1, 2]
    assert torch.empty(1000).random_(5, 7).unique().tolist() == [5, 6]


def test_every_permutation_is_as_likely() -> None:
    counts = np.zeros((4, 4))
    for _ in range(2000):
        counts[np.arange(4), torch.randperm(4).numpy()] += 1
    assert stats.chisquare(counts.ravel()).pvalue > LIKELY
    assert sorted(torch.randperm(1000).tolist()) == list(range(1000))


def test_bernoulli_and_multinomial_follow_their_weights() -> None:
    assert abs(torch.empty(N).bernoulli_(0.3).mean().item() - 0.3) < 0.01
    chances = torch.tensor([0.0, 0.25, 1.0]).repeat(10_000, 1)
    assert torch.allclose(torch.bernoulli(chances).mean(0), torch.tensor([0, 0.25, 1]), atol=0.02)
    weights = torch.tensor([1.0, 0.0, 3.0, 6.0])
    drawn = torch.bincount(torch.multinomial(weights, N, replacement=True), minlength=4) / N
    assert torch.allclose(drawn, torch.tensor([0.1, 0.0, 0.3, 0.6]), atol=0.01)
    first = torch.multinomial(weights.repeat(20_000, 1), 3)
    assert torch.allclose((first[:, 0] == 3).double().mean(), torch.tensor(0.6).double(), atol=0.02)
    assert (first.sort(1).values == torch.tensor([0, 2, 3])).all()


def test_dropout_zeroes_its_share_scales_the_rest_and_passes_gradients_alike() -> None:
    x = torch.ones(N, requires_grad=True)
    y = F.dropout(x, 0.25)
    assert abs((y == 0).double().mean().item() - 0.25) < 0.01
    assert set(y.detach().unique().tolist()) == {0.0, torch.tensor(1 / 0.75).item()}
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_dropout_in_place_is_recorded() -> None:
    x = torch.ones(1000, requires_grad=True)
    y = x * 1
    assert F.dropout(y, 0.5, inplace=True) is y
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_dropout_without_training_returns_its_input() -> None:
    x = torch.ones(3)
    assert F.dropout(x, 0.5, training=False) is x
    assert F.dropout(x, 0.0) is x
    assert F.dropout(x, 1.0).tolist() == [0, 0, 0]


def test_forms_of_normal_broadcast_their_arguments() -> None:
    means = torch.arange(3.0).reshape(3, 1)
    assert torch.equal(torch.normal(means, torch.zeros(2)), means.expand(3, 2))
    assert torch.normal(0.0, torch.ones(4)).shape == (4,)
    assert torch.normal(means, 1.0).shape == (3, 1)
    assert torch.randn_like(means.double()).dtype is torch.float64
    assert torch.rand_like(means).shape == (3, 1)
    assert torch.randint_like(means, 3, 5).min().item() >= 3
    assert torch.randint_like(means, 5).dtype is torch.float32


def test_complex_numbers_have_variance_one() -> None:
    z = torch.randn(N, dtype=torch.complex64).numpy()
    assert abs(np.var(z) - 1) < 0.02
    assert abs(np.corrcoef(z.real, z.imag)[0, 1]) < 0.01


def test_a_given_generator_leaves_the_default_one_alone() -> None:
    state = torch.get_rng_state()
    a, b = torch.Generator().manual_seed(3), torch.Generator().manual_seed(3)
    assert torch.equal(torch.rand(5, generator=a), torch.rand(5, generator=b))
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(torch.rand(5, generator=a), torch.rand(5, generator=torch.Generator()))


def numbers_of_every_kind() -> list[Any]:
    torch.manual_seed(7)
    return [
        torch.rand(100_003),
        torch.randn(100_003),
        torch.randn(5, 7, dtype=torch.float64),
        torch.rand(70_000, dtype=torch.float16),
        torch.randint(0, 1000, (99_999,)),
        torch.empty(50_001).exponential_(),
        torch.empty(300, 500).t().normal_(),
        F.dropout(torch.ones(70_001), 0.3),
        torch.randperm(5000),
        torch.multinomial(torch.rand(50, 40), 7),
    ]


def digest() -> str:
    parts = [np.ascontiguousarray(x.numpy()).tobytes() for x in numbers_of_every_kind()]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def test_threads_do_not_show() -> None:
    before = torch.get_num_threads()
    try:
        digests = set()
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            digests.add(digest())
    finally:
        torch.set_num_threads(before)
    assert len(digests) == 1


@pytest.mark.parametrize("instruction_set", ["baseline", "v3"])
def test_instruction_sets_do_not_show(instruction_set: str) -> None:
    program = "from ops.test_random_ops import digest; print(digest())"
    path = os.pathsep.join(p for p in sys.path if p)
    environment = {**os.environ, "RUSHLIGHT_CPU": instruction_set, "PYTHONPATH": path}
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == digest()


def test_a_view_gets_the_numbers_of_its_own_order() -> None:
    plain = torch.empty(30, 40).normal_()
    torch.manual_seed(2)
    view = torch.zeros(40, 30).t().normal_()
    assert torch.equal(plain, view)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: torch.randint(5, 5, (2,)), "from=5 >= to=5"),
        (lambda: torch.multinomial(torch.zeros(3), 1), "sum of probabilities <= 0"),
        (lambda: torch.multinomial(torch.tensor([-1.0, 2.0]), 1), "element < 0"),
        (lambda: torch.multinomial(torch.tensor([1.0, 0.0]), 2), "not enough non-negative"),
        (lambda: torch.multinomial(torch.ones(2), 3), "n_sample > prob_dist.size"),
        (lambda: torch.bernoulli(torch.tensor([1.5])), "p_in <= 1, got 1.5"),
        (lambda: torch.empty(2).normal_(0, -1), "std >= 0.0, but found std -1"),
        (lambda: torch.empty(2).uniform_(2, 1), "from=2 > to=1"),
        (lambda: torch.empty(2).exponential_(0), "lambda > 0.0"),
        (lambda: torch.randperm(-1), "n must be non-negative"),
        (lambda: torch.randperm(300, dtype=torch.uint8), "too large for result tensor type"),
    ],
)
def test_arguments_out_of_range_are_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call()
    with pytest.raises(ValueError, match="between 0 and 1"):
        F.dropout(torch.ones(2), 1.5)
