"""The normal distribution."""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import Size, Tensor
from rushlight.distributions._location_scale import LocationScale
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.utils import standard_normal

__all__ = ["Normal"]


class Normal(LocationScale, ExponentialFamily):
    """The normal distribution, of density exp(-((x - loc) / scale)^2 / 2) / (scale sqrt(2 pi)).

    Args:
        loc: the mean.
        scale: the standard deviation.
        validate_args: as in Distribution.

    Example:
        >>> torch.distributions.Normal(0.0, 1.0).log_prob(torch.tensor(0.0))
        tensor(-0.9189)
    """

    _standard_entropy = 0.5 + 0.5 * math.log(2 * math.pi)
    _mean_carrier_measure = 0

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale.square()

    def _standard_sample(self, shape: Size) -> Tensor:
        return standard_normal(shape, self.loc)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        # In fewer passes than by _standard_log_prob.
        z = (value - self.loc) / self.scale
        norm = -0.5 * math.log(2 * math.pi) - self.scale.log()
        return rl.addcmul(norm, z, z, value=-0.5)

    def _standard_cdf(self, z: Tensor) -> Tensor:
        return rl.special.ndtr(z)

    def _standard_icdf(self, p: Tensor) -> Tensor:
        return math.sqrt(2) * rl.erfinv(2 * p - 1)

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        precision = self.scale.square().reciprocal()
        return self.loc * precision, -0.5 * precision

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return -0.25 * x.square() / y + 0.5 * (-math.pi / y).log()
