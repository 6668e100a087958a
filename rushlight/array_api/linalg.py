"""The linalg extension of the array API: torch.linalg with the standard's signatures."""

from __future__ import annotations

from typing import Literal

import rushlight as rl
from rushlight import Tensor
from rushlight.array_api._data_types import promoted
from rushlight.array_api._linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from rushlight.array_api._statistical import sum as _sum

Order = float | Literal["fro", "nuc"]

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """Returns the triangular factors of positive definite matrices."""
    return rl.linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Returns the cross products of vectors of three elements along an axis."""
    for x in (x1, x2):
        if x.shape[axis] != 3:
            raise ValueError(f"cross: axis {axis} has {x.shape[axis]} elements. It must have 3.")
    return rl.linalg.cross(*rl.broadcast_tensors(*promoted(x1, x2)), dim=axis)


def det(x: Tensor, /) -> Tensor:
    """Returns the determinants of square matrices."""
    return rl.linalg.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Returns the diagonals of matrices, a view."""
    return rl.diagonal(x, offset, -2, -1)


def eigh(x: Tensor, /) -> tuple[Tensor, Tensor]:
    """Returns the eigenvalues and eigenvectors of symmetric or Hermitian matrices."""
    return rl.linalg.eigh(x)


def eigvalsh(x: Tensor, /) -> Tensor:
    """Returns the eigenvalues of symmetric or Hermitian matrices."""
    return rl.linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """Returns the inverses of square matrices."""
    return rl.linalg.inv(x)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Order | None = "fro") -> Tensor:
    """Returns the norms of matrices: 'fro', 'nuc', 1, 2, inf or their negatives."""
    return rl.linalg.matrix_norm(x, "fro" if ord is None else ord, keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Returns square matrices to an integer power."""
    return rl.linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Returns the ranks: how many singular values are above rtol times the largest."""
    return rl.linalg.matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Returns the products of all pairs of elements of two vectors."""
    return rl.outer(*promoted(x1, x2))


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Returns the pseudo-inverses of matrices; see matrix_rank for rtol."""
    return rl.linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> tuple[Tensor, Tensor]:
    """Returns Q with orthonormal columns and triangular R, whose product is x."""
    return rl.linalg.qr(x, mode)


def slogdet(x: Tensor, /) -> tuple[Tensor, Tensor]:
    """Returns the signs of determinants and the logarithms of their magnitudes."""
    return rl.linalg.slogdet(x)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Returns the y of x1 @ y = x2, where a 1-d x2 is a vector, any other matrices."""
    x1, x2 = promoted(x1, x2)
    right = x2.unsqueeze(-1) if x2.ndim == 1 else x2
    # With all its dims the right side cannot be taken for a stack of vectors.
    batch = rl.broadcast_shapes(x1.shape[:-2], right.shape[:-2])
    solution = rl.linalg.solve(x1, right.broadcast_to((*batch, *right.shape[-2:])))
    return solution.squeeze(-1) if x2.ndim == 1 else solution


def svd(x: Tensor, /, *, full_matrices: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the singular vectors U, the singular values S and the vectors Vh of matrices."""
    return rl.linalg.svd(x, full_matrices=full_matrices)


def svdvals(x: Tensor, /) -> Tensor:
    """Returns the singular values of matrices."""
    return rl.linalg.svdvals(x)


def trace(x: Tensor, /, *, offset: int = 0, dtype: rl.dtype | None = None) -> Tensor:
    """Returns the sums of diagonals, in the dtype of sum."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(
    x: Tensor,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    ord: float = 2,
) -> Tensor:
    """Returns the norms of vectors along axes, of the flat array if axis is None."""
    if axis == ():  # which is all dims to PyTorch
        return rl.abs(x) if ord else (x != 0).to(rl.abs(x).dtype)
    return rl.linalg.vector_norm(x, ord, axis, keepdim=keepdims)
