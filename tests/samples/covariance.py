"""Samples of covariances and correlations."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, integers, normal, samples, uniform


def cov_ref(
    x: np.ndarray,
    *,
    correction: int = 1,
    fweights: np.ndarray | None = None,
    aweights: np.ndarray | None = None,
) -> np.ndarray:
    if x.size == 0:
        return np.full(np.atleast_2d(x).shape[0] * (1,), np.nan).squeeze()
    return np.cov(x, ddof=correction, fweights=fweights, aweights=aweights)


@samples("cov", ref=cov_ref)
def cov() -> Iterator[Any]:
    yield normal(3, 6)
    yield normal(7)
    yield Sample(normal(3, 6), correction=0)
    yield Sample(normal(2, 5), fweights=integers(1, 4, 5))
    yield Sample(normal(2, 5), aweights=uniform(5, low=0.5, high=2))
    yield Sample(normal(2, 5), correction=0, aweights=uniform(5, low=0.5, high=2))
    yield Sample(normal(2, 5), fweights=integers(1, 4, 5), aweights=uniform(5, low=0.5, high=2))


@samples("corrcoef", ref=np.corrcoef)
def corrcoef() -> Iterator[Any]:
    yield normal(3, 6)
    yield normal(2, 4)
