"""Samples of singular values and what they give."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import rushlight as rl
from samples import Sample, complex_normal, normal, samples
from samples.linalg import adjoint, counted


def invariant(library: Any, U: Any, S: Any, Vh: Any) -> tuple[Any, ...]:
    """What the signs or phases of singular vectors do not change, but their spaces do."""
    k = S.shape[-1]
    U, Vh = U[..., :k], Vh[..., :k, :]
    weights = counted(library, S)
    left = (U * weights[..., None, :]) @ adjoint(U)
    right = adjoint(Vh) @ (Vh * weights[..., None])
    return S, left, right, (U * (S * S)[..., None, :]) @ Vh


def svd_seen(op: Callable[..., Any], A: Any, *args: Any, **kwargs: Any) -> Any:
    return invariant(rl, *op(A, *args, **kwargs))


@samples(
    "linalg.svd",
    ref=lambda A, full_matrices=True: invariant(np, *np.linalg.svd(A, full_matrices)),
    seen_as=svd_seen,
)
def svd() -> Iterator[Any]:
    yield normal(2, 3, 3)
    yield normal(5, 3)
    yield normal(2, 3, 5), False
    yield complex_normal(4, 3), False
    yield complex_normal(2, 3, 3)
    yield normal(3, 0)
    yield normal(0, 2, 3)


def root_svd_seen(op: Callable[..., Any], A: Any, *args: Any) -> Any:
    U, S, V = op(A, *args)
    return invariant(rl, U, S, adjoint(V))


@samples(
    "svd",
    ref=lambda A, some=True: invariant(np, *np.linalg.svd(A, not some)),
    seen_as=root_svd_seen,
)
def root_svd() -> Iterator[Any]:
    yield normal(2, 4, 3)
    yield complex_normal(3, 4), False


@samples("linalg.svdvals", ref=lambda A: np.linalg.svd(A, compute_uv=False))
def svdvals() -> Iterator[Any]:
    yield normal(2, 4, 3)
    yield complex_normal(3, 5)
    yield normal(0, 3)


def deficient(*shape: int) -> np.ndarray:
    """Matrices with a singular value less than they have room for."""
    A = normal(*shape)
    A[..., -1] = A[..., 0]
    return A


def pinv(A: np.ndarray, rcond: float | None = None, hermitian: bool = False) -> np.ndarray:
    usual = np.finfo(A.dtype).eps * max(A.shape[-2:])
    return np.linalg.pinv(A, usual if rcond is None else rcond, hermitian)


@samples("linalg.pinv", ref=lambda A, atol=None, rtol=None: pinv(A, rtol))
def pseudoinverses() -> Iterator[Any]:
    yield normal(2, 3, 3)
    yield normal(4, 2)
    yield complex_normal(2, 2, 3)
    yield Sample(normal(3, 4), rtol=1e-3)
    yield normal(2, 0, 3)


@samples("linalg.pinv.rcond", ref=pinv)
def pinv_rcond() -> Iterator[Any]:
    yield normal(4, 2), 1e-3


@samples("pinverse", ref=pinv)
def pinverse() -> Iterator[Any]:
    yield normal(2, 4, 3)


@samples(
    "linalg.matrix_rank",
    ref=lambda A, atol=None, rtol=None: np.linalg.matrix_rank(A) if atol is None else 1,
    grad=False,
)
def ranks() -> Iterator[Any]:
    yield deficient(2, 4, 3)
    yield complex_normal(3, 3)
    yield Sample(np.diag([5.0, 0.5, 0.1]), atol=1.0)


@samples("linalg.matrix_rank.tol", ref=np.linalg.matrix_rank, grad=False)
def rank_tol() -> Iterator[Any]:
    yield normal(4, 3), 1.5
