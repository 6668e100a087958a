"""Samples of joining and splitting."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, normal, samples


@samples("cat", ref=np.concatenate)
def cat() -> Iterator[Any]:
    yield [normal(2, 3), normal(1, 3), normal(4, 3)], 0
    yield [normal(2, 3), normal(2, 0)], -1
    yield ([normal(3)],)


@samples("stack", ref=np.stack)
def stack() -> Iterator[Any]:
    yield [normal(2, 3), normal(2, 3)], 0
    yield [normal(2, 3), normal(2, 3)], -1
    yield ([normal(), normal()],)


def two_matrices() -> Iterator[Any]:
    yield ([normal(2, 3), normal(2, 3)],)
    yield ([normal(3), normal(3)],)


samples("hstack", ref=np.hstack)(two_matrices)
samples("vstack", ref=np.vstack)(two_matrices)
samples("dstack", ref=np.dstack)(two_matrices)
samples("column_stack", ref=np.column_stack)(two_matrices)


def by_sizes(x: np.ndarray, sizes: list[int], dim: int = 0) -> list[np.ndarray]:
    return np.split(x, np.cumsum(sizes)[:-1], dim)


@samples("split_with_sizes", "split.sizes", ref=by_sizes)
def split_with_sizes() -> Iterator[Any]:
    yield normal(5, 2), [1, 0, 4]
    yield normal(2, 5), [2, 3], -1


def every(x: np.ndarray, size: int, dim: int = 0) -> list[np.ndarray]:
    return np.split(x, range(size, x.shape[dim], size), dim)


@samples("split", ref=every)
def split() -> Iterator[Any]:
    yield normal(5, 2), 2
    yield normal(2, 6), 3, 1


@samples("chunk", ref=lambda x, n, dim=0: every(x, -(-x.shape[dim] // n), dim))
def chunk() -> Iterator[Any]:
    yield normal(5, 2), 3
    yield normal(2, 5), 4, 1


@samples("tensor_split", ref=np.array_split)
def tensor_split() -> Iterator[Any]:
    yield normal(5, 2), 3
    yield normal(2, 5), 7, 1


@samples("tensor_split.indices", ref=np.split)
def tensor_split_indices() -> Iterator[Any]:
    yield normal(5, 2), [1, 1, 4]


@samples("unbind", ref=lambda x, dim=0: list(np.moveaxis(x, dim, 0)))
def unbind() -> Iterator[Any]:
    yield normal(3, 2)
    yield normal(3, 2), -1


for _name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    _ref = getattr(np, _name)

    @samples(_name, ref=_ref)
    def atleast() -> Iterator[Any]:
        yield normal()
        yield normal(3)
        yield normal(2, 3)

    @samples(_name + ".list", ref=lambda x, f=_ref: [f(v) for v in x])
    def atleast_list() -> Iterator[Any]:
        yield ([normal(), normal(3)],)


@samples("broadcast_tensors", ref=lambda *tensors: np.broadcast_arrays(*tensors))
def broadcast_tensors() -> Iterator[Any]:
    yield normal(3, 1), normal(4)


@samples("meshgrid", ref=lambda *x, indexing="ij": np.meshgrid(*x, indexing=indexing))
def meshgrid() -> Iterator[Any]:
    yield Sample(normal(3), normal(4), indexing="ij")
    yield Sample(normal(3), normal(4), normal(2), indexing="xy")
