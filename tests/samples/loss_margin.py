"""Samples of losses of margins."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, away_from, integers, normal, samples, uniform
from samples.loss_pointwise import REDUCTIONS, in_every_reduction, reduced


def signs(*shape: int) -> np.ndarray:
    return np.sign(normal(*shape))


@samples(
    "nn.functional.hinge_embedding_loss",
    ref=reduced(
        lambda x, y, margin=1.0: (
            np.where(y != -1, x, 0) + np.where(y != 1, np.maximum(0, margin - x), 0)
        )
    ),
    constant=(1,),
)
def hinge_embedding_loss() -> Iterator[Sample]:
    yield from in_every_reduction(away_from(1.0), signs(3, 4))
    yield from in_every_reduction(away_from(0.5), signs(3, 4), margin=0.5)


@samples(
    "nn.functional.margin_ranking_loss",
    ref=reduced(lambda a, b, y, margin=0.0: np.maximum(0, -y * (a - b) + margin)),
    constant=(2,),
)
def margin_ranking_loss() -> Iterator[Sample]:
    target, other = signs(3, 4), normal(3, 4)
    yield from in_every_reduction(other + away_from(0.0), other, target)
    yield from in_every_reduction(other + target * away_from(0.5), other, target, margin=0.5)


def cosine_ref(a: np.ndarray, b: np.ndarray, y: np.ndarray, margin: float = 0.0) -> np.ndarray:
    cosine = (a * b).sum(-1) / np.sqrt(((a * a).sum(-1) + 1e-12) * ((b * b).sum(-1) + 1e-12))
    return np.where(y == 1, 1 - cosine, np.where(y == -1, np.maximum(0, cosine - margin), 0))


@samples("nn.functional.cosine_embedding_loss", ref=reduced(cosine_ref), constant=(2,))
def cosine_embedding_loss() -> Iterator[Any]:
    yield from in_every_reduction(normal(4, 3), normal(4, 3), np.array([1.0, -1, 1, -1]))
    yield Sample(normal(3), normal(3), np.array(-1.0), margin=-0.9)


def distance(a: np.ndarray, b: np.ndarray, p: float, eps: float) -> np.ndarray:
    return (np.abs(a - b + eps) ** p).sum(-1) ** (1 / p)


def triplet_ref(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, margin: float = 1.0, p: float = 2.0,
    eps: float = 1e-6, swap: bool = False,
) -> np.ndarray:  # fmt: skip
    far = distance(a, c, p, eps)
    if swap:
        far = np.minimum(far, distance(b, c, p, eps))
    return np.maximum(0, distance(a, b, p, eps) - far + margin)


@samples("nn.functional.triplet_margin_loss", ref=reduced(triplet_ref))
def triplet_margin_loss() -> Iterator[Sample]:
    yield from in_every_reduction(normal(4, 3), normal(4, 3), normal(4, 3))
    yield from in_every_reduction(normal(4, 3), normal(4, 3), normal(4, 3), margin=2.5, swap=True)
    yield Sample(normal(3), normal(3), normal(3), p=3.0, eps=0.1)


def multi_margin_ref(
    x: np.ndarray, target: np.ndarray, p: int = 1, margin: float = 1.0, weight: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    rows, classes = x.reshape(-1, x.shape[-1]), target.reshape(-1)
    losses = []
    for row, y in zip(rows, classes, strict=True):
        excess = np.maximum(0, margin - row[y] + row) ** p * (1.0 if weight is None else weight[y])
        losses.append(np.delete(excess, y).sum() / len(row))
    return REDUCTIONS[reduction](np.reshape(losses, target.shape))


@samples("nn.functional.multi_margin_loss", ref=multi_margin_ref, constant=(1, 4))
def multi_margin_loss() -> Iterator[Sample]:
    yield from in_every_reduction(normal(4, 3), integers(0, 3, 4))
    yield from in_every_reduction(normal(4, 3), integers(0, 3, 4), p=2, margin=0.75)
    yield Sample(normal(4, 3), integers(0, 3, 4), 1, 0.5, uniform(3, low=0.5, high=2.0))
    yield Sample(normal(3), np.array(2))


def multilabel_margin_ref(x: np.ndarray, target: np.ndarray, reduction: str = "mean") -> Any:
    losses = []
    for row, labels in zip(np.atleast_2d(x), np.atleast_2d(target), strict=True):
        end = np.flatnonzero(labels < 0)
        named = labels[: end[0]] if len(end) else labels
        others = np.delete(row, named)
        losses.append(sum(np.maximum(0, 1 - row[y] + others).sum() for y in named) / len(row))
    return REDUCTIONS[reduction](np.reshape(losses, x.shape[:-1]))


@samples("nn.functional.multilabel_margin_loss", ref=multilabel_margin_ref, constant=(1,))
def multilabel_margin_loss() -> Iterator[Sample]:
    target = np.array([[3, 0, -1, 1], [-1, 2, 2, 2], [0, 1, 2, 3], [1, 1, -1, -1]])
    yield from in_every_reduction(normal(4, 4), target)
    yield Sample(normal(4), np.array([2, -1, 0, 0]))


@samples(
    "nn.functional.multilabel_soft_margin_loss",
    ref=reduced(
        lambda x, y, w=1.0: (w * (np.logaddexp(0, -x) * y + np.logaddexp(0, x) * (1 - y))).mean(-1)
    ),
)
def multilabel_soft_margin_loss() -> Iterator[Sample]:
    yield from in_every_reduction(normal(4, 3), uniform(4, 3))
    yield Sample(normal(4, 3), uniform(4, 3), uniform(3))
