"""Samples of reading and writing by index tensors and masks."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, booleans, normal, samples


def at(dim: int, index: np.ndarray) -> tuple[Any, ...]:
    """The NumPy index that names slices along dim."""
    return (*[slice(None)] * dim, index)


@samples("index_select", ref=lambda x, dim, index: np.take(x, index, dim))
def index_select() -> Iterator[Any]:
    yield normal(4, 3), 0, np.array([2, 0, 2])
    yield normal(4, 3), -1, np.array([1])
    yield normal(4, 3), 0, np.zeros(0, int)


@samples("take", ref=np.take)
def take() -> Iterator[Any]:
    yield normal(3, 4), np.array([[0, 11], [5, -1]])


@samples("unravel_index", ref=np.unravel_index, grad=False)
def unravel_index() -> Iterator[Any]:
    yield np.array([0, 11, 5]), (3, 4)
    yield np.array([[7]]), (2, 2, 2)
    yield np.array(3), (4,)


def put_ref(
    x: np.ndarray, index: np.ndarray, source: np.ndarray, accumulate: bool = False
) -> np.ndarray:
    out = x.flatten()
    if accumulate:
        np.add.at(out, index, source)
    else:
        out[index] = source.reshape(index.shape)
    return out.reshape(x.shape)


@samples("put", "put_", ref=put_ref)
def put() -> Iterator[Any]:
    yield normal(3, 4), np.array([[0, 11], [5, -2]]), normal(2, 2)
    yield normal(3, 4), np.array([0, 3, 0]), normal(3), True
    yield normal(2, 3, 2), np.array([-12, 11]), normal(2)
    yield normal(2), np.zeros(0, int), normal(0)


def index_add_ref(
    x: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray, alpha: float = 1
) -> np.ndarray:
    out = x.copy()
    np.add.at(out, at(dim, index), source * alpha)
    return out


@samples("index_add", "index_add_", ref=index_add_ref)
def index_add() -> Iterator[Any]:
    yield normal(4, 3), 0, np.array([2, 0, 2]), normal(3, 3)
    yield Sample(normal(4, 3), 1, np.array([1, 0]), normal(4, 2), alpha=2)


def index_copy_ref(x: np.ndarray, dim: int, index: np.ndarray, source: Any) -> np.ndarray:
    out = x.copy()
    out[at(dim, index)] = source
    return out


@samples("index_copy", "index_copy_", ref=index_copy_ref)
def index_copy() -> Iterator[Any]:
    yield normal(4, 3), 0, np.array([2, 0]), normal(2, 3)
    yield normal(4, 3), 1, np.array([1, 0]), normal(4, 2)


@samples("index_fill", "index_fill_", ref=index_copy_ref)
def index_fill() -> Iterator[Any]:
    yield normal(4, 3), 0, np.array([2, 0]), normal()
    yield normal(4, 3), 1, np.array([1, 1]), 2.5
    yield normal(4, 3), 1, np.array([1, 1]), normal()


def index_put_ref(
    x: np.ndarray, indices: Any, values: np.ndarray, accumulate: bool = False
) -> np.ndarray:
    out = x.copy()
    if accumulate:
        np.add.at(out, tuple(indices), values)
    else:
        out[tuple(indices)] = values
    return out


@samples("index_put", "index_put_", ref=index_put_ref)
def index_put() -> Iterator[Any]:
    yield normal(4, 3), (np.array([3, 0]), np.array([1, 1])), normal(2)
    yield normal(4, 3), (np.array([1, 1, 1]),), normal(3), True
    yield normal(9), (np.array([[3, 0], [8, 5]]),), normal(2, 2)
    yield normal(4, 3), (np.array([True, False, True, True]),), normal(3, 3)


@samples(
    "masked_select",
    ref=lambda x, mask: np.broadcast_to(x, np.broadcast_shapes(x.shape, mask.shape))[
        np.broadcast_to(mask, np.broadcast_shapes(x.shape, mask.shape))
    ],
)
def masked_select() -> Iterator[Any]:
    yield normal(3, 4), booleans(3, 4)
    yield normal(3, 4), booleans(4)
    yield normal(3, 1), booleans(3, 4)


def masked_scatter_ref(x: np.ndarray, mask: np.ndarray, source: np.ndarray) -> np.ndarray:
    out = x.copy()
    mask = np.broadcast_to(mask, x.shape)
    out[mask] = source.reshape(-1)[: mask.sum()]
    return out


@samples("masked_scatter", "masked_scatter_", ref=masked_scatter_ref)
def masked_scatter() -> Iterator[Any]:
    yield normal(3, 4), booleans(3, 4), normal(12)
    yield normal(3, 4), booleans(4), normal(4, 4)


def truths() -> Iterator[Any]:
    yield np.round(normal(3, 4))
    yield booleans(2, 3, 2)
    yield normal(0, 3)


samples("nonzero", ref=np.argwhere, grad=False)(truths)


@samples("nonzero.tuple", ref=lambda x, as_tuple: np.nonzero(x), grad=False)
def nonzero_tuple() -> Iterator[Any]:
    yield Sample(np.round(normal(3, 4)), as_tuple=True)


@samples("where.places", ref=np.nonzero, grad=False)
def where_places() -> Iterator[Any]:
    yield np.round(normal(3, 4))


@samples("nonzero.untupled", ref=lambda x, as_tuple: np.argwhere(x), grad=False)
def nonzero_rows() -> Iterator[Any]:
    yield Sample(np.round(normal(3, 4)), as_tuple=False)
