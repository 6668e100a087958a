"""Samples of square roots of matrices and of the polar decomposition."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg

from samples import complex_normal, normal, samples
from samples.linalg import definite, made_hermitian, one_by_one


def root(A: np.ndarray) -> np.ndarray:
    return one_by_one(scipy.linalg.sqrtm, A) if A.size else A


@samples("linalg.matrix_sqrth", ref=root, seen_as=made_hermitian)
def roots() -> Iterator[Any]:
    yield definite(2, 3, 3)
    yield definite(4, 4, make=complex_normal)
    yield np.diag([4.0, 4.0, 9.0])
    yield definite(0, 2, 2)


def polar(A: np.ndarray) -> tuple[np.ndarray, ...]:
    return one_by_one(scipy.linalg.polar, A)


@samples("linalg.polar", ref=polar)
def polar_decompositions() -> Iterator[Any]:
    yield normal(2, 3, 3)
    yield normal(5, 3)
    yield complex_normal(2, 4, 2)
    yield complex_normal(3, 3)
    yield np.diag([2.0, -2.0, 3.0])
