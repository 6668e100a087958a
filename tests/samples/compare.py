"""Samples of comparisons."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import integers, normal, samples

for _name, _ref in {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}.items():

    @samples(_name, ref=_ref, grad=False)
    def compare() -> Iterator[Any]:
        yield normal(3, 4), normal(4)
        yield integers(0, 3, 3, 4), integers(0, 3, 4)
        yield np.array([np.nan, 1.0, np.inf]), np.array([np.nan, 1.0, np.inf])
        yield integers(0, 3, 4), 1.5


@samples("isclose", ref=np.isclose, grad=False)
def isclose() -> Iterator[Any]:
    x = normal(3, 4)
    yield x, x + 1e-9
    yield x, x + 1e-3


@samples("allclose", ref=np.allclose, grad=False)
def allclose() -> Iterator[Any]:
    x = normal(3, 4)
    yield x, x + 1e-9
    yield x, x + 1e-3


@samples("equal", ref=np.array_equal, grad=False)
def equal() -> Iterator[Any]:
    x = normal(3, 4)
    yield x, x
    yield x, x + 1
