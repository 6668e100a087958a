"""Samples of losses that compare elements."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.special

from samples import Sample, away_from, complex_normal, normal, samples, uniform

REDUCTIONS = {"none": lambda x: x, "sum": np.sum, "mean": np.mean}


def reduced(formula: Callable[..., np.ndarray]) -> Callable[..., Any]:
    """The loss of a formula for its elements."""

    def loss(*args: Any, reduction: str = "mean", weight: Any = None, **settings: Any) -> Any:
        losses = formula(*args, **settings)
        return REDUCTIONS[reduction](losses if weight is None else losses * weight)

    return loss


def mean_over_weights(formula: Callable[..., np.ndarray]) -> Callable[..., Any]:
    """The same, but a mean is divided by the weights."""

    def loss(*args: Any, reduction: str = "mean", weight: Any = None) -> Any:
        if weight is not None and reduction == "mean":
            return (formula(*args) * weight).sum() / weight.sum()
        return reduced(formula)(*args, reduction=reduction, weight=weight)

    return loss


def in_every_reduction(*args: np.ndarray, **settings: Any) -> Iterator[Sample]:
    for reduction in REDUCTIONS:
        yield Sample(*args, reduction=reduction, **settings)


def weighted() -> Iterator[Sample]:
    difference = away_from(0.0)
    target = normal(3, 4)
    yield from in_every_reduction(target + difference, target)
    yield from in_every_reduction(target + difference, target, weight=uniform(3, 4, low=0.5))


samples("nn.functional.mse_loss", ref=mean_over_weights(lambda x, y: (x - y) ** 2))(weighted)
samples("nn.functional.l1_loss", ref=mean_over_weights(lambda x, y: np.abs(x - y)))(weighted)


@samples(
    "nn.functional.smooth_l1_loss",
    ref=reduced(
        lambda x, y, beta=1.0: np.where(
            np.abs(x - y) < beta, (x - y) ** 2 / (2 * max(beta, 1e-9)), np.abs(x - y) - beta / 2
        )
    ),
)
def smooth_l1_loss() -> Iterator[Sample]:
    target, difference = normal(3, 4), away_from(-0.7, 0.0, 0.7)
    yield from in_every_reduction(target + difference, target, beta=0.7)
    yield from in_every_reduction(target + difference, target, beta=0.0)


@samples(
    "nn.functional.huber_loss",
    ref=reduced(
        lambda x, y, delta=1.0: np.where(
            np.abs(x - y) <= delta, (x - y) ** 2 / 2, delta * (np.abs(x - y) - delta / 2)
        )
    ),
)
def huber_loss() -> Iterator[Sample]:
    target, difference = normal(3, 4), away_from(-0.7, 0.7)
    yield from in_every_reduction(target + difference, target, delta=0.7)
    yield from in_every_reduction(target + difference, target, delta=0.7, weight=uniform(3, 4))


def cross_entropy(log_p: np.ndarray, log_not_p: np.ndarray, y: np.ndarray) -> np.ndarray:
    return -(y * np.maximum(log_p, -100) + (1 - y) * np.maximum(log_not_p, -100))


@samples(
    "nn.functional.binary_cross_entropy",
    ref=reduced(lambda p, y: cross_entropy(np.log(p), np.log1p(-p), y)),
)
def binary_cross_entropy() -> Iterator[Sample]:
    p, y = uniform(3, 4, low=0.1, high=0.9), uniform(3, 4)
    yield from in_every_reduction(p, y)
    yield from in_every_reduction(p, y, weight=uniform(4))


def logits_ref(x: np.ndarray, y: np.ndarray, pos_weight: Any = 1.0) -> np.ndarray:
    return -(pos_weight * y * scipy.special.log_expit(x) + (1 - y) * scipy.special.log_expit(-x))


@samples("nn.functional.binary_cross_entropy_with_logits", ref=reduced(logits_ref))
def binary_cross_entropy_with_logits() -> Iterator[Sample]:
    x, y = normal(3, 4, scale=3.0), uniform(3, 4)
    yield from in_every_reduction(x, y)
    yield from in_every_reduction(x, y, weight=uniform(4), pos_weight=uniform(4, low=0.5, high=3))
    yield from in_every_reduction(x * 300, y)


def kl_div_ref(
    log_p: np.ndarray, q: np.ndarray, reduction: str = "mean", log_target: bool = False
) -> Any:
    losses = np.exp(q) * (q - log_p) if log_target else scipy.special.xlogy(q, q) - q * log_p
    return losses.sum() / len(q) if reduction == "batchmean" else REDUCTIONS[reduction](losses)


@samples("nn.functional.kl_div", ref=kl_div_ref)
def kl_div() -> Iterator[Sample]:
    p, q = uniform(3, 4, low=0.1), uniform(3, 4, low=0.1)
    yield from in_every_reduction(np.log(p), q)
    yield from in_every_reduction(np.log(p), np.log(q), log_target=True)
    yield Sample(np.log(p), q, reduction="batchmean")


@samples("nn.functional.soft_margin_loss", ref=reduced(lambda x, y: np.log1p(np.exp(-y * x))))
def soft_margin_loss() -> Iterator[Sample]:
    yield from in_every_reduction(normal(3, 4), np.sign(normal(3, 4)))
    yield from in_every_reduction(complex_normal(3, 4), normal(3, 4))


def poisson_ref(
    x: np.ndarray, y: np.ndarray, log_input: bool = True, full: bool = False, eps: float = 1e-8
) -> Any:
    losses = np.exp(x) - y * x if log_input else x - y * np.log(x + eps)
    stirling = y * np.log(y) - y + 0.5 * np.log(2 * np.pi * y)
    return losses + np.where(y > 1, stirling, 0) if full else losses


@samples("nn.functional.poisson_nll_loss", ref=reduced(poisson_ref))
def poisson_nll_loss() -> Iterator[Sample]:
    rate, count = uniform(3, 4, low=0.5, high=3), uniform(3, 4, low=1.2, high=5)
    yield from in_every_reduction(np.log(rate), count)
    yield from in_every_reduction(rate, count, log_input=False, full=True)
