"""Samples of eigenvalues and eigenvectors, seen by what signs, phases and order do not change."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import rushlight as rl
from samples import complex_normal, normal, samples
from samples.linalg import adjoint, counted, hermitian, made_hermitian


def weighted_spaces(library: Any, values: Any, V: Any) -> tuple[Any, Any]:
    return values, (V * counted(library, values)[..., None, :]) @ adjoint(V)


def eigh_seen(op: Callable[..., Any], A: Any, *args: Any) -> Any:
    return weighted_spaces(rl, *made_hermitian(op, A, *args))


@samples(
    "linalg.eigh",
    ref=lambda A, UPLO="L": weighted_spaces(np, *np.linalg.eigh(A, UPLO)),
    seen_as=eigh_seen,
)
def eigh() -> Iterator[Any]:
    yield hermitian(2, 3, 3)
    yield hermitian(4, 4), "U"
    yield hermitian(2, 3, 3, make=complex_normal)
    yield hermitian(20, 20)
    yield hermitian(2, 0, 0)


@samples("linalg.eigvalsh", ref=np.linalg.eigvalsh, seen_as=made_hermitian)
def eigvalsh() -> Iterator[Any]:
    yield hermitian(2, 3, 3)
    yield hermitian(4, 4, make=complex_normal), "U"


def exponential(library: Any, values: Any, V: Any) -> Any:
    return (V * library.exp(values)[..., None, :]) @ library.linalg.inv(V)


@samples(
    "linalg.eig",
    ref=lambda A: exponential(np, *np.linalg.eig(A)),
    seen_as=lambda op, A: exponential(rl, *op(A)),
)
def eig() -> Iterator[Any]:
    yield normal(2, 3, 3)
    yield complex_normal(4, 4)
    yield normal(5, 5)


def power_sums(library: Any, values: Any) -> Any:
    return library.stack([(values**n).sum(-1) for n in (1, 2, 3)])


@samples(
    "linalg.eigvals",
    ref=lambda A: power_sums(np, np.linalg.eigvals(A) + 0j),
    seen_as=lambda op, A: power_sums(rl, op(A)),
)
def eigvals() -> Iterator[Any]:
    yield normal(2, 3, 3)
    yield complex_normal(3, 3)
