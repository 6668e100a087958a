"""What distributions with a covariance matrix share: one of its three forms, the others lazy.

Also products with triangular factors that may have fewer batch dims than what they multiply.
"""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import lazy_property

FORMS: dict[str, constraints.Constraint] = {
    "covariance_matrix": constraints.positive_definite,
    "precision_matrix": constraints.positive_definite,
    "scale_tril": constraints.lower_cholesky,
}


class CovarianceForms(Distribution):
    """Has covariance_matrix, precision_matrix and scale_tril, (*, n, n).

    `_unbroadcasted_scale_tril` has the batch dims of the form that was given, and no more.
    """

    _unbroadcasted_scale_tril: Tensor
    _kept = ("_unbroadcasted_scale_tril",)

    def _given_form(self, **forms: Tensor | None) -> tuple[str, Tensor]:
        """The name and the value of the only form that is not None."""
        given = [(name, value) for name, value in forms.items() if value is not None]
        if len(given) != 1:
            raise ValueError(
                f"{type(self).__name__}: exactly one of covariance_matrix or precision_matrix or "
                "scale_tril may be specified."
            )
        name, value = given[0]
        if value.dim() < 2:
            raise ValueError(
                f"{type(self).__name__}: {name} must be at least two-dimensional, with optional "
                "leading batch dimensions."
            )
        return name, value

    def _factorize(self, name: str, value: Tensor) -> None:
        if name == "precision_matrix":
            value = _precision_to_scale_tril(value)
        elif name == "covariance_matrix":
            value = rl.linalg.cholesky(value)
        self._unbroadcasted_scale_tril = value

    def _wide(self, matrix: Tensor) -> Tensor:
        n = matrix.shape[-1]
        return matrix.expand(*self._batch_shape, n, n)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of covariance_matrix."""
        return self._wide(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """scale_tril @ scale_tril.mT"""
        tril = self._unbroadcasted_scale_tril
        return self._wide(tril @ tril.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of covariance_matrix."""
        return self._wide(rl.cholesky_inverse(self._unbroadcasted_scale_tril))


def log_diagonal(tril: Tensor) -> Tensor:
    """Returns the log determinant of triangular matrices with positive diagonals."""
    return tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def identity_like(matrix: Tensor) -> Tensor:
    """Returns the identity of the size of matrices."""
    return rl.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


def _precision_to_scale_tril(precision: Tensor) -> Tensor:
    # With J the reversal of rows, J P J = L L^T gives P = (J L J)(J L J)^T, of upper triangular
    # factors; the inverse of its transpose is the factor of the covariance.
    upper = rl.linalg.cholesky(precision.flip((-2, -1))).flip((-2, -1))
    return rl.linalg.solve_triangular(upper.mT, identity_like(precision), upper=False)


def times_vector(matrix: Tensor, vector: Tensor) -> Tensor:
    """Returns matrix @ vector, with batch dims that broadcast."""
    if matrix.dim() == 2:
        return vector @ matrix.mT
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def mahalanobis(tril: Tensor, difference: Tensor) -> Tensor:
    """Returns |tril^-1 difference|^2, with batch dims that broadcast."""
    if tril.dim() == 2:
        flat = difference.reshape(-1, difference.shape[-1])  # all systems have one matrix
        solved = rl.linalg.solve_triangular(tril, flat.mT, upper=False)
        return solved.square().sum(0).reshape(difference.shape[:-1])
    batch = rl.broadcast_shapes(tril.shape[:-2], difference.shape[:-1])
    tril = tril.expand(*batch, *tril.shape[-2:])
    column = difference.expand(*batch, -1).unsqueeze(-1)
    return rl.linalg.solve_triangular(tril, column, upper=False).square().sum((-2, -1))
