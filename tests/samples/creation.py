"""Samples of the ops that make or fill tensors."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import rushlight as rl
from samples import Sample, normal, samples


def sizes() -> Iterator[Any]:
    yield ((2, 3),)
    yield ((),)
    yield ((0, 3),)


samples("zeros", ref=np.zeros)(sizes)
samples("ones", ref=np.ones)(sizes)


@samples("full", ref=np.full)
def filled() -> Iterator[Any]:
    yield (2, 3), 1.5
    yield (), 7
    yield (2,), True
    yield Sample(((2,), float("nan")))


@samples("scalar_tensor", ref=np.array)
def numbers() -> Iterator[Any]:
    yield (2.5,)


def one_array() -> Iterator[Any]:
    yield normal(2, 3)
    yield np.array(1.0)


samples("zeros_like", ref=np.zeros_like)(one_array)
samples("ones_like", ref=np.ones_like)(one_array)


@samples("full_like", ref=np.full_like)
def filled_like() -> Iterator[Any]:
    yield normal(2, 3), 1.5


def new_sizes() -> Iterator[Any]:
    yield normal(2), (3, 2)


samples("new_zeros", ref=lambda x, size: np.zeros(size))(new_sizes)
samples("new_ones", ref=lambda x, size: np.ones(size))(new_sizes)


@samples("new_full", ref=lambda x, size, value: np.full(size, value))
def new_filled() -> Iterator[Any]:
    yield normal(2), (3, 2), 2.5


@samples("arange", ref=np.arange)
def ranges() -> Iterator[Any]:
    yield (5,)
    yield (2.5,)
    yield (0,)


@samples("arange.start", ref=lambda *range, dtype=None: np.arange(*range))
def steps() -> Iterator[Any]:
    yield 2, 7
    yield 7, 2, -2
    yield Sample((0.0, 1.0, 0.25), {"dtype": rl.float64})


samples("linspace", ref=lambda a, b, n, dtype: np.linspace(a, b, n))(
    lambda: iter(
        [Sample((-1, 2, 7), {"dtype": rl.float64}), Sample((3.0, 3.5, 1), {"dtype": rl.float64})]
    )
)
samples("logspace", ref=lambda a, b, n, base=10.0, dtype=None: np.logspace(a, b, n, base=base))(
    lambda: iter(
        [Sample((-1, 2, 5), {"dtype": rl.float64}), Sample((0, 3, 4, 2), {"dtype": rl.float64})]
    )
)


@samples("eye", ref=np.eye)
def identities() -> Iterator[Any]:
    yield (3,)
    yield 2, 4
    yield 0, 2


@samples("tril_indices", ref=lambda r, c, k=0: np.stack(np.tril_indices(r, k, c)))
def lower_places() -> Iterator[Any]:
    yield 3, 4
    yield 4, 3, -1


@samples("triu_indices", ref=lambda r, c, k=0: np.stack(np.triu_indices(r, k, c)))
def upper_places() -> Iterator[Any]:
    yield 3, 4
    yield 4, 3, 1


@samples("fill_", ref=np.full_like, grad=False)
def overwritten() -> Iterator[Any]:
    yield normal(2, 3), 1.5


@samples("fill_.Tensor", ref=lambda x, value: np.full_like(x, value), grad=False)
def overwritten_by_tensor() -> Iterator[Any]:
    yield normal(2, 3), np.array(1.5)


@samples("zero_", ref=np.zeros_like, grad=False)
def cleared() -> Iterator[Any]:
    yield normal(2, 3)


def with_diagonal(x: np.ndarray, value: float) -> np.ndarray:
    out = x.copy()
    np.fill_diagonal(out, value)
    return out


@samples("fill_diagonal_", ref=with_diagonal, grad=False)
def diagonals() -> Iterator[Any]:
    yield normal(3, 4), 2.0
    yield normal(3, 3, 3), 2.0
