"""Samples of ops on many tensors."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, normal, samples


@samples(
    "_foreach_norm",
    ref=lambda arrays, ord=2: [np.linalg.norm(a.ravel(), ord) for a in arrays],
)
def foreach_norm() -> Iterator[Any]:
    yield ([normal(3, 4), normal(5)],)
    yield Sample([normal(3, 4), normal(5)], 3.0)
    yield Sample([normal(3, 4), normal(1)], float("inf"))
