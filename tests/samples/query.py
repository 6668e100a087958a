"""Samples of questions about tensors."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import normal, samples

samples("is_nonzero", ref=lambda x: bool(x), grad=False)(lambda: iter([normal(), np.zeros((1, 1))]))


@samples("is_same_size", ref=lambda x, other: x.shape == other.shape, grad=False)
def is_same_size() -> Iterator[Any]:
    yield normal(2, 3), normal(2, 3)
    yield normal(2, 3), normal(3, 2)
    yield normal(), normal(1)


@samples("is_set_to", ref=lambda x, other: x is other, grad=False)
def is_set_to() -> Iterator[Any]:
    yield normal(2, 3), normal(2, 3)


def one() -> Iterator[Any]:
    yield normal(2, 3)


samples("is_inference", "is_distributed", "is_conj", ref=lambda x: False, grad=False)(one)
samples("resolve_conj", ref=lambda x: x)(one)
samples("get_device", grad=False)(one)
