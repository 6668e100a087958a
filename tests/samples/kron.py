"""Samples of the Kronecker product and the trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import normal, samples

samples("trace", ref=np.trace)(lambda: iter([normal(3, 3), normal(2, 4), normal(0, 3)]))


@samples("kron", ref=np.kron)
def kron() -> Iterator[Any]:
    yield normal(2, 3), normal(3, 2)
    yield normal(3), normal(2, 2)
    yield normal(2, 2, 2), normal(3)
    yield normal(), normal(2)
    yield normal(0, 2), normal(3, 1)
