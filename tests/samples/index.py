"""Samples of index tensors, masks and searches."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from samples import Sample, booleans, integers, normal, samples

Array = np.ndarray


@samples("index_select", ref=lambda x, dim, index: np.take(x, index, dim))
def selected() -> Iterator[Any]:
    yield normal(4, 3), 0, np.array([2, 0, 2])
    yield normal(4, 3), -1, np.array([1])
    yield normal(4, 3), 0, np.zeros(0, np.int64)


def at(dim: int, index: Array) -> tuple[Any, ...]:
    return (*[slice(None)] * dim, index)


def written(how: Callable[..., Any]) -> Callable[..., Any]:
    """A reference that changes a copy of its first argument."""

    def ref(x: Array, *args: Any, **kwargs: Any) -> Array:
        out = x.copy()
        how(out, *args, **kwargs)
        return out

    return ref


def add_slices(x: Array, dim: int, index: Array, source: Array, alpha: float = 1) -> None:
    np.add.at(x, at(dim, index), alpha * source)


def copy_slices(x: Array, dim: int, index: Array, source: Array) -> None:
    x[at(dim, index)] = source


def added() -> Iterator[Any]:
    yield normal(4, 3), 0, np.array([2, 0, 2]), normal(3, 3)
    yield Sample((normal(4, 3), 1, np.array([1]), normal(4, 1)), {"alpha": -2})


def copied() -> Iterator[Any]:
    yield normal(4, 3), 0, np.array([2, 0]), normal(2, 3)
    yield normal(4, 3), 1, np.array([1]), normal(4, 1)


def one_value() -> Iterator[Any]:
    yield normal(4, 3), 0, np.array([2, 0]), 1.5
    yield normal(4, 3), 1, np.array([1]), np.array(2.5)


samples("index_add", ref=written(add_slices))(added)
samples("index_add_", ref=written(add_slices), grad=False)(added)
samples("index_copy", ref=written(copy_slices))(copied)
samples("index_copy_", ref=written(copy_slices), grad=False)(copied)
samples("index_fill", ref=written(copy_slices))(one_value)
samples("index_fill_", ref=written(copy_slices), grad=False)(one_value)


def put(x: Array, indices: tuple[Array, ...], values: Array, accumulate: bool = False) -> None:
    if accumulate:
        np.add.at(x, indices, values)
    else:
        x[indices] = values


def places() -> Iterator[Any]:
    yield normal(4, 3), (np.array([2, 0]), np.array([1, 1])), normal(1)
    yield normal(4, 3), (np.array([[2], [-1]]),), normal(3)
    yield normal(4, 3), (np.array([2, 2, 0]),), normal(3, 3), True
    yield normal(4, 3), (np.arange(12).reshape(4, 3) % 3 == 0,), np.array(1.5)


samples("index_put", ref=written(put))(places)
samples("index_put_", ref=written(put), grad=False)(places)


@samples("take", ref=np.take)
def taken() -> Iterator[Any]:
    yield normal(4, 3), np.array([[0, 11], [-1, 5]])


@samples(
    "masked_select",
    ref=lambda x, mask: np.broadcast_arrays(x, mask)[0][np.broadcast_arrays(x, mask)[1]],
)
def masked() -> Iterator[Any]:
    yield normal(4, 3), booleans(4, 3)
    yield normal(4, 1), booleans(3)


def scattered() -> Iterator[Any]:
    mask = booleans(4, 3)
    yield normal(4, 3), mask, normal(12)


def fill_mask(x: Array, mask: Array, source: Array) -> None:
    x[mask] = source.reshape(-1)[: mask.sum()]


samples("masked_scatter", ref=written(fill_mask))(scattered)
samples("masked_scatter_", ref=written(fill_mask), grad=False)(scattered)


@samples("nonzero", ref=np.argwhere)
def flags() -> Iterator[Any]:
    yield booleans(4, 3)
    yield integers(0, 2, 3, 2, 5)
    yield np.array(True)


@samples("nonzero.tuple", ref=lambda x, as_tuple: np.nonzero(x))
def flags_by_dim() -> Iterator[Any]:
    yield Sample((booleans(4, 3),), {"as_tuple": True})


def search(row: Array, values: Array, right: bool = False, side: str = "left", **_: Any) -> Array:
    return np.searchsorted(row, values, "right" if right or side == "right" else "left")


@samples("searchsorted", ref=search)
def searched() -> Iterator[Any]:
    yield np.array([1.0, 2.0, 2.0, 3.0]), np.array([[0.0, 2.0], [2.5, 9.0]])
    yield Sample((np.array([1, 2, 2, 3]), np.array([2, 3])), {"right": True})
    yield Sample((np.array([1, 2, 2, 3]), np.array([2, 3])), {"side": "right"})


@samples("bucketize", ref=lambda x, row, right=False: search(row, x, right))
def buckets() -> Iterator[Any]:
    yield normal(3, 4), np.array([-1.0, 0.0, 1.0])
    yield Sample((np.array([0.0, 1.0]), np.array([-1.0, 0.0, 1.0])), {"right": True})
