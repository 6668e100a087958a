"""Samples of powers, exponentials, chains and cross products."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg

from samples import Sample, complex_normal, integers, normal, samples
from samples.linalg import regular


@samples("linalg.matrix_power", "matrix_power", ref=np.linalg.matrix_power)
def matrix_power() -> Iterator[Any]:
    yield normal(2, 3, 3), 3
    for n in (1, 2, 5, -1, -3):
        yield regular(3, 3) / 3, n
    yield complex_normal(2, 2, 2), 4
    yield integers(-3, 4, 3, 3), 3
    yield integers(-3, 4, 2, 3, 3), 0


@samples("linalg.matrix_exp", "matrix_exp", ref=scipy.linalg.expm)
def matrix_exp() -> Iterator[Any]:
    yield normal(2, 3, 3)
    yield normal(3, 3) * np.array([1e-6, 0.1, 1, 10]).reshape(4, 1, 1)
    yield complex_normal(3, 3)
    yield np.zeros((2, 2))
    yield normal(1, 1)


@samples("linalg.multi_dot", "chain_matmul", ref=np.linalg.multi_dot)
def chains() -> Iterator[Any]:
    yield [normal(2, 3), normal(3, 4), normal(4, 2)]
    yield [normal(5, 2), normal(2, 7), normal(7, 1), normal(1, 3)]
    yield [normal(2, 3), normal(3, 0)]


def cross(a: np.ndarray, b: np.ndarray, dim: int = -1) -> np.ndarray:
    return np.cross(a, b, axis=dim)


@samples("linalg.cross", ref=cross)
def cross_products() -> Iterator[Any]:
    yield normal(2, 3), normal(2, 3)
    yield normal(4, 1, 3), normal(1, 5, 3)
    yield Sample(complex_normal(3, 2), complex_normal(3, 2), dim=0)
    yield normal(0, 3), normal(0, 3)


@samples("cross", ref=lambda a, b, dim=None: cross(a, b, a.shape.index(3) if dim is None else dim))
def root_cross() -> Iterator[Any]:
    yield normal(2, 3), normal(2, 3)
    yield normal(3, 3), normal(3, 3), -1


@samples("linalg.vander", ref=lambda x, N=None: x[..., None] ** np.arange(N or x.shape[-1]))
def vandermonde() -> Iterator[Any]:
    yield normal(2, 3)
    yield Sample(normal(4), N=2)


@samples("vander", ref=np.vander)
def root_vander() -> Iterator[Any]:
    yield integers(-3, 4, 3), 0
    yield integers(-3, 4, 5), 3
    yield normal(3)
    yield normal(3), 5, True


@samples("linalg.vecdot", ref=lambda x, y, dim=-1: (x.conj() * y).sum(dim))
def vecdot() -> Iterator[Any]:
    yield normal(2, 3), normal(3)
    yield Sample(complex_normal(3, 2), complex_normal(3, 2), dim=0)


@samples(
    "linalg.diagonal",
    ref=lambda A, offset=0, dim1=-2, dim2=-1: np.diagonal(A, offset, dim1, dim2),
)
def diagonal() -> Iterator[Any]:
    yield normal(2, 3, 4)
    yield Sample(normal(2, 3, 4), offset=1, dim1=0)
