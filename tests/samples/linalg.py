"""Matrices for the samples of linear algebra."""

from collections.abc import Callable
from typing import Any

import numpy as np

import rushlight as rl
from samples import normal


def regular(*shape: int, make: Callable[..., np.ndarray] = normal) -> np.ndarray:
    """Square matrices far from singular ones."""
    return make(*shape) + 3 * np.eye(shape[-1])


def hermitian(*shape: int, make: Callable[..., np.ndarray] = normal) -> np.ndarray:
    """Hermitian matrices."""
    x = make(*shape)
    return x + adjoint(x)


def definite(*shape: int, make: Callable[..., np.ndarray] = normal) -> np.ndarray:
    """Hermitian positive-definite matrices."""
    x = make(*shape)
    return x @ adjoint(x) + np.eye(shape[-1])


def adjoint(x: Any) -> Any:
    """The conjugate transpose of matrices."""
    return x.swapaxes(-1, -2).conj()


def counted(library: Any, x: Any) -> Any:
    """1, 2, 3, ... along the last dim of x, with its sizes and on its device."""
    return library.cumsum(library.ones_like(x), -1)


def made_hermitian(op: Callable[..., Any], A: Any, *args: Any, **kwargs: Any) -> Any:
    """The op of the Hermitian part of A: what gradients mean that reach both triangles."""
    if isinstance(A, rl.Tensor) and (A.is_floating_point() or A.is_complex()):
        A = (A + adjoint(A)) * 0.5
    return op(A, *args, **kwargs)


def one_by_one(f: Callable[..., Any], *batches: np.ndarray) -> Any:
    """What f gives for each matrix of a batch, stacked; f may return several arrays."""
    if batches[0].ndim == 2:
        return f(*batches)
    parts = [one_by_one(f, *matrices) for matrices in zip(*batches, strict=True)]
    if isinstance(parts[0], tuple):
        return tuple(np.stack(column) for column in zip(*parts, strict=True))
    return np.stack(parts)
