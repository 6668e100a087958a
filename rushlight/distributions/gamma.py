"""The gamma distribution."""

from __future__ import annotations

import rushlight as rl
from rushlight import Generator, Tensor
from rushlight.distributions import constraints
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.utils import EMPTY, Parameter, Shape

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """The gamma distribution, of density rate^a x^(a - 1) exp(-rate x) / gamma(a).

    Args:
        concentration: a, the shape.
        rate: one over the scale.
        validate_args: as in Distribution.

    Example:
        >>> torch.distributions.Gamma(2.0, 4.0).mean
        tensor(0.5000)
    """

    arg_constraints = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    concentration: Tensor
    rate: Tensor

    def __init__(
        self, concentration: Parameter, rate: Parameter, validate_args: bool | None = None
    ) -> None:
        self._adopt(validate_args, concentration=concentration, rate=rate)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.square()

    def sample(self, sample_shape: Shape = EMPTY, *, generator: Generator | None = None) -> Tensor:
        with rl.no_grad():
            return self.rsample(sample_shape, generator=generator)

    def rsample(self, sample_shape: Shape = EMPTY, generator: Generator | None = None) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = rl._standard_gamma(self.concentration.expand(shape), generator) / self.rate
        return value.clamp(min=rl.finfo(value.dtype).tiny)

    def log_prob(self, value: Tensor | float) -> Tensor:
        if isinstance(value, int | float):
            value = self.rate.new_tensor(value)
        if self._validate_args:
            self._validate_sample(value)
        a, rate = self.concentration, self.rate
        return rl.xlogy(a, rate) + rl.xlogy(a - 1, value) - rate * value - a.lgamma()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return rl.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1.0 - a) * a.digamma()

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return (x + 1).lgamma() - (x + 1) * (-y).log()
