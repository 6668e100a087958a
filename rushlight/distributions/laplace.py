"""The Laplace distribution."""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import Size, Tensor
from rushlight.distributions._location_scale import LocationScale
from rushlight.distributions.utils import uniform

__all__ = ["Laplace"]


class Laplace(LocationScale):
    """The Laplace distribution, of density exp(-|x - loc| / scale) / (2 scale).

    Args:
        loc: the mean.
        scale: the mean distance from it.
        validate_args: as in Distribution.

    Example:
        >>> torch.distributions.Laplace(0.0, 1.0).entropy()
        tensor(1.6931)
    """

    _standard_entropy = 1 + math.log(2)

    @property
    def stddev(self) -> Tensor:
        return math.sqrt(2) * self.scale

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()

    def _standard_sample(self, shape: Size) -> Tensor:
        eps = rl.finfo(self.loc.dtype).eps
        u = uniform(shape, self.loc) * (2 - eps) + (eps - 1)  # (-1, 1)
        return -u.sign() * (-u.abs()).log1p()

    def _standard_log_prob(self, z: Tensor) -> Tensor:
        return -math.log(2) - z.abs()

    def _standard_cdf(self, z: Tensor) -> Tensor:
        return 0.5 - 0.5 * z.sign() * (-z.abs()).expm1()

    def _standard_icdf(self, p: Tensor) -> Tensor:
        u = p - 0.5
        return -u.sign() * (-2 * u.abs()).log1p()
