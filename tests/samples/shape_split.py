"""Samples of cutting tensors into views."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import normal, samples


def by_sizes(x: np.ndarray, sizes: list[int], dim: int = 0) -> list[np.ndarray]:
    return np.split(x, np.cumsum(sizes)[:-1], dim)


@samples("split_with_sizes", "split.sizes", "unsafe_split_with_sizes", ref=by_sizes)
def split_with_sizes() -> Iterator[Any]:
    yield normal(5, 2), [1, 0, 4]
    yield normal(2, 5), [2, 3], -1


def every(x: np.ndarray, size: int, dim: int = 0) -> list[np.ndarray]:
    return np.split(x, range(size, x.shape[dim], size), dim)


@samples("split", "unsafe_split", ref=every)
def split() -> Iterator[Any]:
    yield normal(5, 2), 2
    yield normal(2, 6), 3, 1


@samples("chunk", "unsafe_chunk", ref=lambda x, n, dim=0: every(x, -(-x.shape[dim] // n), dim))
def chunk() -> Iterator[Any]:
    yield normal(5, 2), 3
    yield normal(2, 5), 4, 1


@samples("tensor_split.count", ref=np.array_split)
def tensor_split_count() -> Iterator[Any]:
    yield normal(5, 2), 3
    yield normal(2, 5), 7, 1


@samples("tensor_split.indices", ref=np.split)
def tensor_split_indices() -> Iterator[Any]:
    yield normal(5, 2), [1, 1, 4]


@samples("tensor_split", ref=lambda x, places, dim=0: np.array_split(x, places, dim))
def tensor_split() -> Iterator[Any]:
    yield normal(5, 2), np.array([1, 1, 4])
    yield normal(2, 5), np.array(2), 1


@samples("unbind", ref=lambda x, dim=0: list(np.moveaxis(x, dim, 0)))
def unbind() -> Iterator[Any]:
    yield normal(3, 2)
    yield normal(3, 2), -1


for _name, _ref in {"hsplit": np.hsplit, "vsplit": np.vsplit, "dsplit": np.dsplit}.items():

    @samples(_name, ref=_ref)
    def evenly() -> Iterator[Any]:
        yield normal(4, 2, 6), 2

    @samples(f"{_name}.indices", ref=_ref)
    def at_indices() -> Iterator[Any]:
        yield normal(3, 2, 4), [1, 2]
        yield normal(3, 0, 4), [2, 1, 7]
