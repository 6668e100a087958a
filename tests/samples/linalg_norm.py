"""Samples of the norms of matrices."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, complex_normal, normal, samples
from samples.linalg import regular

ORDERS = (1, -1, 2, -2, np.inf, -np.inf)


def matrix_norm(
    A: np.ndarray, ord: Any = "fro", dim: tuple[int, int] = (-2, -1), keepdim: bool = False
) -> Any:
    return np.linalg.norm(A, ord, dim, keepdim)


@samples("linalg.matrix_norm", ref=matrix_norm)
def matrix_norms() -> Iterator[Any]:
    for ord in ORDERS:
        yield normal(2, 3, 4), ord
    yield normal(4, 2, 3), 1, (0, 2), True
    yield normal(4, 2, 3), -2, (2, 0), True
    yield complex_normal(3, 4), 2
    yield complex_normal(3, 4), np.inf


@samples("linalg.matrix_norm.str_ord", ref=matrix_norm)
def named_matrix_norms() -> Iterator[Any]:
    yield normal(2, 3, 4)
    yield normal(4, 2, 3), "nuc", (0, 2), True
    yield complex_normal(3, 4), "nuc"


def norm(x: np.ndarray, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Any:
    if ord is None and (dim is None or isinstance(dim, tuple)):
        return np.sqrt((np.abs(x) ** 2).sum(dim, keepdims=keepdim))
    return np.linalg.norm(x, ord, dim, keepdim)


@samples("linalg.norm", ref=norm)
def norms() -> Iterator[Any]:
    yield normal(2, 3, 4)
    yield normal(3, 4), 2
    yield normal(5), 3
    yield Sample(normal(2, 3, 4), dim=1)
    yield normal(2, 3, 4), -1, (0, 2), True
    yield normal(2, 3, 4), np.inf, 1


@samples("linalg.norm.ord_str", ref=norm)
def named_norms() -> Iterator[Any]:
    yield normal(3, 4), "fro"
    yield normal(2, 3, 4), "nuc", (0, 1), True


def root_norm(x: np.ndarray, p: str, dim: Any = None, keepdim: bool = False) -> Any:
    if p == "fro":
        return norm(x, None, dim, keepdim)
    return np.linalg.norm(x, p, dim, keepdim)


@samples("norm.named", ref=root_norm)
def root_norms() -> Iterator[Any]:
    yield normal(3, 4), "fro"
    yield normal(3, 4, 2), "fro", (0, 1), True
    yield normal(3, 4), "nuc"
    yield normal(3, 4, 2), "nuc", (0, 2)


@samples("nuclear_norm", ref=lambda x, keepdim=False: np.linalg.norm(x, "nuc", (-2, -1), keepdim))
def nuclear_norm() -> Iterator[Any]:
    yield normal(3, 4)
    yield normal(2, 3, 4)
    yield normal(3, 4), True


@samples("nuclear_norm.dim", ref=lambda x, dim: np.linalg.norm(x, "nuc", dim))
def nuclear_norm_dim() -> Iterator[Any]:
    yield normal(2, 3, 4), (0, 2)


@samples("frobenius_norm", ref=lambda x, dim, keepdim=False: norm(x, None, dim or None, keepdim))
def frobenius_norm() -> Iterator[Any]:
    yield normal(2, 3, 4), (0, 2)
    yield normal(2, 3), ()


def norm_except_dim(v: np.ndarray, pow: int = 2, dim: int = 0) -> Any:
    others = None if dim == -1 else tuple(d for d in range(v.ndim) if d != dim)
    total = (np.abs(v) ** pow).sum(others, keepdims=dim != -1)
    return total ** (1 / pow)


@samples("norm_except_dim", ref=norm_except_dim)
def norms_except_dim() -> Iterator[Any]:
    yield normal(2, 3, 4)
    yield normal(2, 3, 4), 3, 1
    yield normal(2, 3), 2, -1


@samples("linalg.cond", ref=np.linalg.cond)
def conditions() -> Iterator[Any]:
    yield normal(2, 4, 3)
    for ord in ORDERS:
        yield regular(2, 3, 3), ord
    yield complex_normal(3, 3), 1


@samples("linalg.cond.p_str", ref=np.linalg.cond)
def named_conditions() -> Iterator[Any]:
    yield regular(2, 3, 3), "fro"
    yield regular(3, 3), "nuc"
