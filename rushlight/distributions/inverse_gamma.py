"""The inverse gamma distribution."""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.gamma import Gamma
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.transforms import PowerTransform
from rushlight.distributions.utils import Parameter

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """1 / x, where x is of a Gamma(concentration, rate).

    Args:
        concentration: the shape of x.
        rate: that of x, and so the scale of 1 / x.
        validate_args: as in Distribution.

    Example:
        >>> torch.distributions.InverseGamma(3.0, 4.0).mean
        tensor(2.)
    """

    arg_constraints = Gamma.arg_constraints
    support = constraints.positive
    has_rsample = True
    base_dist: Gamma

    def __init__(
        self, concentration: Parameter, rate: Parameter, validate_args: bool | None = None
    ) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        invert = PowerTransform(-base.rate.new_ones(()))
        super().__init__(base, invert, validate_args=validate_args)

    @property
    def concentration(self) -> Tensor:
        """The shape of x."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The rate of x."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return rl.where(a > 1, self.rate / (a - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return rl.where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
