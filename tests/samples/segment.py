"""Samples of reductions of segments."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, distinct, samples

REDUCE = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod}
EMPTY = {"sum": 0.0, "mean": np.nan, "max": -np.inf, "min": np.inf, "prod": 1.0}


def segment_ref(
    data: np.ndarray,
    reduce: str,
    *,
    lengths: np.ndarray | None = None,
    offsets: np.ndarray | None = None,
    axis: int = 0,
    initial: float | None = None,
) -> np.ndarray:
    if axis > 0:
        return np.stack([
            segment_ref(
                row, reduce, lengths=None if lengths is None else lengths[i],
                offsets=None if offsets is None else offsets[i], axis=axis - 1, initial=initial,
            )
            for i, row in enumerate(data)
        ])  # fmt: skip
    bounds = offsets if offsets is not None else np.concatenate([[0], np.cumsum(lengths)])
    results = []
    for start, end in itertools.pairwise(bounds):
        rows = data[start:end]
        if initial is not None and reduce == "mean":
            results.append((rows.sum(0) + initial) / max(len(rows), 1))
        elif initial is not None:
            first = np.full((1, *data.shape[1:]), initial)
            results.append(REDUCE[reduce](np.concatenate([first, rows]), 0))
        elif len(rows):
            results.append(REDUCE[reduce](rows, 0))
        else:
            results.append(np.full(data.shape[1:], EMPTY[reduce]))
    return np.stack(results)


@samples("segment_reduce", ref=segment_ref)
def segment_reduce() -> Iterator[Any]:
    for reduce in REDUCE:
        yield Sample(distinct(6, 2), reduce, lengths=np.array([2, 1, 3]))
    yield Sample(distinct(6), "mean", offsets=np.array([1, 3, 6]))
    yield Sample(distinct(2, 4), "max", lengths=np.array([[1, 3], [2, 2]]), axis=1)
    yield Sample(distinct(2, 4, 2), "sum", lengths=np.array([[1, 3], [2, 2]]), axis=1)
    yield Sample(distinct(5), "sum", lengths=np.array([2, 0, 3]), initial=2.5)
    yield Sample(distinct(5), "mean", lengths=np.array([2, 0, 3]), initial=2.5)
    yield Sample(distinct(5), "prod", lengths=np.array([2, 0, 3]))
