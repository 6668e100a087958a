"""Samples of copies and casts."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import integers, normal, samples


@samples("clone", "contiguous", ref=lambda x: x)
def clone() -> Iterator[Any]:
    yield normal(3, 4)
    yield normal()
    yield normal(0, 3)


@samples("type_as", ref=lambda x, other: x.astype(other.dtype), constant=(1,))
def type_as() -> Iterator[Any]:
    yield normal(3, 4), normal(2)
    yield integers(0, 9, 3), normal(2)


@samples("copy_", ref=lambda x, src: np.broadcast_to(src, x.shape).astype(x.dtype))
def copy_() -> Iterator[Any]:
    yield normal(3, 4), normal(4)
    yield normal(3, 4), integers(0, 9, 3, 1)
    yield normal(0), normal(1)
