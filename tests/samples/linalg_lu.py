"""Samples of LU factorizations and triangular systems."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg

from samples import Sample, complex_normal, normal, samples
from samples.linalg import adjoint, one_by_one, regular


def lu_factor(A: np.ndarray, pivot: bool = True) -> tuple[np.ndarray, np.ndarray]:
    def one(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        LU, pivots = scipy.linalg.lu_factor(a)
        return LU, (pivots + 1).astype(np.int32)

    return one_by_one(one, A)


@samples("linalg.lu_factor", ref=lu_factor)
def lu_factors() -> Iterator[Any]:
    yield normal(2, 3, 3)
    yield normal(5, 3)
    yield normal(2, 3, 5)
    yield complex_normal(4, 4)
    yield complex_normal(3, 2)
    yield normal(20, 20)


@samples(
    "linalg.lu_factor_ex",
    ref=lambda A, pivot=True: (*lu_factor(A), np.zeros(A.shape[:-2], np.int32)),
)
def lu_factor_ex() -> Iterator[Any]:
    yield normal(2, 3, 3)


@samples("linalg.lu", ref=lambda A: one_by_one(scipy.linalg.lu, A))
def lu() -> Iterator[Any]:
    yield normal(2, 3, 3)
    yield normal(4, 2)
    yield complex_normal(2, 4)


def lu_unpack(LU: np.ndarray, pivots: np.ndarray, data: bool = True, order: bool = True) -> Any:
    def one(LU: np.ndarray, pivots: np.ndarray) -> tuple[np.ndarray, ...]:
        m, k = LU.shape[0], min(LU.shape)
        P = np.eye(m)
        for i, pivot in enumerate(pivots):
            P[:, [i, pivot - 1]] = P[:, [pivot - 1, i]]
        return P, np.tril(LU[:, :k], -1) + np.eye(m, k), np.triu(LU[:k])

    P, L, U = one_by_one(one, LU, pivots)
    return P if order else np.zeros(0), L if data else np.zeros(0), U if data else np.zeros(0)


@samples("lu_unpack", ref=lu_unpack)
def unpacked() -> Iterator[Any]:
    yield lu_factor(normal(2, 3, 3))
    yield lu_factor(normal(4, 2))
    yield *lu_factor(normal(2, 4)), True, False


def lu_solve(
    LU: np.ndarray, pivots: np.ndarray, B: np.ndarray, left: bool = True, adjoint: bool = False
) -> np.ndarray:
    P, L, U = lu_unpack(LU, pivots)
    A = P @ L @ U
    if adjoint:
        A = A.swapaxes(-1, -2).conj()
    if left:
        return np.linalg.solve(A, B)
    return np.linalg.solve(A.swapaxes(-1, -2), B.swapaxes(-1, -2)).swapaxes(-1, -2)


@samples("linalg.lu_solve", ref=lu_solve)
def lu_solves() -> Iterator[Any]:
    yield *lu_factor(regular(2, 3, 3)), normal(2, 3, 2)
    yield Sample(*lu_factor(normal(3, 3)), normal(2, 2, 3), left=False)
    yield Sample(*lu_factor(complex_normal(3, 3)), complex_normal(3, 2), adjoint=True)
    yield Sample(
        *lu_factor(complex_normal(2, 3, 3)), complex_normal(2, 3), left=False, adjoint=True
    )
    yield *lu_factor(regular(20, 20)), normal(20, 3)


@samples("lu_solve", ref=lambda B, LU, pivots: lu_solve(LU, pivots, B))
def root_lu_solve() -> Iterator[Any]:
    yield normal(2, 3, 2), *lu_factor(regular(2, 3, 3))


def solve_triangular(
    A: np.ndarray, B: np.ndarray, upper: bool, left: bool = True, unitriangular: bool = False
) -> np.ndarray:
    T = np.triu(A) if upper else np.tril(A)
    if unitriangular:
        T = np.where(np.eye(A.shape[-1]) == 1, 1, T)
    if left:
        return np.linalg.solve(T, B)
    return np.linalg.solve(T.swapaxes(-1, -2), B.swapaxes(-1, -2)).swapaxes(-1, -2)


@samples("linalg.solve_triangular", ref=solve_triangular)
def triangular_systems() -> Iterator[Any]:
    yield Sample(regular(2, 3, 3), normal(2, 3, 2), upper=True)
    yield Sample(regular(3, 3), normal(2, 2, 3), upper=False, left=False)
    yield Sample(
        complex_normal(2, 3, 3), complex_normal(2, 3), upper=True, left=False, unitriangular=True
    )
    yield Sample(regular(3, 3, make=complex_normal), complex_normal(3, 2), upper=False)
    yield Sample(regular(20, 20), normal(20, 3), upper=True)
    yield Sample(regular(0, 0), normal(0, 3), upper=True)


@samples(
    "triangular_solve",
    ref=lambda B, A, upper=True, transpose=False, unitriangular=False: (
        solve_triangular(
            adjoint(A) if transpose else A, B, upper != transpose, True, unitriangular
        ),
        A,
    ),
)
def root_triangular_solve() -> Iterator[Any]:
    yield normal(2, 3, 2), regular(2, 3, 3)
    yield normal(3, 2), regular(3, 3), False, True
