"""The first numbers of every draw, pinned: a seed gives the same ones in every release.

When a change moves them on purpose, `python tests/test_random_golden.py` prints the new ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch

F32, F64, F16, BF16 = torch.float32, torch.float64, torch.float16, torch.bfloat16
N = 4

DRAWS: dict[str, Callable[[], Any]] = {
    "rand": lambda: torch.rand(N),
    "rand float64": lambda: torch.rand(N, dtype=F64),
    "rand float16": lambda: torch.rand(N, dtype=F16),
    "rand bfloat16": lambda: torch.rand(N, dtype=BF16),
    "uniform_": lambda: torch.empty(N).uniform_(-3, 5),
    "randn": lambda: torch.randn(N),
    "randn float64": lambda: torch.randn(N, dtype=F64),
    "randn float16": lambda: torch.randn(N, dtype=F16),
    "normal_": lambda: torch.empty(N).normal_(-3, 5),
    "normal": lambda: torch.normal(torch.arange(4.0), torch.arange(1.0, 5.0)),
    "exponential_": lambda: torch.empty(N, dtype=F64).exponential_(2),
    "cauchy_": lambda: torch.empty(N, dtype=F64).cauchy_(1, 2),
    "log_normal_": lambda: torch.empty(N, dtype=F64).log_normal_(),
    "geometric_": lambda: torch.empty(N, dtype=torch.int64).geometric_(0.05),
    "bernoulli_": lambda: torch.empty(12).bernoulli_(0.3),
    "bernoulli": lambda: torch.bernoulli(torch.full((12,), 0.7)),
    "randint": lambda: torch.randint(1000, (N,)),
    "randint float32": lambda: torch.randint(-1000, 1000, (N,), dtype=F32),
    "random_": lambda: torch.empty(N, dtype=torch.int64).random_(),
    "random_ int8": lambda: torch.empty(N, dtype=torch.int8).random_(-128, None),
    "randperm": lambda: torch.randperm(12),
    "multinomial": lambda: torch.multinomial(torch.arange(9.0), 6),
    "multinomial again": lambda: torch.multinomial(torch.arange(9.0), 9, replacement=True),
    "dropout": lambda: torch.dropout(torch.ones(12), 0.5, True),
    "poisson": lambda: torch.poisson(torch.tensor([0.5, 5.0, 50.0, 5e6])),
    "binomial": lambda: torch.binomial(
        torch.tensor([5.0, 50.0, 500.0, 5e6]), torch.tensor([0.5, 0.7, 0.1, 0.01])
    ),
    "standard gamma": lambda: torch._standard_gamma(torch.tensor([0.1, 1.0, 10.0, 1e6], dtype=F64)),
    "dirichlet": lambda: torch._sample_dirichlet(torch.tensor([0.1, 1.0, 10.0])),
}

GOLDEN: dict[str, list[float]] = {
    "rand": [0.9882805943489075, 0.3488624691963196, 0.43778592348098755, 0.8183378577232361],
    "rand float64": [
        0.34886249410646974,
        0.8183378662070692,
        0.7194192185285918,
        0.903177337705348,
    ],
    "rand float16": [0.98779296875, 0.3486328125, 0.4375, 0.81787109375],
    "rand bfloat16": [0.984375, 0.34765625, 0.4375, 0.81640625],
    "uniform_": [4.90624475479126, -0.20910024642944336, 0.5022873878479004, 3.5467028617858887],
    "randn": [-0.08936358988285065, 0.12486547976732254, 0.5350878238677979, -1.1686451435089111],
    "randn float64": [
        0.6041691407621618,
        -1.3195205635292448,
        0.6659537324863366,
        -0.463818599256565,
    ],
    "randn float16": [-0.08935546875, 0.1248779296875, 0.53515625, -1.1689453125],
    "normal_": [-3.4468178749084473, -2.3756725788116455, -0.32456088066101074, -8.843225479125977],
    "normal": [-0.08936358988285065, 1.2497309446334839, 3.6052634716033936, -1.6745805740356445],
    "exponential_": [
        0.526538717056456,
        0.10023999414186274,
        0.16465551670720127,
        0.05091817878800567,
    ],
    "cauchy_": [13.06859890795725, 6.378306782001768, 2.3485558627207017, -10.178386594067865],
    "log_normal_": [9.10058121737422, 0.1941661337093923, 10.297565056150503, 1.0750453013547778],
    "geometric_": [21.0, 4.0, 7.0, 2.0],
    "bernoulli_": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0],
    "bernoulli": [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0],
    "randint": [348.0, 818.0, 719.0, 903.0],
    "randint float32": [-303.0, 636.0, 438.0, 806.0],
    "random_": [
        3.2176885728490276e18,
        7.547834591873688e18,
        6.635471102952529e18,
        8.33034060091245e18,
    ],
    "random_ int8": [-39.0, 81.0, 56.0, 103.0],
    "randperm": [10.0, 4.0, 1.0, 6.0, 7.0, 2.0, 9.0, 0.0, 5.0, 8.0, 3.0, 11.0],
    "multinomial": [4.0, 5.0, 3.0, 2.0, 1.0, 7.0],
    "multinomial again": [5.0, 8.0, 7.0, 8.0, 8.0, 8.0, 3.0, 4.0, 3.0],
    "dropout": [2.0, 0.0, 0.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0],
    "poisson": [0.0, 6.0, 62.0, 4997425.0],
    "binomial": [2.0, 35.0, 43.0, 49744.0],
    "standard gamma": [
        5.0327918264947057e-17,
        1.4722305818100527,
        8.947139400175674,
        999544.2781699457,
    ],
    "dirichlet": [4.830229369955412e-18, 0.14129745960235596, 0.858702540397644],
}


def first_numbers(name: str) -> list[float]:
    torch.manual_seed(2026)
    torch.rand(1)
    return DRAWS[name]().double().tolist()


@pytest.mark.parametrize("name", DRAWS)
def test_the_first_numbers_of_a_seed_stay(name: str) -> None:
    numbers = first_numbers(name)
    if name == "dirichlet":  # softmax and its exp may round in another way
        assert numbers == pytest.approx(GOLDEN[name], rel=1e-6)
    else:
        assert numbers == GOLDEN[name]


if __name__ == "__main__":
    print({name: first_numbers(name) for name in DRAWS})
