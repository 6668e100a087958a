"""The half-Cauchy distribution."""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions._folded import Folded
from rushlight.distributions.cauchy import Cauchy

__all__ = ["HalfCauchy"]


class HalfCauchy(Folded):
    """|x|, where x is of a Cauchy(0, scale).

    Args:
        scale: the median.
        validate_args: as in Distribution.

    Example:
        >>> torch.distributions.HalfCauchy(1.0).cdf(torch.tensor(1.0))
        tensor(0.5000)
    """

    _base = Cauchy

    @property
    def mean(self) -> Tensor:
        return rl.full_like(self.scale, math.inf)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance
