"""Transforms of single numbers.

transforms.py has the names; import them from there.
"""

from __future__ import annotations

import math
from typing import Any

import rushlight as rl
from rushlight import Size, Tensor
from rushlight.distributions import constraints
from rushlight.distributions._transform_base import ParameterFree, Transform, widened
from rushlight.distributions.constraints import Constraint
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import lazy_property, sum_rightmost
from rushlight.nn import functional as F


class _Increasing(ParameterFree):
    """A bijection of the real line on an interval."""

    domain = constraints.real
    bijective = True
    sign = 1


class ExpTransform(_Increasing):
    """y = exp(x)."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class SigmoidTransform(_Increasing):
    """y = 1 / (1 + exp(-x)), between the numbers next to 0 and 1."""

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        limits = rl.finfo(y.dtype)
        y = y.clamp(limits.tiny, 1.0 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x) - F.softplus(x)


def clipped_sigmoid(x: Tensor) -> Tensor:
    """Returns sigmoid(x), at least the least normal number and less than 1."""
    limits = rl.finfo(x.dtype)
    return x.sigmoid().clamp(limits.tiny, 1.0 - limits.eps)


class SoftplusTransform(_Increasing):
    """y = log(1 + exp(x)); for x above 20, x itself."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return F.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x)


class TanhTransform(_Increasing):
    """y = tanh(x).

    The same as an affine transform of a sigmoid, with more digits; inverting values near the ends
    is inexact, for which there is the cache.
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return rl.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # log(1 - tanh(x)^2) without a difference of nearly equal numbers.
        return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))


class AbsTransform(ParameterFree):
    """y = |x|, whose inverse takes the positive x."""

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


def _equal(a: Tensor | float, b: Tensor | float) -> bool:
    return (
        bool(a == b)
        if not (isinstance(a, Tensor) or isinstance(b, Tensor))
        else bool(rl.as_tensor(a == b).all())
    )


class PowerTransform(Transform):
    """y = x ** exponent.

    Args:
        exponent: a number or a tensor that broadcasts with x.
        cache_size: as in Transform.

    Example:
        >>> torch.distributions.PowerTransform(torch.tensor(2.0))(torch.tensor([3.0]))
        tensor([9.])
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = rl.as_tensor(exponent)

    @lazy_property
    def sign(self) -> int | Tensor:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and _equal(self.exponent, other.exponent)

    __hash__ = None

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Size) -> Size:
        return rl.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


class AffineTransform(Transform):
    """y = loc + scale * x.

    Args:
        loc: a number or a tensor.
        scale: a number or a tensor.
        event_dim: how many last dims make up one value.
        cache_size: as in Transform.

    Example:
        >>> torch.distributions.AffineTransform(1.0, 2.0)(torch.ones(2))
        tensor([3., 3.])
    """

    bijective = True

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        event_dim: int = 0,
        cache_size: int = 0,
    ) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        return widened(constraints.real, self._event_dim)

    codomain = domain

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AffineTransform)
            and _equal(self.loc, other.loc)
            and _equal(self.scale, other.scale)
        )

    __hash__ = None

    @property
    def sign(self) -> int | Tensor:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        scale = self.scale
        if isinstance(scale, Tensor):
            size = scale.abs().log().expand(rl.broadcast_shapes(scale.shape, x.shape))
        else:
            size = rl.full_like(x, math.log(abs(scale)))
        return sum_rightmost(size, self._event_dim)

    def forward_shape(self, shape: Size) -> Size:
        shapes = (p.shape for p in (self.loc, self.scale) if isinstance(p, Tensor))
        return rl.broadcast_shapes(shape, *shapes)

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """y = distribution.cdf(x).

    Args:
        distribution: of one number each, with cdf and icdf.
        cache_size: as in Transform.

    Example:
        >>> D = torch.distributions
        >>> D.CumulativeDistributionTransform(D.Normal(0.0, 1.0))(torch.zeros(1))
        tensor([0.5000])
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Constraint | None:
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)
