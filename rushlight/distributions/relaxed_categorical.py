"""Relaxed categorical distributions: vectors that are nearly one-hot, with gradients.

Source: Maddison, Mnih and Teh, The concrete distribution, 2017; Jang, Gu and Poole, Categorical
reparameterization with Gumbel-softmax, 2017.
"""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions._chances import CategoryChances
from rushlight.distributions.categorical import VectorChances
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.transforms import ExpTransform
from rushlight.distributions.utils import EMPTY, Shape, open_uniform

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(VectorChances):
    """The logarithms of a RelaxedOneHotCategorical.

    Args:
        temperature: how soft, a scalar; 0 is the OneHotCategorical distribution.
        probs: (*, K) weights, which are divided by their sum.
        logits: (*, K) logarithms of weights, instead of probs.
        validate_args: as in Distribution.

    Raises:
        ValueError: both or neither of probs and logits are given, or they have no dim.

    Example:
        >>> from rushlight.distributions.relaxed_categorical import ExpRelaxedCategorical
        >>> soft = ExpRelaxedCategorical(torch.tensor(1.0), torch.tensor([0.5, 0.5]))
        >>> torch.allclose(soft.rsample().exp().sum(), torch.tensor(1.0))
        True
    """

    support = constraints.real_vector  # the vectors with logsumexp 0 of these
    has_rsample = True
    temperature: Tensor
    _kept = ("temperature",)

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._adopt_chances(probs, logits, validate_args)

    def rsample(self, sample_shape: Shape = EMPTY) -> Tensor:
        u = open_uniform(self._extended_shape(sample_shape), self._param)
        gumbels = -(-u.log()).log()
        return rl.log_softmax((self.logits + gumbels) / self.temperature, -1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        k = self._num_events
        norm = math.lgamma(k) + (k - 1) * rl.as_tensor(self.temperature).log()
        scores = rl.log_softmax(self.logits - value * self.temperature, -1)
        return scores.sum(-1) + norm


class RelaxedOneHotCategorical(TransformedDistribution):
    """Vectors of sum 1, through which gradients flow, that are nearly one-hot.

    Args:
        temperature: how soft, a scalar; 0 is the OneHotCategorical distribution.
        probs: (*, K) weights, which are divided by their sum.
        logits: (*, K) logarithms of weights, instead of probs.
        validate_args: as in Distribution.

    Raises:
        ValueError: both or neither of probs and logits are given, or they have no dim.

    Example:
        >>> soft = torch.distributions.RelaxedOneHotCategorical(torch.tensor(0.5), torch.ones(3))
        >>> soft.rsample().shape
        torch.Size([3])
    """

    arg_constraints = CategoryChances.arg_constraints
    support = constraints.simplex
    has_rsample = True
    base_dist: ExpRelaxedCategorical

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Tensor:
        """How soft it is."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The logarithms of probs."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities of the categories."""
        return self.base_dist.probs
