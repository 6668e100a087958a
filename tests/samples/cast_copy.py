"""Samples of copies."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import normal, samples


@samples("clone", "contiguous", ref=lambda x: x)
def one_array() -> Iterator[Any]:
    yield normal(2, 3)
    yield np.array(1.0)


@samples("type_as", ref=lambda x, other: x.astype(other.dtype), grad=False)
def two_dtypes() -> Iterator[Any]:
    yield normal(2, 3) * 5, np.zeros(2, np.int64)


@samples("copy_", ref=lambda x, src: np.broadcast_to(src, x.shape), grad=False)
def overwritten() -> Iterator[Any]:
    yield normal(2, 3), normal(2, 3)
    yield normal(2, 3), normal(3)


@samples("resize_", ref=np.resize, grad=False)
def resized() -> Iterator[Any]:
    yield normal(2, 3), (3, 2)
    yield normal(6), (2, 2)
