"""Samples of differences of neighbors and of integrals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.integrate

from samples import Sample, integers, normal, samples, uniform


def diff_ref(
    x: np.ndarray,
    n: int = 1,
    dim: int = -1,
    prepend: np.ndarray | None = None,
    append: np.ndarray | None = None,
) -> np.ndarray:
    x = np.concatenate([part for part in (prepend, x, append) if part is not None], dim)
    return np.diff(x, n, dim)


@samples("diff", ref=diff_ref)
def diff() -> Iterator[Any]:
    yield normal(3, 5)
    yield normal(4, 3), 2, 0
    yield Sample(normal(2, 3, 2), dim=1, prepend=normal(2, 1, 2), append=normal(2, 2, 2))
    yield Sample(normal(5), append=normal(1))
    yield integers(-9, 9, 7)
    yield normal(3), 7
    yield normal(3), 0
    yield normal(2, 0), 1, 1


def trapezoid_ref(y: np.ndarray, *, dx: float = 1, dim: int = -1) -> Any:
    return np.trapezoid(y, dx=dx, axis=dim)


def samples_apart() -> Iterator[Any]:
    yield normal(3, 5)
    yield Sample(normal(4, 3), dx=0.25, dim=0)
    yield normal(1)


@samples("trapezoid", ref=trapezoid_ref)
def trapezoid() -> Iterator[Any]:
    yield from samples_apart()
    yield normal(3, 0)


def ascending(*shape: int, dim: int = -1) -> np.ndarray:
    return np.cumsum(uniform(*shape, high=2), dim)


def with_places() -> Iterator[Any]:
    yield normal(3, 5), np.array([0, 1, 3, 4, 7], np.uint8)
    yield Sample(normal(5, 3), ascending(5), dim=0)
    yield normal(2, 3, 4), ascending(3, 4)
    yield Sample(normal(2, 3), ascending(2, 3, dim=0), dim=0)


samples("trapezoid.x", ref=lambda y, x, *, dim=-1: np.trapezoid(y, x, axis=dim))(with_places)
samples(
    "cumulative_trapezoid",
    ref=lambda y, *, dx=1, dim=-1: scipy.integrate.cumulative_trapezoid(y, dx=dx, axis=dim),
)(samples_apart)


@samples("cumulative_trapezoid.x", ref=lambda y, x, *, dim=-1: (
    scipy.integrate.cumulative_trapezoid(y, np.broadcast_to(x, y.shape) if x.ndim > 1 else x,
                                         axis=dim)))  # fmt: skip
def cumulative_trapezoid() -> Iterator[Any]:
    yield from with_places()
