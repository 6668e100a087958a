"""Samples of reading and writing at places along a dim, and of counting."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, complex_normal, integers, normal, samples, uniform


def places(x: np.ndarray, dim: int, index: np.ndarray) -> tuple[np.ndarray, ...]:
    """The NumPy index of the elements that an index along dim names."""
    grid = list(np.indices(index.shape))
    grid[dim] = index
    return tuple(grid)


@samples("gather", ref=lambda x, dim, index: x[places(x, dim, index)])
def gather() -> Iterator[Any]:
    yield normal(4, 3), 0, integers(0, 4, 2, 3)
    yield normal(4, 3), -1, integers(0, 3, 4, 5)
    yield normal(4, 3), 0, np.zeros((0, 3), int)


def take_along_ref(x: np.ndarray, index: np.ndarray, dim: int | None = None) -> np.ndarray:
    return (
        np.take_along_axis(x, index, dim) if dim is not None else x.reshape(-1)[index.reshape(-1)]
    )


@samples("take_along_dim", ref=take_along_ref)
def take_along_dim() -> Iterator[Any]:
    yield normal(4, 3), integers(0, 4, 2, 1), 0
    yield normal(4, 3), integers(0, 12, 5)


def scatter_ref(
    x: np.ndarray, dim: int, index: np.ndarray, src: Any, reduce: str = ""
) -> np.ndarray:
    out = x.copy()
    where = places(x, dim, index)
    values = src[tuple(slice(n) for n in index.shape)] if isinstance(src, np.ndarray) else src
    if reduce == "add":
        np.add.at(out, where, values)
    elif reduce == "multiply":
        np.multiply.at(out, where, values)
    else:
        out[where] = values
    return out


@samples("scatter", "scatter_", ref=scatter_ref)
def scatter() -> Iterator[Any]:
    yield normal(4, 3), 0, np.array([[0, 1, 2], [3, 2, 0]]), normal(2, 3)
    yield normal(4, 3), 1, np.array([[2], [0]]), normal(4, 3)


@samples("scatter.value", "scatter_.value", ref=scatter_ref)
def scatter_value() -> Iterator[Any]:
    yield normal(4, 3), 0, integers(0, 4, 2, 3), 1.5
    yield Sample(normal(4, 3), 0, np.array([[0, 0, 1], [0, 2, 1]]), 1.5, reduce="add")
    yield Sample(integers(1, 9, 4, 3), 1, np.array([[0, 2], [1, 2]]), 3, reduce="multiply")


@samples("scatter_add", "scatter_add_", ref=lambda *args: scatter_ref(*args, reduce="add"))
def scatter_add() -> Iterator[Any]:
    yield normal(4, 3), 0, np.array([[0, 0, 1], [0, 2, 1]]), normal(2, 3)
    yield normal(4, 3), -1, np.array([[1, 1, 1]]), normal(2, 3)


def one_hot_ref(x: np.ndarray, num_classes: int = -1) -> np.ndarray:
    return np.eye(x.max() + 1 if num_classes < 0 else num_classes, dtype=int)[x]


@samples("nn.functional.one_hot", ref=one_hot_ref, grad=False)
def one_hot() -> Iterator[Any]:
    yield integers(0, 4, 2, 3)
    yield integers(0, 4, 5), 6


@samples("bincount", ref=np.bincount)
def bincount() -> Iterator[Any]:
    yield integers(0, 5, 9)
    yield integers(0, 5, 9), uniform(9)
    yield Sample(integers(0, 3, 4), minlength=6)
    yield np.zeros(0, int)


def index_reduce_ref(
    x: np.ndarray,
    dim: int,
    index: np.ndarray,
    source: np.ndarray,
    reduce: str,
    include_self: bool = True,
) -> np.ndarray:
    out = np.moveaxis(x.copy(), dim, 0)
    source = np.moveaxis(source, dim, 0)
    combine = {"prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}[reduce]
    for i in set(index.tolist()):
        rows = [source[k] for k in np.flatnonzero(index == i)]
        out[i] = combine([out[i], *rows] if include_self else rows, 0)
    return np.moveaxis(out, 0, dim)


@samples("index_reduce", "index_reduce_", ref=index_reduce_ref)
def index_reduce() -> Iterator[Any]:
    for reduce in ("mean", "amax", "amin"):
        yield normal(4, 3), 0, np.array([2, 0, 2]), normal(3, 3), reduce
        yield Sample(normal(2, 4), 1, np.array([3, 3]), normal(2, 2), reduce, include_self=False)
    for reduce in ("mean", "prod"):
        z, w = complex_normal(2, 4), complex_normal(2, 2)
        yield z, 1, np.array([3, 3]), w, reduce
