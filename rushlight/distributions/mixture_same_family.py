"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Size, Tensor
from rushlight.distributions import constraints
from rushlight.distributions.categorical import Categorical
from rushlight.distributions.constraints import MixtureSameFamilyConstraint
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import EMPTY, Shape

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """Values of one of K components, which a Categorical chooses.

    Args:
        mixture_distribution: chooses from K.
        component_distribution: the components, the last dim, of size K, of its batch.
        validate_args: as in Distribution.

    Raises:
        ValueError: they are no such distributions, or their shapes do not fit.

    Example:
        >>> D = torch.distributions
        >>> normals = D.Normal(torch.tensor([-1.0, 3.0]), 1.0)
        >>> D.MixtureSameFamily(D.Categorical(torch.ones(2)), normals).mean
        tensor(1.)
    """

    arg_constraints = {}
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                "MixtureSameFamily: the mixture distribution needs to be an instance of Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "MixtureSameFamily: the component distribution needs to be an instance of "
                "Distribution"
            )
        batch_shape = component_distribution.batch_shape[:-1]
        mixed_shape = mixture_distribution.batch_shape
        for size, other in zip(reversed(batch_shape), reversed(mixed_shape), strict=False):
            if size != other and size != 1 and other != 1:
                raise ValueError(
                    f"MixtureSameFamily: mixture_distribution.batch_shape ({mixed_shape}) is not "
                    f"compatible with component_distribution.batch_shape ({batch_shape})."
                )
        chosen_from = mixture_distribution.param_shape[-1]
        count = component_distribution.batch_shape[-1]
        if chosen_from != count:
            raise ValueError(
                f"MixtureSameFamily: mixture_distribution component ({chosen_from}) does not equal "
                f"component_distribution.batch_shape[-1] ({count})."
            )
        self._num_component = count
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(batch_shape, event_shape, validate_args)

    def _expand_parameters(self, new: Any, batch_shape: Size) -> None:
        count = self._num_component
        new._component_distribution = self._component_distribution.expand((*batch_shape, count))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component, new._event_ndims = count, self._event_ndims

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """What chooses the component."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    def _weights(self) -> Tensor:
        """The probabilities of the components, with ones for the event dims."""
        probs = self.mixture_distribution.probs
        return probs.reshape(*probs.shape, *[1] * self._event_ndims)

    def _mean_of(self, each: Tensor) -> Tensor:
        """The weighted sum over the components of (*, K, *event)."""
        return (self._weights() * each).sum(-1 - self._event_ndims)

    def _to_components(self, value: Tensor) -> Tensor:
        return value.unsqueeze(-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return self._mean_of(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        # Var(x) = E[Var(x | k)] + Var(E[x | k])
        means = self.component_distribution.mean
        apart = (means - self._to_components(self.mean)).square()
        return self._mean_of(self.component_distribution.variance) + self._mean_of(apart)

    def cdf(self, value: Tensor) -> Tensor:
        each = self.component_distribution.cdf(self._to_components(value))
        return (each * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        each = self.component_distribution.log_prob(self._to_components(value))
        return (each + rl.log_softmax(self.mixture_distribution.logits, -1)).logsumexp(-1)

    def sample(self, sample_shape: Shape = EMPTY) -> Tensor:
        with rl.no_grad():
            dim = -1 - self._event_ndims
            each = self.component_distribution.sample(sample_shape)  # (*, K, *event)
            chosen = self.mixture_distribution.expand(self.batch_shape).sample(sample_shape)
            chosen = chosen.reshape(*chosen.shape, *[1] * (self._event_ndims + 1))
            sizes = (*each.shape[:dim], 1, *self.event_shape)
            return each.gather(dim, chosen.expand(sizes)).squeeze(dim)

    def __repr__(self) -> str:
        return (
            f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
        )
