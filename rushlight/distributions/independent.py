"""Distributions with batch dims taken into their values."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from rushlight import Size, Tensor
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import EMPTY, Shape, sum_rightmost

__all__ = ["Independent"]

D = TypeVar("D", bound=Distribution)


class Independent(Distribution, Generic[D]):
    """A distribution whose last batch dims are part of one value, with independent elements.

    log_prob and entropy sum over them.

    Args:
        base_distribution: the distribution.
        reinterpreted_batch_ndims: how many batch dims become event dims.
        validate_args: as in Distribution.

    Raises:
        ValueError: base_distribution has fewer batch dims.

    Example:
        >>> D = torch.distributions
        >>> normal = D.Independent(D.Normal(torch.zeros(2, 3), 1.0), 1)
        >>> normal.batch_shape, normal.event_shape
        (torch.Size([2]), torch.Size([3]))
    """

    arg_constraints = {}

    def __init__(
        self,
        base_distribution: D,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        batch_shape = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(batch_shape):
            raise ValueError(
                "Independent: expected reinterpreted_batch_ndims <= "
                f"len(base_distribution.batch_shape), but {reinterpreted_batch_ndims} > "
                f"{len(batch_shape)}."
            )
        cut = len(batch_shape) - reinterpreted_batch_ndims
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(
            batch_shape[:cut], batch_shape[cut:] + base_distribution.event_shape, validate_args
        )

    def _expand_parameters(self, new: Any, batch_shape: Size) -> None:
        taken = self.event_shape[: self.reinterpreted_batch_ndims]
        new.base_dist = self.base_dist.expand(batch_shape + taken)
        new.reinterpreted_batch_ndims = self.reinterpreted_batch_ndims

    @property
    def has_rsample(self) -> bool:
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        support = self.base_dist.support
        dims = self.reinterpreted_batch_ndims
        return constraints.independent(support, dims) if dims else support

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Shape = EMPTY) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Shape = EMPTY) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError(
                "Independent: enumeration over a cartesian product is not implemented."
            )
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
