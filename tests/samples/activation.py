"""Samples of activation functions."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.special
import scipy.stats

from samples import Sample, away_from, complex_normal, normal, samples

sigmoid = scipy.special.expit


def gelu_ref(x: np.ndarray, approximate: str = "none") -> np.ndarray:
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return x * scipy.stats.norm.cdf(x)


@samples(
    "nn.functional.softplus", ref=lambda x, beta=1, threshold=20: np.logaddexp(0, x * beta) / beta
)
def softplus() -> Iterator[Any]:
    yield normal(3, 4)
    yield Sample(normal(3, 4), beta=3.0)
    yield np.full(4, 300.0)
    yield np.full(4, -300.0)


@samples("nn.functional.gelu", ref=gelu_ref)
def gelu() -> Iterator[Any]:
    yield normal(3, 4, scale=2.0)
    yield Sample(normal(3, 4, scale=2.0), approximate="tanh")


def at_zero() -> Iterator[Any]:
    yield away_from(0.0)


samples("relu", ref=lambda x, inplace=False: np.maximum(x, 0))(at_zero)
samples("nn.functional.relu6", ref=lambda x, inplace=False: np.clip(x, 0, 6))(at_zero)
samples("nn.functional.silu", ref=lambda x, inplace=False: x * sigmoid(x))(at_zero)
samples("nn.functional.mish", ref=lambda x, inplace=False: x * np.tanh(np.logaddexp(0, x)))(at_zero)
samples("nn.functional.logsigmoid", ref=lambda x: -np.logaddexp(0, -x))(at_zero)


@samples("nn.functional.softsign", ref=lambda x: x / (1 + np.abs(x)))
def softsign() -> Iterator[Any]:
    yield from at_zero()
    yield complex_normal(3, 4)


samples("nn.functional.tanhshrink", ref=lambda x: x - np.tanh(x))(at_zero)
samples(
    "selu",
    ref=lambda x, inplace=False: (
        1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0)))
    ),
)(at_zero)


@samples(
    "nn.functional.elu",
    ref=lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
)
def elu() -> Iterator[Any]:
    yield away_from(0.0)
    yield Sample(away_from(0.0), alpha=0.7)


@samples(
    "celu",
    ref=lambda x, alpha=1.0: np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha)),
)  # fmt: skip
def celu() -> Iterator[Any]:
    yield away_from(0.0)
    yield Sample(away_from(0.0), alpha=0.7)


@samples(
    "nn.functional.leaky_relu",
    ref=lambda x, negative_slope=0.01: np.where(x > 0, x, negative_slope * x),
)  # fmt: skip
def leaky_relu() -> Iterator[Any]:
    yield away_from(0.0)
    yield Sample(away_from(0.0), negative_slope=0.2)


@samples(
    "nn.functional.hardtanh", ref=lambda x, min_val=-1.0, max_val=1.0: np.clip(x, min_val, max_val)
)
def hardtanh() -> Iterator[Any]:
    yield away_from(-1.0, 1.0)
    yield Sample(away_from(-0.5, 2.0), min_val=-0.5, max_val=2.0)


@samples("nn.functional.hardsigmoid", ref=lambda x: np.clip(x / 6 + 0.5, 0, 1))
def hardsigmoid() -> Iterator[Any]:
    yield away_from(-3.0, 3.0)


@samples("nn.functional.hardswish", ref=lambda x: x * np.clip(x / 6 + 0.5, 0, 1))
def hardswish() -> Iterator[Any]:
    yield away_from(-3.0, 3.0)


@samples(
    "nn.functional.softshrink",
    ref=lambda x, lambd=0.5: np.sign(x) * np.maximum(np.abs(x) - lambd, 0),
)
def softshrink() -> Iterator[Any]:
    yield away_from(-0.5, 0.5)


@samples("hardshrink", ref=lambda x, lambd=0.5: np.where(np.abs(x) > lambd, x, 0))
def hardshrink() -> Iterator[Any]:
    yield away_from(-0.5, 0.5)


@samples("threshold", ref=lambda x, threshold, value: np.where(x > threshold, x, value))
def threshold() -> Iterator[Any]:
    yield away_from(1.0), 1, 3
    yield away_from(0.3), 0.3, -2.0


@samples("prelu", ref=lambda x, w: np.where(x > 0, x, w.reshape(1, -1, 1) * x))
def prelu() -> Iterator[Any]:
    yield away_from(0.0, shape=(2, 3, 4)), np.abs(normal(3))
    yield away_from(0.0, shape=(2, 3, 4)), np.array([0.25])


@samples(
    "nn.functional.glu",
    ref=lambda x, dim=-1: np.split(x, 2, dim)[0] * sigmoid(np.split(x, 2, dim)[1]),
)
def glu() -> Iterator[Any]:
    yield normal(3, 4)
    yield normal(4, 3), 0
