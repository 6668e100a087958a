"""Samples of cross and Kronecker products, powers as columns and the trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, integers, normal, samples


def cross_ref(a: np.ndarray, b: np.ndarray, dim: int | None = None) -> np.ndarray:
    return np.cross(a, b, axis=a.shape.index(3) if dim is None else dim)


@samples("cross", ref=cross_ref)
def cross() -> Iterator[Any]:
    yield normal(3), normal(3)
    yield normal(4, 3), normal(4, 3), 1
    yield normal(3, 2), normal(3, 2)
    yield normal(2, 1, 3), normal(1, 4, 3), -1


samples("trace", ref=np.trace)(lambda: iter([normal(3, 3), normal(2, 4), normal(0, 3)]))


@samples("kron", ref=np.kron)
def kron() -> Iterator[Any]:
    yield normal(2, 3), normal(3, 2)
    yield normal(3), normal(2, 2)
    yield normal(2, 2, 2), normal(3)
    yield normal(), normal(2)
    yield normal(0, 2), normal(3, 1)


def vander_ref(x: np.ndarray, N: int | None = None, increasing: bool = False) -> np.ndarray:
    return np.vander(x, N, increasing)


@samples("vander", ref=vander_ref)
def vander() -> Iterator[Any]:
    yield normal(4)
    yield normal(3), 5
    yield Sample(normal(3), 4, increasing=True)
    yield integers(-3, 4, 3), 1
    yield integers(-3, 4, 3), 0
    yield integers(-3, 4, 5), 3
