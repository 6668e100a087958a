"""What distributions of loc + scale * z share, where z is a standard number of the family."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Size, Tensor
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import EMPTY, Parameter, Shape


class LocationScale(Distribution):
    """loc + scale * z: a family says how z is drawn, and its density, cdf and entropy."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _standard_entropy: Any
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Parameter, scale: Parameter, validate_args: bool | None = None) -> None:
        self._adopt(validate_args, loc=loc, scale=scale)

    def _standard_sample(self, shape: Size) -> Tensor:
        raise NotImplementedError

    def _standard_log_prob(self, z: Tensor) -> Tensor:
        raise NotImplementedError

    def _standard_cdf(self, z: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self)} does not implement cdf")

    def _standard_icdf(self, p: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self)} does not implement icdf")

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    def rsample(self, sample_shape: Shape = EMPTY) -> Tensor:
        z = self._standard_sample(self._extended_shape(sample_shape))
        return rl.addcmul(self.loc, self.scale, z)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return self._standard_log_prob(z) - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._standard_cdf((value - self.loc) / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * self._standard_icdf(value)

    def entropy(self) -> Tensor:
        return self.scale.log() + self._standard_entropy
