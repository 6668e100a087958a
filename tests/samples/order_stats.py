"""Samples of what is found by rank: the k-th value, medians, quantiles and the mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, distinct, integers, samples
from samples.sort import sort_ref


def with_nan(*shape: int) -> np.ndarray:
    """Distinct numbers, of which every fifth is NaN."""
    values = distinct(*shape)
    values.flat[::5] = np.nan
    return values


def at_rank(x: np.ndarray, rank: Any, dim: int, keepdim: bool) -> Any:
    """The element of each sorted row with the row's rank, and its place."""
    if x.ndim == 0:
        return x, np.zeros((), int)
    ranks = np.broadcast_to(np.expand_dims(np.asarray(rank), dim), np.take(x, [0], dim).shape)
    found = [np.take_along_axis(v, ranks, dim) for v in sort_ref(x, dim)]
    return tuple(v if keepdim else v.squeeze(dim) for v in found)


def kthvalue_ref(x: np.ndarray, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    return at_rank(x, np.full(np.take(x, 0, dim).shape if x.ndim else (), k - 1), dim, keepdim)


@samples("kthvalue", ref=kthvalue_ref)
def kthvalue() -> Iterator[Any]:
    yield distinct(3, 6), 2
    yield Sample(distinct(6, 3), 6, 0, keepdim=True)
    yield distinct(1500), 700
    yield distinct(), 1
    yield distinct(2, 700, 2), 3, 1


def median_ref(x: np.ndarray, dim: int = -1, keepdim: bool = False) -> Any:
    if x.ndim == 0:
        return x, np.zeros((), int)
    n, numbers = x.shape[dim], (~np.isnan(x)).sum(dim)
    return at_rank(x, np.where(numbers == n, (n - 1) // 2, numbers), dim, keepdim)


def nanmedian_ref(x: np.ndarray, dim: int = -1, keepdim: bool = False) -> Any:
    if x.ndim == 0:
        return x, np.zeros((), int)
    numbers = (~np.isnan(x)).sum(dim)
    return at_rank(x, np.maximum((numbers - 1) // 2, 0), dim, keepdim)


def along() -> Iterator[Any]:
    yield distinct(3, 6), 1
    yield distinct(7, 3), 0
    yield distinct(2, 5, 2), -2, True
    yield distinct(2, 1000), -1
    yield distinct(), 0


samples("median.dim", ref=median_ref)(along)
samples("nanmedian.dim", ref=nanmedian_ref)(along)


def everything() -> Iterator[Any]:
    yield distinct(3, 6)
    yield distinct(7)
    yield distinct()
    yield distinct(1201)


def with_nans() -> Iterator[Any]:
    yield from everything()
    yield with_nan(3, 6)


samples("median", ref=lambda x: median_ref(x.ravel())[0])(everything)
samples("nanmedian", ref=lambda x: nanmedian_ref(x.ravel())[0])(with_nans)


def mode_ref(x: np.ndarray, dim: int = -1, keepdim: bool = False) -> Any:
    if x.ndim == 0:
        return x, np.zeros((), int)

    def place(row: np.ndarray) -> int:
        values, counts = np.unique(row, return_counts=True)
        return int(np.flatnonzero(row == values[counts.argmax()])[-1])

    places = np.expand_dims(np.apply_along_axis(place, dim, x), dim)
    results = np.take_along_axis(x, places, dim), places
    return tuple(r if keepdim else r.squeeze(dim) for r in results)


@samples("mode", ref=mode_ref)
def mode() -> Iterator[Any]:
    yield distinct(3, 6)
    yield integers(0, 4, 3, 20)
    yield integers(0, 3, 9, 4), 0
    yield integers(-2, 2, 2, 30, 3), 1, True
    yield distinct()
    yield distinct(3, 1)


def quantile_of(nan: bool) -> Any:
    def ref(
        x: np.ndarray,
        q: Any,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
    ) -> Any:
        compute = np.nanquantile if nan else np.quantile
        return compute(x, q, dim, keepdims=keepdim, method=interpolation)

    return ref


def quantiles() -> Iterator[Any]:
    yield distinct(3, 6), 0.3
    yield distinct(5), np.array([0.0, 0.21, 0.5, 1.0])
    yield distinct(3, 6), np.array(0.8), 1
    yield Sample(distinct(7, 3), np.array([0.1, 0.55]), dim=0, keepdim=True)
    yield Sample(distinct(2, 3, 4), np.array([0.1]), keepdim=True)
    yield Sample(distinct(2, 3, 4), 0.7, dim=-2)
    yield Sample(distinct(600), np.array([0.9, 0.123]))
    yield Sample(distinct(), 0.5)
    for interpolation in ("lower", "higher", "nearest", "midpoint"):
        yield Sample(
            distinct(4, 6), np.array([0.2, 0.47, 0.83]), dim=1, interpolation=interpolation
        )


samples("quantile", ref=quantile_of(False), constant=(1,))(quantiles)


@samples("nanquantile", ref=quantile_of(True), constant=(1,))
def nanquantile() -> Iterator[Any]:
    yield from quantiles()
    yield Sample(with_nan(4, 6), np.array([0.2, 0.47]), dim=1)
    yield Sample(with_nan(4, 6), 0.31, interpolation="lower")
