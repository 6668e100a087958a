"""Multivariate normal distributions with a covariance of low rank and a diagonal."""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions._covariance import (
    identity_like,
    log_diagonal,
    mahalanobis,
    times_vector,
)
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import EMPTY, Shape, lazy_property, standard_normal

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """Normal vectors of covariance W W^T + D, with W of few columns and D a diagonal.

    The inverse and the determinant come from C = I + W^T D^-1 W, which is small: Woodbury's
    identity, D^-1 - D^-1 W C^-1 W^T D^-1, and det C det D.

    Args:
        loc: (*, n), the mean.
        cov_factor: (*, n, rank), W.
        cov_diag: (*, n), the diagonal of D.
        validate_args: as in Distribution.

    Raises:
        ValueError: a parameter has too few dims, or sizes do not fit.

    Example:
        >>> D = torch.distributions
        >>> D.LowRankMultivariateNormal(torch.zeros(2), torch.ones(2, 1), torch.ones(2)).variance
        tensor([2., 2.])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    # These have the batch dims that were given, and no more.
    _kept = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")
    loc: Tensor
    cov_factor: Tensor
    cov_diag: Tensor
    _unbroadcasted_cov_factor: Tensor
    _unbroadcasted_cov_diag: Tensor

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1 or cov_factor.dim() < 2:
            raise ValueError(
                "LowRankMultivariateNormal: loc must be at least one-dimensional and cov_factor "
                "at least two-dimensional."
            )
        n = loc.shape[-1]
        if cov_factor.shape[-2] != n or cov_diag.dim() < 1 or cov_diag.shape[-1] != n:
            raise ValueError(
                f"LowRankMultivariateNormal: for loc of size {n}, cov_factor must be a batch of "
                f"({n}, rank) and cov_diag of ({n},), but they are {tuple(cov_factor.shape)} and "
                f"{tuple(cov_diag.shape)}."
            )
        batch_shape = rl.broadcast_shapes(
            loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]
        )
        self.loc = loc.expand(*batch_shape, -1)
        self.cov_factor = cov_factor.expand(*batch_shape, -1, -1)
        self.cov_diag = cov_diag.expand(*batch_shape, -1)
        super().__init__(batch_shape, loc.shape[-1:], validate_args)
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        weighed = cov_factor.mT @ (cov_factor / cov_diag.unsqueeze(-1))
        self._capacitance_tril = rl.linalg.cholesky(weighed + identity_like(weighed))

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        variance = self._unbroadcasted_cov_factor.square().sum(-1) + self._unbroadcasted_cov_diag
        return variance.expand(self._batch_shape + self._event_shape)

    def _wide(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + matrix.shape[-2:])

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """W W^T + D."""
        factor = self._unbroadcasted_cov_factor
        return self._wide(factor @ factor.mT + self._unbroadcasted_cov_diag.diag_embed())

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of covariance_matrix."""
        # D^(1/2) times the factor of D^(-1/2) W W^T D^(-1/2) + I, whose scale is about 1.
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        scaled = scaled @ scaled.mT
        return self._wide(root * rl.linalg.cholesky(scaled + identity_like(scaled)))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of covariance_matrix."""
        diag = self._unbroadcasted_cov_diag
        scaled = (self._unbroadcasted_cov_factor / diag.unsqueeze(-1)).mT
        tril = self._capacitance_tril.expand(*scaled.shape[:-2], -1, -1)
        part = rl.linalg.solve_triangular(tril, scaled, upper=False)
        return self._wide(diag.reciprocal().diag_embed() - part.mT @ part)

    def rsample(self, sample_shape: Shape = EMPTY) -> Tensor:
        shape = self._extended_shape(sample_shape)
        along = standard_normal((*shape[:-1], self.cov_factor.shape[-1]), self.loc)
        each = standard_normal(shape, self.loc)
        moved = times_vector(self._unbroadcasted_cov_factor, along)
        return self.loc + moved + self._unbroadcasted_cov_diag.sqrt() * each

    def _mahalanobis(self, difference: Tensor) -> Tensor:
        """difference^T covariance^-1 difference, by Woodbury's identity."""
        scaled = difference / self._unbroadcasted_cov_diag
        along = times_vector(self._unbroadcasted_cov_factor.mT, scaled)
        return (difference * scaled).sum(-1) - mahalanobis(self._capacitance_tril, along)

    @property
    def _log_det(self) -> Tensor:
        return 2 * log_diagonal(self._capacitance_tril) + (
            self._unbroadcasted_cov_diag.log().sum(-1)
        )

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        norm = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (norm + self._log_det + self._mahalanobis(value - self.loc))

    def entropy(self) -> Tensor:
        each = 1.0 + math.log(2 * math.pi)
        entropy = 0.5 * (self._event_shape[0] * each + self._log_det)
        return entropy.expand(self._batch_shape)
