"""Categorical distributions of one-hot vectors."""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.categorical import VectorChances
from rushlight.distributions.utils import EMPTY, Shape
from rushlight.nn import functional as F

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(VectorChances):
    """Vectors of K - 1 zeros and a 1, with the probabilities of its places.

    Args:
        probs: (*, K) weights, which are divided by their sum.
        logits: (*, K) logarithms of weights, instead of probs.
        validate_args: as in Distribution.

    Raises:
        ValueError: both or neither of probs and logits are given, or they have no dim.

    Example:
        >>> torch.distributions.OneHotCategorical(torch.tensor([0.0, 1.0])).sample()
        tensor([0., 1.])
    """

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._adopt_chances(probs, logits, validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._one_hot(self._param.argmax(-1))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _one_hot(self, index: Tensor) -> Tensor:
        return F.one_hot(index, self._num_events).to(self._param)

    def sample(self, sample_shape: Shape = EMPTY) -> Tensor:
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._num_events
        values = rl.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.view(n, *[1] * len(self._batch_shape), n)
        return values.expand(n, *self._batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical with samples whose gradient is that of probs.

    Source: Bengio et al., Estimating or propagating gradients through stochastic neurons for
    conditional computation, 2013.

    Args:
        probs: (*, K) weights, which are divided by their sum.
        logits: (*, K) logarithms of weights, instead of probs.
        validate_args: as in Distribution.

    Example:
        >>> logits = torch.zeros(3, requires_grad=True)
        >>> torch.distributions.OneHotCategoricalStraightThrough(logits=logits).rsample().sum()
        tensor(1., grad_fn=<SumBackward0>)
    """

    has_rsample = True

    def rsample(self, sample_shape: Shape = EMPTY) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
