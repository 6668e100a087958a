"""Samples of sorting."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, normal, samples

Array = np.ndarray


def order(x: Array, dim: int = -1, descending: bool = False, stable: bool = True) -> Array:
    if not descending:
        return np.argsort(x, dim, kind="stable")
    backwards = np.flip(np.argsort(np.flip(x, dim), dim, kind="stable"), dim)
    return x.shape[dim] - 1 - backwards


def in_order(x: Array, dim: int = -1, descending: bool = False, stable: bool = True) -> Any:
    places = order(x, dim, descending)
    return np.take_along_axis(x, places, dim), places


def shuffled(n: int) -> Array:
    """Different numbers, far enough apart for finite differences."""
    return np.argsort(normal(n)).astype(np.float64)


def rows() -> Iterator[Any]:
    yield normal(3, 5)
    yield normal(3, 5), 0
    yield Sample((normal(3, 5),), {"descending": True})
    yield Sample((shuffled(700),), {"stable": True})


samples("sort", ref=in_order)(rows)
samples("argsort", ref=order)(rows)


@samples("msort", ref=lambda x: np.sort(x, 0))
def columns() -> Iterator[Any]:
    yield normal(4, 3)


def first(x: Array, k: int, dim: int = -1, largest: bool = True) -> Any:
    values, places = in_order(x, dim, largest)
    return np.take(values, range(k), dim), np.take(places, range(k), dim)


@samples("topk", ref=first)
def best() -> Iterator[Any]:
    yield normal(3, 5), 2
    yield normal(5, 3), 4, 0
    yield Sample((shuffled(100), 3), {"largest": False})


def kth(x: Array, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    return tuple(np.take(a, [k - 1] if keepdim else k - 1, dim) for a in in_order(x, dim))


@samples("kthvalue", ref=kth)
def middle() -> Iterator[Any]:
    yield normal(3, 5), 2
    yield normal(5, 3), 5, 0, True
