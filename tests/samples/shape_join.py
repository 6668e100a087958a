"""Samples of joining and cutting tensors."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from samples import Sample, normal, samples


@samples("cat", ref=lambda xs, dim=0: np.concatenate(xs, dim))
def joined() -> Iterator[Any]:
    yield (normal(2, 3), normal(4, 3)), 0
    yield Sample(([normal(2, 3), normal(2, 1), normal(2, 2)],), {"dim": -1})
    yield [normal(3)], 0


@samples("stack", ref=lambda xs, dim=0: np.stack(xs, dim))
def stacked() -> Iterator[Any]:
    yield (normal(2, 3), normal(2, 3)), 0
    yield [normal(2, 3), normal(2, 3), normal(2, 3)], -1
    yield ([np.array(1.0), np.array(2.0)],)


def pairs() -> Iterator[Any]:
    yield ([normal(3), normal(3)],)
    yield ([normal(2, 3), normal(2, 3)],)


samples("hstack", ref=np.hstack)(pairs)
samples("vstack", ref=np.vstack)(pairs)
samples("dstack", ref=np.dstack)(pairs)
samples("column_stack", ref=np.column_stack)(pairs)


def cut(x: np.ndarray, length: int, dim: int = 0) -> list[np.ndarray]:
    return np.split(x, range(length, x.shape[dim], length), dim)


def cut_at_lengths(x: np.ndarray, lengths: tuple[int, ...], dim: int = 0) -> list[np.ndarray]:
    return np.split(x, np.cumsum(lengths)[:-1], dim)


@samples("split", ref=cut)
def split() -> Iterator[Any]:
    yield normal(7, 3), 2
    yield normal(3, 4), 4, 1


@samples("split.sizes", "split_with_sizes", ref=cut_at_lengths)
def split_sizes() -> Iterator[Any]:
    yield normal(7, 3), (2, 0, 5)
    yield normal(3, 4), (1, 3), -1


@samples("chunk", ref=lambda x, chunks, dim=0: cut(x, -(-x.shape[dim] // chunks), dim))
def chunks() -> Iterator[Any]:
    yield normal(7, 3), 3
    yield normal(3, 4), 9, 1


def array_split(x: np.ndarray, places: Any, dim: int = 0) -> list[np.ndarray]:
    return np.array_split(x, places, dim)


@samples("tensor_split", ref=array_split)
def sections() -> Iterator[Any]:
    yield normal(7, 3), 3
    yield normal(2, 3), 5, -1


@samples("tensor_split.indices", ref=array_split)
def places() -> Iterator[Any]:
    yield normal(7, 3), (2, 5)
    yield normal(7), (5, 2, 9)


@samples("unbind", ref=lambda x, dim=0: [np.take(x, i, dim) for i in range(x.shape[dim])])
def unbound() -> Iterator[Any]:
    yield normal(3, 4)
    yield normal(3, 4), -1


def of_all_dims() -> Iterator[Any]:
    yield np.array(1.5)
    yield normal(2)
    yield normal(2, 3)
    yield normal(2, 3, 2)


def list_of_all_dims() -> Iterator[Any]:
    yield (list(of_all_dims()),)


def each(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda xs: [f(x) for x in xs]


for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    samples(name, ref=getattr(np, name))(of_all_dims)
    samples(f"{name}.list", ref=each(getattr(np, name)))(list_of_all_dims)


@samples("broadcast_tensors", ref=lambda xs: np.broadcast_arrays(*xs))
def together() -> Iterator[Any]:
    yield ([normal(3, 1), normal(4)],)


@samples("meshgrid", ref=lambda xs, indexing="ij": np.meshgrid(*xs, indexing=indexing))
def grids() -> Iterator[Any]:
    yield ([normal(3), normal(4)],)
    yield Sample(([normal(3), normal(4), normal(2)],), {"indexing": "xy"})
