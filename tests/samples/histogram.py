"""Samples of histograms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, normal, samples


def histc_ref(x: np.ndarray, bins: int = 100, min: float = 0, max: float = 0) -> np.ndarray:
    low, high = (min, max) if min != max else (x.min(), x.max()) if x.size else (0, 0)
    if low == high:
        low, high = low - 1, high + 1
    return np.histogram(x, bins, (low, high))[0]


@samples("histc", ref=histc_ref, grad=False)
def histc() -> Iterator[Any]:
    yield normal(30), 5, -1, 1
    yield Sample(normal(3, 40), bins=7)
    yield Sample(normal(50), 4, min=-0.5, max=2.5)
    yield np.full(3, 2.0), 4
    yield normal(0), 3
