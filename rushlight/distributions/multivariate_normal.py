"""The multivariate normal distribution."""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions._covariance import (
    FORMS,
    CovarianceForms,
    _precision_to_scale_tril,
    log_diagonal,
    mahalanobis,
    times_vector,
)
from rushlight.distributions.distribution import Distribution as Distribution  # programs ask here
from rushlight.distributions.utils import EMPTY, Shape, standard_normal

__all__ = ["MultivariateNormal", "_batch_mahalanobis", "_batch_mv", "_precision_to_scale_tril"]

# The names by which programs ask for them here.
_batch_mahalanobis = mahalanobis
_batch_mv = times_vector


class MultivariateNormal(CovarianceForms):
    """Normal vectors: loc + scale_tril @ z, with z of independent standard normal numbers.

    scale_tril is what it computes with; the other forms cost a Cholesky decomposition.

    Args:
        loc: (*, n), the mean.
        covariance_matrix: (*, n, n), positive definite.
        precision_matrix: its inverse, instead of it.
        scale_tril: its Cholesky factor, instead of it.
        validate_args: as in Distribution.

    Raises:
        ValueError: not one of the three is given, or a parameter has another shape.

    Example:
        >>> torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2)).entropy()
        tensor(2.8379)
    """

    arg_constraints = {"loc": constraints.real_vector, **FORMS}
    support = constraints.real_vector
    has_rsample = True
    loc: Tensor

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("MultivariateNormal: loc must be at least one-dimensional.")
        name, value = self._given_form(
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        n = loc.shape[-1]
        if value.shape[-2:] != (n, n):
            raise ValueError(
                f"MultivariateNormal: for loc of size {n}, {name} must be a batch of ({n}, {n}), "
                f"but is {tuple(value.shape)}."
            )
        batch_shape = rl.broadcast_shapes(value.shape[:-2], loc.shape[:-1])
        self.loc = loc.expand(*batch_shape, -1)
        setattr(self, name, value.expand(*batch_shape, -1, -1))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args)
        self._factorize(name, value)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        variance = self._unbroadcasted_scale_tril.square().sum(-1)
        return variance.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Shape = EMPTY) -> Tensor:
        z = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + times_vector(self._unbroadcasted_scale_tril, z)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        norm = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (norm + distance) - log_diagonal(self._unbroadcasted_scale_tril)

    def entropy(self) -> Tensor:
        each = 0.5 * (1.0 + math.log(2 * math.pi))
        entropy = self._event_shape[0] * each + log_diagonal(self._unbroadcasted_scale_tril)
        return entropy.expand(self._batch_shape)
