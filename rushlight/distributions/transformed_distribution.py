"""Distributions of transformed numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rushlight as rl
from rushlight import Size, Tensor
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.independent import Independent
from rushlight.distributions.transforms import ComposeTransform, Transform
from rushlight.distributions.utils import EMPTY, Shape, sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of y = t(x), where x is of another distribution.

    log p(y) = log p(x) - log |det dy/dx|.

    Args:
        base_distribution: that of x.
        transforms: one transform or a list, the first of which is applied first.
        validate_args: as in Distribution.

    Raises:
        ValueError: transforms is neither, or takes values of more dims than x has.

    Example:
        >>> D = torch.distributions
        >>> logistic = D.TransformedDistribution(
        ...     D.Uniform(0.0, 1.0), [D.SigmoidTransform().inv, D.AffineTransform(1.0, 2.0)]
        ... )
        >>> logistic.cdf(torch.tensor(1.0))
        tensor(0.5000)
    """

    arg_constraints = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(self.transforms, list) or not all(
            isinstance(t, Transform) for t in self.transforms
        ):
            raise ValueError(
                "TransformedDistribution: transforms must be a Transform or a list, but was "
                f"{transforms}"
            )
        transform = ComposeTransform(self.transforms)
        taken = transform.domain.event_dim
        event_dim = len(base_distribution.event_shape)
        shape = base_distribution.batch_shape + base_distribution.event_shape
        if len(shape) < taken:
            raise ValueError(
                f"TransformedDistribution: base_distribution needs to have shape with size at "
                f"least {taken}, but got {shape}."
            )
        # The transforms' parameters may be of more batch dims than the base has.
        forward_shape = transform.forward_shape(shape)
        needed = transform.inverse_shape(forward_shape)
        if needed != shape:
            base_distribution = base_distribution.expand(needed[: len(needed) - event_dim])
        if taken > event_dim:
            base_distribution = Independent(base_distribution, taken - event_dim)
        self.base_dist = base_distribution
        given = transform.codomain.event_dim
        cut = len(forward_shape) - max(given, event_dim + given - taken)
        super().__init__(forward_shape[:cut], forward_shape[cut:], validate_args)

    def _expand_parameters(self, new: Any, batch_shape: Size) -> None:
        super()._expand_parameters(new, batch_shape)
        shape = batch_shape + self.event_shape
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        cut = len(shape) - len(self.base_dist.event_shape)
        new.base_dist = self.base_dist.expand(shape[:cut])
        new.transforms = self.transforms

    # Subclasses that know have attributes.
    if not TYPE_CHECKING:

        @property
        def has_rsample(self) -> bool:
            return self.base_dist.has_rsample

        @constraints.dependent_property(is_discrete=False)
        def support(self) -> constraints.Constraint | None:
            if not self.transforms:
                return self.base_dist.support
            support = self.transforms[-1].codomain
            extra = len(self.event_shape) - support.event_dim
            return constraints.independent(support, extra) if extra > 0 else support

    def sample(self, sample_shape: Shape = EMPTY) -> Tensor:
        with rl.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Shape = EMPTY) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def _forward(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        dims, jacobian, y = len(self.event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            term = transform.log_abs_det_jacobian(x, y)
            dims += transform.domain.event_dim - transform.codomain.event_dim
            jacobian = jacobian + sum_rightmost(term, dims - transform.domain.event_dim)
            y = x
        base = sum_rightmost(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))
        return base - jacobian

    def _turned(self, p: Tensor) -> Tensor:
        """p where the transforms increase, 1 - p where they decrease."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return p if isinstance(sign, int) and sign == 1 else sign * (p - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._turned(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._forward(self.base_dist.icdf(self._turned(value)))
