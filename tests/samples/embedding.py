"""Samples of embedding."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import integers, normal, samples


@samples("nn.functional.embedding", ref=lambda index, weight: weight[index])
def embedding() -> Iterator[Any]:
    yield np.array([[0, 4, 1], [1, 1, 2]]), normal(5, 3)
    yield integers(0, 5, 4), normal(5, 1)
    yield np.array(3), normal(5, 3)
    yield np.zeros((0, 2), int), normal(5, 3)
    yield np.array([4, 0]), normal(5, 3)
