"""Samples of linear systems, inverses and determinants."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, complex_normal, normal, samples
from samples.linalg import regular


def solve(A: np.ndarray, B: np.ndarray, left: bool = True) -> np.ndarray:
    if not left:
        A, B = A.swapaxes(-1, -2), B.swapaxes(-1, -2)
    is_vector = B.ndim == 1 or B.shape == A.shape[:-1]
    X = np.linalg.solve(A, B[..., None] if is_vector else B)
    return X[..., 0] if is_vector else X if left else X.swapaxes(-1, -2)


@samples("linalg.solve", ref=solve)
def systems() -> Iterator[Any]:
    yield regular(2, 3, 3), normal(2, 3, 2)
    yield regular(3, 3), normal(3)
    yield regular(2, 3, 3), normal(2, 3)
    yield regular(2, 1, 3, 3), normal(4, 3, 2)
    yield Sample(regular(3, 3), normal(2, 2, 3), left=False)
    yield complex_normal(2, 3, 3), complex_normal(3, 1)
    yield regular(20, 20), normal(20, 2)
    yield regular(0, 0), normal(0, 2)
    yield regular(3, 3), normal(3, 0)


@samples("linalg.solve_ex", ref=lambda A, B: (solve(A, B), np.zeros(A.shape[:-2], np.int32)))
def solve_ex() -> Iterator[Any]:
    yield regular(2, 3, 3), normal(2, 3, 2)


@samples("linalg.inv", "inverse", ref=np.linalg.inv)
def inverses() -> Iterator[Any]:
    yield regular(2, 3, 3)
    yield complex_normal(3, 3)
    yield regular(20, 20)
    yield regular(2, 0, 0)
    yield regular(0, 3, 3)


@samples("linalg.inv_ex", ref=lambda A: (np.linalg.inv(A), np.zeros(A.shape[:-2], np.int32)))
def inv_ex() -> Iterator[Any]:
    yield regular(2, 3, 3)


@samples("linalg.tensorinv", ref=np.linalg.tensorinv)
def tensorinv() -> Iterator[Any]:
    yield regular(6, 6).reshape(1, 6, 2, 3), 2
    yield regular(6, 6).reshape(3, 2, 6), 2
    yield regular(4, 4), 1


@samples("linalg.tensorsolve", ref=np.linalg.tensorsolve)
def tensorsolve() -> Iterator[Any]:
    yield regular(6, 6).reshape(1, 6, 2, 3), normal(1, 6)
    yield regular(6, 6).reshape(3, 2, 6), normal(3, 2)
    yield regular(6, 6).reshape(2, 3, 6).transpose(2, 0, 1).copy(), normal(2, 3), (0,)


@samples("linalg.det", "det", ref=np.linalg.det)
def determinants() -> Iterator[Any]:
    yield normal(2, 3, 3)
    yield complex_normal(3, 3)
    yield normal(20, 20) / 4
    yield normal(2, 0, 0)
    yield normal(1, 1)


@samples("linalg.slogdet", "slogdet", ref=np.linalg.slogdet)
def signs_and_logarithms() -> Iterator[Any]:
    yield normal(2, 3, 3)
    yield complex_normal(2, 3, 3)
    yield normal(2, 0, 0)


@samples("logdet", ref=lambda A: np.log(np.linalg.det(A)))
def logdet() -> Iterator[Any]:
    yield regular(2, 3, 3)
    yield regular(3, 3, make=complex_normal)
