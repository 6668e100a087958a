"""Samples of softmax and log_softmax."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.special

from samples import Sample, normal, samples


def dim_of(x: np.ndarray, dim: int | None) -> int:
    return dim if dim is not None else 0 if x.ndim in (0, 1, 3) else 1


def softmax_dims() -> Iterator[Any]:
    yield normal(3, 5), 1
    yield normal(3, 5), 0
    yield normal(2, 70, 3), -2
    yield normal(3, 5, scale=300.0), -1
    yield Sample(normal(2, 3, 4), dim=2)
    yield normal(2, 3)
    yield normal(4)
    yield np.array(3.0), 0


samples("softmax", ref=lambda x, dim=None: scipy.special.softmax(x, dim_of(x, dim)))(softmax_dims)
samples("log_softmax", ref=lambda x, dim=None: scipy.special.log_softmax(x, dim_of(x, dim)))(
    softmax_dims
)
