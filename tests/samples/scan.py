"""Samples of running sums, products and extremes."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import normal, samples


def last_extreme(x: np.ndarray, dim: int, largest: bool) -> Any:
    values = (np.maximum if largest else np.minimum).accumulate(x, axis=dim)
    at = np.arange(x.shape[dim]).reshape([-1 if d == dim % x.ndim else 1 for d in range(x.ndim)])
    taken = np.where(x == values, at, 0)
    return values, np.maximum.accumulate(taken, axis=dim)


def along() -> Iterator[Any]:
    yield normal(3, 4), 1
    yield normal(3, 4), 0
    yield normal(2, 5, 3), -2
    yield normal(6), 0
    yield normal(3, 1), 1


def with_zeros() -> Iterator[Any]:
    yield from along()
    yield np.array([[2.0, 0.0, 3.0, 4.0], [0.0, 0.0, 5.0, 2.0], [1.0, 2.0, 4.0, 0.0]]), 1


samples("cumsum", ref=lambda x, dim: np.cumsum(x, dim))(along)
samples("cumprod", ref=lambda x, dim: np.cumprod(x, dim))(with_zeros)


def complex_sums(x: np.ndarray, dim: int) -> np.ndarray:
    if x.dtype.kind != "c":
        return np.logaddexp.accumulate(x, dim)
    return np.log(np.cumsum(np.exp(x - x.real.max()), dim)) + x.real.max()


@samples("logcumsumexp", ref=complex_sums)
def logcumsumexp() -> Iterator[Any]:
    yield from along()
    yield normal(3, 4) + 0.3j * normal(3, 4), 1
    yield normal(2, 5, 3) + 0.3j * normal(2, 5, 3), -2
    yield np.array([800 + 1j, 801 + 2j, 800.5]), 0
    yield np.array([800.0, 801.0, 790.0]), 0


samples("cummax", ref=lambda x, dim: last_extreme(x, dim, True))(along)
samples("cummin", ref=lambda x, dim: last_extreme(x, dim, False))(along)
