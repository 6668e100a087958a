"""The Cauchy distribution."""

from __future__ import annotations

import math

from rushlight import Size, Tensor
from rushlight.distributions._location_scale import LocationScale

__all__ = ["Cauchy"]


class Cauchy(LocationScale):
    """The Cauchy distribution, of density 1 / (pi scale (1 + ((x - loc) / scale)^2)).

    It is the ratio of two independent normal numbers, and has no mean, and infinite variance.

    Args:
        loc: the median and mode.
        scale: half the distance of the quartiles.
        validate_args: as in Distribution.

    Example:
        >>> torch.distributions.Cauchy(0.0, 1.0).cdf(torch.tensor(1.0))
        tensor(0.7500)
    """

    _standard_entropy = math.log(4 * math.pi)

    @property
    def mean(self) -> Tensor:
        return self.loc.new_full(self._extended_shape(), math.nan)

    @property
    def variance(self) -> Tensor:
        return self.loc.new_full(self._extended_shape(), math.inf)

    def _standard_sample(self, shape: Size) -> Tensor:
        return self.loc.new_empty(shape).cauchy_()

    def _standard_log_prob(self, z: Tensor) -> Tensor:
        return -math.log(math.pi) - z.square().log1p()

    def _standard_cdf(self, z: Tensor) -> Tensor:
        return z.atan() / math.pi + 0.5

    def _standard_icdf(self, p: Tensor) -> Tensor:
        return (math.pi * (p - 0.5)).tan()
