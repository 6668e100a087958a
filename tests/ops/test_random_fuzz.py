"""Random ops with arguments of every kind: a result or a clear error, and no crash or hang."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch

FUNCTIONS = [
    "rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "randperm", "normal",
    "bernoulli", "poisson", "binomial", "multinomial", "_standard_gamma", "_standard_gamma_grad",
    "_sample_dirichlet", "native_dropout", "dropout", "dropout_", "feature_dropout",
    "feature_dropout_", "alpha_dropout", "alpha_dropout_", "feature_alpha_dropout",
    "feature_alpha_dropout_", "manual_seed", "set_rng_state", "Generator",
]  # fmt: skip
METHODS = [
    "cauchy_", "geometric_", "log_normal_", "exponential_", "normal_", "uniform_", "random_",
    "bernoulli_", "bernoulli", "multinomial",
]  # fmt: skip
OF_GENERATORS = [
    "manual_seed", "set_state", "set_offset", "get_offset", "get_state", "clone_state", "seed",
    "graphsafe_get_state", "graphsafe_set_state", "__setstate__", "__reduce__", "initial_seed",
]  # fmt: skip
KEYWORDS = [
    "generator", "out", "dtype", "device", "layout", "requires_grad", "pin_memory", "size", "p",
    "mean", "std", "low", "high", "n", "replacement", "num_samples", "from", "to", "lambd", "train",
    "count", "prob", "median", "sigma", "memory_format", "input",
]  # fmt: skip
NAN, INF = float("nan"), float("inf")
# No large numbers of which so many fit into memory.
PLAIN = [
    0, 1, -1, 2, 3, 5, 0.5, -0.5, 1.5, NAN, INF, -INF, 1e-300, 1e300, 1e-45, 3.4e38, 2**53, 2**62,
    2**63 - 1, -(2**63), 2**63, 2**64, 2**70, True, False, None, "a", 1j, b"x", object(), "cpu",
    "meta", "cuda:9", (2, 3), [4], (0,), (-1,), (2**44,), (2**62, 2**62), (1.5,), ("a",), (),
]  # fmt: skip
DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.uint16, torch.int32, torch.uint64, torch.int64,
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128,
]  # fmt: skip
SHAPES = [(), (0,), (1,), (5,), (2, 3), (3, 0), (0, 3), (2, 3, 4), (7, 1), (1, 9)]


class Fuzz:
    def __init__(self, seed: int) -> None:
        self.source = random.Random(seed)
        self.pick = self.source.choice

    def tensor(self) -> Any:
        number = self.pick([0, 1, 0.5, -1, 40, 1e-3, 255])
        x = torch.full(self.pick(SHAPES), number, dtype=torch.float64).to(self.pick(DTYPES))
        if x.dtype.is_floating_point:
            x = x * self.pick([1, NAN, INF, 1e30])
        changes: list[Callable[[Any], Any]] = [
            lambda x: x.expand(4, *x.shape),
            lambda x: x.transpose(0, -1) if x.dim() else x,
            lambda x: torch.stack([x, x], -1)[..., 0],
            lambda x: x.to("meta"),
            lambda x: x.requires_grad_() if x.dtype.is_floating_point else x,
        ]
        return self.pick(changes)(x) if self.source.random() < 0.5 else x

    def value(self) -> Any:
        chance = self.source.random()
        if chance < 0.4:
            return self.tensor()
        if chance < 0.5:
            return self.pick([torch.Generator(), *DTYPES])
        return self.pick(PLAIN)

    def function(self) -> Any:
        chance = self.source.random()
        if chance < 0.6:
            return getattr(torch, self.pick(FUNCTIONS))
        if chance < 0.9:
            return getattr(self.tensor(), self.pick(METHODS))
        return getattr(torch.Generator(), self.pick(OF_GENERATORS))

    def call(self) -> Any:
        args = [self.value() for _ in range(self.source.randint(0, 4))]
        names = self.source.sample(KEYWORDS, self.pick([0, 0, 0, 1, 1, 2]))
        return self.function()(*args, **{name: self.value() for name in names})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(6))
def test_arguments_of_every_kind_give_a_result_or_a_clear_error(seed: int) -> None:
    fuzz = Fuzz(seed)
    results, messages = 0, []
    for _ in range(2000):
        try:
            fuzz.call()
            results += 1
        except (RuntimeError, TypeError, ValueError, OverflowError) as error:
            messages.append(str(error))
    assert results > 20
    assert all(messages)
