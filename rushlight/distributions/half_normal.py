"""The half-normal distribution."""

from __future__ import annotations

import math

from rushlight import Tensor
from rushlight.distributions._folded import Folded
from rushlight.distributions.normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Folded):
    """|x|, where x is of a Normal(0, scale).

    Args:
        scale: the standard deviation of x.
        validate_args: as in Distribution.

    Example:
        >>> torch.distributions.HalfNormal(1.0).mean
        tensor(0.7979)
    """

    _base = Normal

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)
