"""What the upper halves of distributions around 0 share."""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions._location_scale import LocationScale
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.transforms import AbsTransform
from rushlight.distributions.utils import Parameter, broadcast_all


class Folded(TransformedDistribution):
    """|x|, where x is of a symmetric distribution with loc 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    base_dist: LocationScale
    _base: type[LocationScale]
    scale: Tensor

    def __init__(self, scale: Parameter, validate_args: bool | None = None) -> None:
        (scale,) = broadcast_all(scale)
        self.scale = scale
        base = self._base(rl.zeros_like(scale), scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args)

    @property
    def mode(self) -> Tensor:
        return rl.zeros_like(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return rl.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
