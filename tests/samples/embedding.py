"""Samples of embedding."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import integers, normal, samples


@samples("nn.functional.embedding", ref=lambda index, weight: weight[index])
def embedding() -> Iterator[Any]:
    yield np.array([[0, 4, 1], [1, 1, 2]]), normal(5, 3)
    yield integers(0, 5, 4), normal(5, 1)
    yield np.array(3), normal(5, 3)
    yield np.zeros((0, 2), int), normal(5, 3)
    yield np.array([4, 0]), normal(5, 3)


def bags_of(index: np.ndarray, offsets: np.ndarray, last: bool, padding: int | None) -> list[Any]:
    """The places in index of each bag's entries."""
    ends = [*offsets[1:], *([] if last else [len(index)])]
    return [
        [i for i in range(begin, end) if padding is None or index[i] != padding % 5]
        for begin, end in zip(offsets, ends, strict=False)
    ]


def embedding_bag(
    weight: np.ndarray,
    index: np.ndarray,
    offsets: np.ndarray,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: np.ndarray | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    bags = bags_of(index, offsets, include_last_offset, padding_idx)
    sizes = np.array([len(bag) for bag in bags], int)
    factors = np.ones(len(index)) if per_sample_weights is None else per_sample_weights
    result = np.zeros((len(bags), weight.shape[1]))
    places = np.zeros(result.shape if mode == 2 else len(bags), int)
    for k, bag in enumerate(bags):
        if mode == 2 and bag:
            rows = weight[index[bag]]
            result[k], places[k] = rows.max(0), index[bag][rows.argmax(0)]
        elif bag:
            total = (factors[bag, None] * weight[index[bag]]).sum(0)
            result[k] = total / len(bag) if mode == 1 else total
    starts = offsets[: len(bags)]
    numbers = np.searchsorted(starts, np.arange(len(index)), side="right") - 1
    return result, numbers, sizes, places


@samples("embedding_bag", ref=embedding_bag)
def embedding_bags() -> Iterator[Any]:
    index, offsets = np.array([1, 4, 1, 0, 2, 2]), np.array([0, 2, 2])
    for mode in range(3):
        yield normal(5, 3), index, offsets, False, mode
    yield normal(5, 20), index, offsets, False, 0, False, normal(6)
    yield normal(5, 3), index, offsets, False, 0, False, normal(6), False, -3
    yield normal(5, 3), index, offsets, False, 1, False, None, False, 1
    yield normal(5, 3), index, np.array([0, 4, 6]), False, 2, False, None, True, 2
    yield normal(5, 3), index, np.array([0, 1, 4]), False, 0, False, None, True
    yield normal(5, 3), np.zeros(0, int), np.zeros(2, int)
    yield normal(5, 3), np.zeros(0, int), np.zeros(0, int), False, 2


def renormalized(weight: np.ndarray, index: np.ndarray, max_norm: float, p: float) -> np.ndarray:
    result = weight.copy()
    for row in np.unique(index):
        norm = np.linalg.norm(weight[row], p)
        if norm > max_norm:
            result[row] *= max_norm / (norm + 1e-7)
    return result


@samples("embedding_renorm_", ref=renormalized)
def embedding_renorm() -> Iterator[Any]:
    yield normal(5, 3), np.array([[0, 4], [4, 1]]), 0.5, 2.0
    yield normal(5, 3), np.array([2]), 1.0, 1.0
