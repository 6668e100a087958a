"""The von Mises distribution."""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import EMPTY, Shape, uniform

__all__ = ["VonMises"]


class VonMises(Distribution):
    """Angles, of a density proportional to exp(concentration cos(x - loc)).

    Args:
        loc: the angle in the middle.
        concentration: how close to it; about one over the variance if large.
        validate_args: as in Distribution.

    Example:
        >>> at = torch.distributions.VonMises(torch.tensor(0.0), torch.tensor(1.0))
        >>> at.log_prob(torch.tensor(0.0))
        tensor(-1.0738)
    """

    arg_constraints = {
        "loc": constraints.real,
        "concentration": constraints.positive,
    }
    support = constraints.real
    loc: Tensor
    concentration: Tensor

    def __init__(
        self, loc: Tensor, concentration: Tensor, validate_args: bool | None = None
    ) -> None:
        self._adopt(validate_args, loc=loc, concentration=concentration)

    @property
    def mean(self) -> Tensor:
        """The middle angle."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The circular variance: 1 minus the mean of cos(x - loc)."""
        k = self.concentration
        return 1 - rl.special.i1e(k) / rl.special.i0e(k)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        # i0e(k) = exp(-k) I0(k), and cos(u) - 1 = -2 sin(u / 2)^2.
        k = self.concentration
        bend = -2 * ((value - self.loc) / 2).sin().square()
        return k * bend - math.log(2 * math.pi) - rl.special.i0e(k).log()

    def sample(self, sample_shape: Shape = EMPTY) -> Tensor:
        """Returns angles in [-pi, pi).

        By rejection from a wrapped Cauchy distribution: Best and Fisher, Efficient simulation of
        the von Mises distribution, 1979.
        """
        shape = self._extended_shape(sample_shape)
        with rl.no_grad():
            loc, k = self.loc.double(), self.concentration.double()
            tau = 1 + (1 + 4 * k.square()).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            # For small k, where rho loses its digits, the first terms of its series.
            r = rl.where(k < 1e-5, 1 / k + k, (1 + rho.square()) / (2 * rho))
            angle, done = loc.new_zeros(shape), loc.new_zeros(shape, dtype=rl.bool)
            while not done.all():
                turn, height, side = uniform((3, *shape), loc).unbind()
                z = (math.pi * turn).cos()
                cosine = (1 + r * z) / (r + z)
                c = k * (r - cosine)
                accepted = (c * (2 - c) > height) | ((c / height).log() + 1 - c >= 0)
                drawn = (side - 0.5).sign() * cosine.clamp(-1, 1).acos()
                angle = rl.where(accepted & ~done, drawn, angle)
                done = done | accepted
            wrapped = (angle + math.pi + loc) % (2 * math.pi) - math.pi
            return wrapped.to(self.loc.dtype)
