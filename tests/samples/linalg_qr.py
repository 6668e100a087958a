"""Samples of QR decompositions and Householder reflectors."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg

from samples import Sample, complex_normal, normal, samples
from samples.linalg import adjoint, one_by_one


def qr(A: np.ndarray, mode: str = "reduced") -> Any:
    if mode == "r":
        return np.zeros(0), np.linalg.qr(A, "r")
    return tuple(np.linalg.qr(A, mode))


@samples("linalg.qr", ref=qr)
def differentiable() -> Iterator[Any]:
    yield normal(2, 3, 3)
    yield normal(5, 3)
    yield normal(2, 3, 5)
    yield complex_normal(4, 3)
    yield complex_normal(2, 2, 4)
    yield normal(3, 4), "complete"


@samples("qr", ref=lambda A, some=True: qr(A, "reduced" if some else "complete"))
def root_qr() -> Iterator[Any]:
    yield normal(2, 4, 3)
    yield normal(3, 4), False


def geqrf(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return one_by_one(lambda a: scipy.linalg.qr(a, mode="raw")[0], A)


@samples("geqrf", ref=geqrf, constant=(0,))
def stored() -> Iterator[Any]:
    yield normal(2, 4, 3)
    yield complex_normal(3, 4)


def reflect(A: np.ndarray, tau: np.ndarray, C: np.ndarray, transpose: bool = False) -> Any:
    """H_1 ... H_k C of matrices, or the adjoint of the product times C."""
    if A.ndim > 2:
        return np.stack([reflect(a, t, c, transpose) for a, t, c in zip(A, tau, C, strict=True)])
    Q = np.eye(A.shape[0])
    for i in range(tau.shape[0]):
        v = np.concatenate([np.zeros(i), [1], A[i + 1 :, i]])[:, None]
        Q = Q @ (np.eye(A.shape[0]) - tau[i] * v @ adjoint(v))
    return (adjoint(Q) if transpose else Q) @ C


def householder_product(A: np.ndarray, tau: np.ndarray) -> np.ndarray:
    return reflect(A, tau, np.broadcast_to(np.eye(*A.shape[-2:]), A.shape))


@samples("linalg.householder_product", "orgqr", ref=householder_product)
def reflectors() -> Iterator[Any]:
    yield normal(2, 4, 3), normal(2, 3)
    yield normal(4, 4), normal(2)
    yield complex_normal(4, 3), complex_normal(3)
    yield normal(3, 2), normal(0)


def ormqr(
    A: np.ndarray, tau: np.ndarray, C: np.ndarray, left: bool = True, transpose: bool = False
) -> np.ndarray:
    if left:
        return reflect(A, tau, C, transpose)
    return adjoint(reflect(A, tau, adjoint(C), not transpose))


@samples("ormqr", ref=ormqr)
def products() -> Iterator[Any]:
    yield normal(2, 4, 3), normal(2, 3), normal(2, 4, 2)
    yield normal(4, 3), normal(3), normal(2, 4), False
    yield complex_normal(3, 2), complex_normal(2), complex_normal(3, 2), True, True
    yield complex_normal(3, 2), complex_normal(2), complex_normal(2, 3), False, True
    yield Sample(normal(4, 3), normal(2), normal(4, 2), transpose=True)
