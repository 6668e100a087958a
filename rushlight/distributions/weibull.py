"""The Weibull distribution."""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.exponential import Exponential
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.transforms import AffineTransform, PowerTransform
from rushlight.distributions.utils import Parameter, broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """Positive numbers, which exceed x with probability exp(-(x / scale)^concentration).

    Args:
        scale: their size.
        concentration: the shape.
        validate_args: as in Distribution.

    Example:
        >>> torch.distributions.Weibull(2.0, 1.0).mean
        tensor(2.)
    """

    arg_constraints = {
        "scale": constraints.positive,
        "concentration": constraints.positive,
    }
    support = constraints.positive
    scale: Tensor
    concentration: Tensor

    def __init__(
        self, scale: Parameter, concentration: Parameter, validate_args: bool | None = None
    ) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(rl.ones_like(self.scale), validate_args=False)
        chain = [
            PowerTransform(self.concentration.reciprocal()),
            AffineTransform(0.0, self.scale),
        ]
        super().__init__(base, chain, validate_args=validate_args)

    def _log_moment(self, n: int) -> Tensor:
        """The logarithm of the mean of (x / scale)^n."""
        return (1 + n / self.concentration).lgamma()

    @property
    def mean(self) -> Tensor:
        return self.scale * self._log_moment(1).exp()

    @property
    def mode(self) -> Tensor:
        a = self.concentration
        return self.scale * ((a - 1).clamp(min=0) / a).pow(a.reciprocal())

    @property
    def variance(self) -> Tensor:
        spread = self._log_moment(2).exp() - (2 * self._log_moment(1)).exp()
        return self.scale.square() * spread

    def entropy(self) -> Tensor:
        a = self.concentration
        return euler_constant * (1 - a.reciprocal()) + (self.scale / a).log() + 1
