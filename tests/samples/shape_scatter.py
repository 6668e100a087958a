"""Samples of copies with one window overwritten."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, normal, samples


def written(x: np.ndarray, index: Any, src: np.ndarray) -> np.ndarray:
    out = x.copy()
    out[index] = src
    return out


def along(dim: int, index: Any) -> tuple[Any, ...]:
    return (*[slice(None)] * dim, index)


@samples("select_scatter", ref=lambda x, src, dim, i: written(x, along(dim, i), src))
def select_scatter() -> Iterator[Any]:
    yield normal(3, 4), normal(3), 1, 2
    yield normal(2, 3, 2), normal(3, 2), 0, -1


@samples(
    "slice_scatter",
    ref=lambda x, src, dim=0, start=None, end=None, step=1: written(
        x, along(dim, slice(start, end, step)), src
    ),
)
def slice_scatter() -> Iterator[Any]:
    yield normal(3, 4), normal(3, 4)
    yield normal(5, 2), normal(2, 2), 0, 1, 4, 2
    yield Sample(normal(3, 4), normal(3, 2), 1, start=2)
    yield Sample(normal(3, 4), normal(3, 2), 1, end=-2)


def diagonal_written(x: np.ndarray, src: np.ndarray, offset: int = 0) -> np.ndarray:
    i = np.arange(len(src))
    return written(x, (i + max(-offset, 0), i + max(offset, 0)), src)


@samples("diagonal_scatter", ref=diagonal_written)
def diagonal_scatter() -> Iterator[Any]:
    yield normal(3, 4), normal(3)
    yield normal(3, 4), normal(3), 1
    yield normal(3, 3), normal(1), -2


def strided_written(
    x: np.ndarray, src: np.ndarray, size: Any, stride: Any, offset: int = 0
) -> np.ndarray:
    out = x.flatten()
    steps = [s * out.itemsize for s in stride]
    np.lib.stride_tricks.as_strided(out[offset:], size, steps)[...] = src
    return out.reshape(x.shape)


@samples("as_strided_scatter", ref=strided_written)
def as_strided_scatter() -> Iterator[Any]:
    yield normal(3, 4), normal(2, 2), (2, 2), (4, 1), 1
    yield normal(6), normal(3), (3,), (2,)


@samples(
    "slice_copy",
    ref=lambda x, dim=0, start=None, end=None, step=1: x[along(dim, slice(start, end, step))],
)
def slice_copy() -> Iterator[Any]:
    yield normal(3, 4)
    yield normal(3, 4), 1, 1, 4, 2
    yield Sample(normal(3, 4), end=-1)
