"""Samples of embedding."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import integers, normal, samples


@samples("nn.functional.embedding", ref=lambda ids, table, **_: table[ids])
def looked_up() -> Iterator[Any]:
    yield integers(0, 5, 2, 3), normal(5, 4)
    yield np.array(3), normal(5, 4)
    yield np.zeros((0, 2), np.int64), normal(5, 4)
