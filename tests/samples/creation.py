"""Samples of new tensors filled with known values."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, normal, samples

FLOAT = np.float32  # the default dtype


@samples("zeros", ref=lambda size: np.zeros(size, FLOAT), grad=False)
def zeros() -> Iterator[Any]:
    yield ((2, 3),)
    yield ((),)
    yield ((2, 0),)


@samples("ones", ref=lambda size: np.ones(size, FLOAT), grad=False)
def ones() -> Iterator[Any]:
    yield ((2, 3),)
    yield ((),)


@samples("full", ref=np.full, grad=False)
def full() -> Iterator[Any]:
    yield (2, 3), 1.5
    yield (2,), 7
    yield (), True


samples("scalar_tensor", ref=lambda s: np.asarray(s, FLOAT), grad=False)(lambda: iter([2.5]))
samples("zeros_like", ref=np.zeros_like, grad=False)(lambda: iter([normal(2, 3)]))
samples("ones_like", ref=np.ones_like, grad=False)(lambda: iter([normal(2, 3)]))
samples("full_like", ref=np.full_like, grad=False)(lambda: iter([(normal(2, 3), 2.5)]))
samples("new_zeros", ref=lambda x, size: np.zeros(size), grad=False)(
    lambda: iter([(normal(2), (3, 1))])
)
samples("new_ones", ref=lambda x, size: np.ones(size), grad=False)(
    lambda: iter([(normal(2), (3, 1))])
)
samples("new_full", ref=lambda x, size, value: np.full(size, value), grad=False)(
    lambda: iter([(normal(2), (3, 1), 2.0)])
)


@samples("arange", ref=np.arange, grad=False)
def arange() -> Iterator[Any]:
    yield 5
    yield 0
    yield Sample(4.5)


@samples("arange.start", ref=np.arange, grad=False, tolerance=1e-6)
def arange_start() -> Iterator[Any]:
    yield 2, 9
    yield 9, 2, -3
    yield 0.5, 2.0, 0.25
    yield 3, 3, 1


@samples("linspace", ref=np.linspace, grad=False, tolerance=1e-6)
def linspace() -> Iterator[Any]:
    yield -1.0, 2.0, 7
    yield 3, 3, 1
    yield 0, 1, 0
    yield 1 + 1j, 2 - 3j, 5
    yield 0.5, 2j, 1


@samples("linspace.tensors", ref=np.linspace, grad=False, tolerance=1e-6)
def linspace_tensors() -> Iterator[Any]:
    yield np.array(-1.0), np.array(2.0), 7
    yield np.array(-1.0), 2.0, 3


@samples("logspace.tensors", ref=np.logspace, grad=False, tolerance=1e-5)
def logspace_tensors() -> Iterator[Any]:
    yield np.array(-1.0), np.array(2.0), 7
    yield 0.5, np.array(2.0), 3


@samples(
    "logspace", ref=lambda *a, base=10.0: np.logspace(*a, base=base), grad=False, tolerance=1e-5
)
def logspace() -> Iterator[Any]:
    yield -1.0, 2.0, 7
    yield Sample(0, 3, 4, base=2.0)
    yield 0, 1j, 4
    yield Sample(1 + 1j, -0.5j, 3, base=2.0)


@samples("eye", ref=np.eye, grad=False)
def eye() -> Iterator[Any]:
    yield 3
    yield 2, 4
    yield 3, 0


def triangle() -> Iterator[Any]:
    yield 3, 4
    yield 4, 3, 1
    yield 3, 3, -2
    yield 3, 5, 9
    yield 5, 3, -9
    yield 0, 3


samples("tril_indices", ref=lambda n, m, k=0: np.stack(np.tril_indices(n, k, m)), grad=False)(
    triangle
)
samples("triu_indices", ref=lambda n, m, k=0: np.stack(np.triu_indices(n, k, m)), grad=False)(
    triangle
)


@samples("fill_", ref=np.full_like)
def fill_() -> Iterator[Any]:
    yield normal(2, 3), 2.5
    yield normal(), -1
    yield normal(0), 1


@samples("fill_.Tensor", ref=np.full_like)
def fill_tensor_() -> Iterator[Any]:
    yield normal(2, 3), normal()


samples("zero_", ref=np.zeros_like)(lambda: iter([normal(2, 3)]))


@samples("fill", "fill.Tensor", ref=lambda x, value: np.full_like(x, value))
def fill() -> Iterator[Any]:
    yield normal(2, 3), np.array(2.5)
    yield normal(0), np.array(1.0)
