"""The logistic-normal distribution."""

from __future__ import annotations

from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.independent import Independent
from rushlight.distributions.normal import Normal
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.transforms import StickBreakingTransform
from rushlight.distributions.utils import Parameter

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Vectors of K + 1 parts of 1, by StickBreakingTransform from K normal numbers.

    Args:
        loc: (*, K), the means.
        scale: (*, K), the standard deviations.
        validate_args: as in Distribution.

    Example:
        >>> torch.distributions.LogisticNormal(torch.zeros(3), torch.ones(3)).event_shape
        torch.Size([4])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    base_dist: Independent

    def __init__(self, loc: Parameter, scale: Parameter, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The means."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviations."""
        return self.base_dist.base_dist.scale
