"""Samples of products of matrices and vectors."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, normal, samples


@samples("mm", ref=np.matmul)
def mm() -> Iterator[Any]:
    yield normal(3, 4), normal(4, 2)
    yield normal(17, 33), normal(33, 9)
    yield normal(3, 0), normal(0, 2)
    yield normal(0, 4), normal(4, 2)


@samples("matmul", ref=np.matmul)
def matmul() -> Iterator[Any]:
    yield normal(3, 4), normal(4, 2)
    yield normal(4), normal(4)
    yield normal(4), normal(2, 4, 3)
    yield normal(2, 3, 4), normal(4)
    yield normal(2, 1, 3, 4), normal(5, 4, 2)
    yield normal(2, 3, 0), normal(0, 2)


@samples("bmm", ref=np.matmul)
def bmm() -> Iterator[Any]:
    yield normal(2, 3, 4), normal(2, 4, 5)
    yield normal(0, 3, 4), normal(0, 4, 5)


samples("mv", ref=np.dot)(lambda: iter([(normal(3, 4), normal(4)), (normal(3, 0), normal(0))]))
samples("dot", ref=np.dot)(lambda: iter([(normal(5), normal(5)), (normal(0), normal(0))]))
samples("vdot", ref=np.vdot)(lambda: iter([(normal(5), normal(5))]))
samples("outer", ref=np.outer)(lambda: iter([(normal(3), normal(4)), (normal(0), normal(2))]))


@samples("inner", ref=np.inner)
def inner() -> Iterator[Any]:
    yield normal(2, 3, 4), normal(5, 4)
    yield normal(4), normal(4)


def plus_product(
    x: np.ndarray, a: np.ndarray, b: np.ndarray, beta: float = 1, alpha: float = 1
) -> np.ndarray:
    return beta * x + alpha * np.matmul(a, b)


@samples("addmm", ref=plus_product)
def addmm() -> Iterator[Any]:
    yield normal(3, 2), normal(3, 4), normal(4, 2)
    yield Sample(normal(2), normal(3, 4), normal(4, 2), beta=0.5, alpha=2.0)
    yield normal(3, 2), normal(3, 0), normal(0, 2)


@samples("addr", ref=lambda x, a, b, beta=1, alpha=1: beta * x + alpha * np.outer(a, b))
def addr() -> Iterator[Any]:
    yield normal(3, 4), normal(3), normal(4)
    yield Sample(normal(4), normal(3), normal(4), beta=0.5, alpha=2.0)
    yield normal(0, 4), normal(0), normal(4)


@samples("addmv", ref=plus_product)
def addmv() -> Iterator[Any]:
    yield normal(3), normal(3, 4), normal(4)
    yield Sample(normal(1), normal(3, 4), normal(4), beta=0.5, alpha=2.0)


@samples("baddbmm", ref=plus_product)
def baddbmm() -> Iterator[Any]:
    yield normal(2, 3, 5), normal(2, 3, 4), normal(2, 4, 5)
    yield Sample(normal(5), normal(2, 3, 4), normal(2, 4, 5), beta=0.5, alpha=2.0)


@samples("addbmm", ref=lambda x, a, b, beta=1, alpha=1: beta * x + alpha * (a @ b).sum(0))
def addbmm() -> Iterator[Any]:
    yield normal(3, 5), normal(2, 3, 4), normal(2, 4, 5)
    yield Sample(normal(5), normal(2, 3, 4), normal(2, 4, 5), beta=0.5, alpha=2.0)


@samples("nn.functional.linear", ref=lambda x, w, b=0.0: x @ w.T + b)
def linear() -> Iterator[Any]:
    yield normal(3, 4), normal(5, 4), normal(5)
    yield normal(2, 3, 4), normal(5, 4)
    yield normal(4), normal(5, 4), normal(5)
    yield normal(0, 4), normal(5, 4), normal(5)
    yield normal(2, 3, 4), normal(5, 4), normal(3, 5)
    yield normal(2, 3, 4), normal(5, 4), normal(1)
    yield normal(2, 3, 4), normal(4), normal()
