"""The generalized Pareto distribution."""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import EMPTY, Parameter, Shape, uniform

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """The tail of a distribution: x exceeds a value with probability (1 + c z)^(-1 / c).

    z is (value - loc) / scale and c the concentration. Concentration 0 is an Exponential, with
    probability exp(-z), -1 a Uniform, and a positive one with loc = scale / c a Pareto.

    Args:
        loc: the least value.
        scale: its size.
        concentration: how heavy the tail is.
        validate_args: as in Distribution.

    Example:
        >>> torch.distributions.GeneralizedPareto(0.0, 1.0, 0.5).cdf(torch.tensor(2.0))
        tensor(0.7500)
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True
    loc: Tensor
    scale: Tensor
    concentration: Tensor

    def __init__(
        self,
        loc: Parameter,
        scale: Parameter,
        concentration: Parameter,
        validate_args: bool | None = None,
    ) -> None:
        self._adopt(validate_args, loc=loc, scale=scale, concentration=concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, rl.where(self.concentration < 0, end, math.inf))

    def _split(self) -> tuple[Tensor, Tensor]:
        """Where concentration is about 0, and concentration, 1 there.

        There the first terms of a series stand in, which also have the gradient.
        """
        is_zero = self.concentration.abs() <= 1e-8
        return is_zero, rl.where(is_zero, 1.0, self.concentration)

    def _where_below(self, end: float, moment: Tensor) -> Tensor:
        """moment where concentration < end, elsewhere NaN."""
        return rl.where(self.concentration < end, moment, math.nan)

    @property
    def mean(self) -> Tensor:
        return self._where_below(1, self.loc + self.scale / (1 - self.concentration))

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        return self._where_below(0.5, self.scale.square() / ((1 - c).square() * (1 - 2 * c)))

    def rsample(self, sample_shape: Shape = EMPTY) -> Tensor:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        is_zero, c = self._split()
        power = rl.special.xlog1py(1 / c + 1, c * z)
        near = z + self.concentration * (z - z.square() / 2)
        return -self.scale.log() - rl.where(is_zero, near, power)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Returns the logarithm of the probability of what is above a value."""
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        is_zero, c = self._split()
        near = z - self.concentration * z.square() / 2
        return -rl.where(is_zero, near, (c * z).log1p() / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Returns the logarithm of cdf."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return -self.log_survival_function(value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        is_zero, c = self._split()
        waits = -(-value).log1p()
        near = waits + self.concentration * waits.square() / 2
        return self.loc + self.scale * rl.where(is_zero, near, (c * waits).expm1() / c)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
