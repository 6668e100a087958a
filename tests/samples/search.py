"""Samples of what is found in sorted rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, booleans, integers, normal, samples

# Still in order when the op matrix makes integers or bools of it.
ROW = np.array([0.0, 0.1, 0.2, 0.6, 0.7])


def search(
    x: np.ndarray, values: np.ndarray, right: bool = False, side: str = "left"
) -> np.ndarray:
    rows = x.reshape(-1, x.shape[-1])
    wanted = values.reshape(len(rows), -1) if x.ndim > 1 else values.reshape(1, -1)
    side = "right" if right else side
    found = [np.searchsorted(r, v, side) for r, v in zip(rows, wanted, strict=True)]
    return np.stack(found).reshape(values.shape)


@samples("searchsorted", ref=search, grad=False)
def searchsorted() -> Iterator[Any]:
    yield ROW, normal(3, 2)
    yield np.sort(normal(5)), normal(3, 2)
    yield np.sort(normal(2, 5)), normal(2, 3)
    yield Sample(np.array([1.0, 2.0, 2.0, 3.0]), np.array([2.0, 0.0, 9.0]), right=True)
    yield Sample(np.array([1.0, 2.0, 2.0, 3.0]), np.array([2.0, 0.0, 9.0]), side="left")


@samples("bucketize", ref=lambda x, edges, right=False: search(edges, x, right), grad=False)
def bucketize() -> Iterator[Any]:
    yield normal(3, 2), ROW
    yield normal(3, 2), np.sort(normal(5))
    yield Sample(np.array([1.0, 2.0]), np.array([1.0, 2.0, 3.0]), right=True)


def isin_ref(x: Any, y: Any, *, assume_unique: bool = False, invert: bool = False) -> np.ndarray:
    return np.isin(x, y, assume_unique=assume_unique, invert=invert)


@samples("isin", ref=isin_ref, grad=False)
def isin() -> Iterator[Any]:
    yield np.round(normal(3, 4)), np.array([1.0, -1.0])
    yield integers(0, 50, 4, 20), integers(0, 50, 3, 5)
    yield Sample(integers(0, 50, 40), integers(0, 50, 15), invert=True)
    yield Sample(integers(0, 5, 3), 2, assume_unique=True)
    yield normal(3), normal(0)
    yield normal(0, 2), normal(20)


def nonzero_static_ref(x: np.ndarray, *, size: int, fill_value: int = -1) -> np.ndarray:
    places = np.argwhere(x)[:size]
    return np.pad(places, ((0, size - len(places)), (0, 0)), constant_values=fill_value)


@samples("nonzero_static", ref=nonzero_static_ref, grad=False)
def nonzero_static() -> Iterator[Any]:
    yield Sample(np.round(normal(3, 4)), size=3)
    yield Sample(booleans(5), size=9, fill_value=7)
    yield Sample(np.zeros((2, 2)), size=2)
    yield Sample(normal(2), size=0)
