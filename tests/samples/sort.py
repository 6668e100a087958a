"""Samples of sorting and selection by rank."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, distinct, integers, normal, samples


def argsort_ref(
    x: np.ndarray, dim: int = -1, descending: bool = False, stable: bool = True
) -> np.ndarray:
    if x.ndim == 0:
        return np.zeros((), int)
    return np.argsort(-x if descending else x, dim, kind="stable")


def sort_ref(x: np.ndarray, dim: int = -1, **how: Any) -> Any:
    order = argsort_ref(x, dim, **how)
    return (np.take_along_axis(x, order, dim) if x.ndim else x), order


def orders() -> Iterator[Any]:
    yield distinct(3, 4)
    yield Sample(distinct(3, 4), 0, descending=True)
    yield Sample(distinct(50), stable=True)
    yield distinct()
    yield normal(0, 3)


samples("sort", ref=sort_ref)(orders)


@samples("argsort", ref=argsort_ref, grad=False)
def argsort() -> Iterator[Any]:
    yield from orders()
    yield Sample(integers(0, 3, 4, 9), stable=True)
    yield Sample(integers(0, 3, 9), descending=True, stable=True)
    yield np.array([1.0, np.nan, -np.inf, np.inf, 0.0])


samples("msort", ref=lambda x: np.sort(x, 0))(lambda: iter([distinct(4, 3)]))


def topk_ref(x: np.ndarray, k: int, dim: int = -1, largest: bool = True) -> Any:
    values, order = sort_ref(x, dim, descending=largest)
    return np.take(values, range(k), dim), np.take(order, range(k), dim)


@samples("topk", ref=topk_ref)
def topk() -> Iterator[Any]:
    yield distinct(3, 6), 2
    yield Sample(distinct(6, 3), 4, 0, largest=False)
    yield Sample(distinct(6, 3), 1, 0)
    yield Sample(distinct(3, 6), 1, largest=False)
    yield distinct(3, 6), 0
