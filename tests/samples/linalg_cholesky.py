"""Samples of Cholesky and LDL factorizations."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import rushlight as rl
from samples import Sample, complex_normal, normal, samples
from samples.linalg import adjoint, definite, hermitian, made_hermitian


def cholesky(A: np.ndarray, upper: bool = False) -> np.ndarray:
    L = np.linalg.cholesky(A)
    return adjoint(L) if upper else L


@samples("linalg.cholesky", "cholesky", ref=cholesky, seen_as=made_hermitian)
def definite_matrices() -> Iterator[Any]:
    yield definite(2, 3, 3)
    yield Sample(definite(4, 4), upper=True)
    yield definite(20, 20)
    yield Sample(definite(18, 18, make=complex_normal), upper=True)
    yield definite(2, 3, 3, make=complex_normal)
    yield definite(2, 0, 0)
    yield definite(0, 3, 3)


@samples(
    "linalg.cholesky_ex",
    ref=lambda A, upper=False: (cholesky(A, upper), np.zeros(A.shape[:-2], np.int32)),
    seen_as=made_hermitian,
)
def cholesky_ex() -> Iterator[Any]:
    yield definite(2, 3, 3)
    yield Sample(definite(3, 3, make=complex_normal), upper=True)


@samples(
    "cholesky_solve",
    ref=lambda B, L, upper=False: np.linalg.solve(adjoint(L) @ L if upper else L @ adjoint(L), B),
)
def cholesky_solve() -> Iterator[Any]:
    yield normal(2, 3, 2), cholesky(definite(2, 3, 3))
    yield normal(2, 3, 2), cholesky(definite(3, 3), upper=True), True
    yield complex_normal(3, 2), cholesky(definite(2, 3, 3, make=complex_normal))
    yield normal(3, 0), cholesky(definite(3, 3))


@samples(
    "cholesky_inverse",
    ref=lambda L, upper=False: np.linalg.inv(adjoint(L) @ L if upper else L @ adjoint(L)),
)
def cholesky_inverse() -> Iterator[Any]:
    yield cholesky(definite(2, 3, 3))
    yield cholesky(definite(3, 3, make=complex_normal), upper=True), True


def solved(op: Any, A: Any, **kwargs: Any) -> Any:
    """The inverse by the factorization, which is not unique itself."""
    LD, pivots, *_ = op(A, **kwargs)
    eye = rl.eye(A.shape[-1], dtype=A.dtype, device=A.device).expand(A.shape)
    return rl.linalg.ldl_solve(LD, pivots, eye, **kwargs)


@samples(
    "linalg.ldl_factor",
    "linalg.ldl_factor_ex",
    ref=lambda A, hermitian=False: np.linalg.inv(A),
    seen_as=solved,
    constant=(0,),
)
def ldl_factor() -> Iterator[Any]:
    yield hermitian(2, 3, 3)
    yield Sample(hermitian(5, 5, make=complex_normal), hermitian=True)
    symmetric = complex_normal(2, 4, 4)
    yield symmetric + symmetric.swapaxes(-1, -2)


def ldl(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The factorization of a definite matrix without exchanges."""
    L = np.linalg.cholesky(A)
    d = np.diagonal(L, axis1=-2, axis2=-1)
    LD = np.tril(L / d[..., None, :], -1) + np.eye(A.shape[-1]) * (d * d)[..., None, :]
    return LD, np.broadcast_to(np.arange(1, A.shape[-1] + 1, dtype=np.int32), d.shape).copy()


def ldl_solve(LD: np.ndarray, pivots: np.ndarray, B: np.ndarray, hermitian: bool = False) -> Any:
    L = np.tril(LD, -1) + np.eye(LD.shape[-1])
    D = np.eye(LD.shape[-1]) * LD
    return np.linalg.solve(L @ D @ (adjoint(L) if hermitian else L.swapaxes(-1, -2)), B)


@samples("linalg.ldl_solve", ref=ldl_solve, constant=(0,))
def ldl_solves() -> Iterator[Any]:
    yield *ldl(definite(2, 3, 3)), normal(2, 3, 2)
    yield Sample(*ldl(definite(3, 3, make=complex_normal)), complex_normal(2, 3, 1), hermitian=True)
