"""Relaxed Bernoulli distributions: numbers in (0, 1) that are nearly 0 or 1, with gradients.

Source: Maddison, Mnih and Teh, The concrete distribution, 2017; Jang, Gu and Poole, Categorical
reparameterization with Gumbel-softmax, 2017.
"""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions._chances import BinaryChances
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.transforms import SigmoidTransform
from rushlight.distributions.utils import EMPTY, Parameter, Shape, open_uniform
from rushlight.nn import functional as F

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(BinaryChances):
    """The log odds of a RelaxedBernoulli: (logits + a logistic number) / temperature.

    Args:
        temperature: how soft, a scalar; 0 is the Bernoulli distribution.
        probs: the probability of 1.
        logits: its log odds, instead of probs.
        validate_args: as in Distribution.

    Raises:
        ValueError: both or neither of probs and logits are given.

    Example:
        >>> from rushlight.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
        >>> soft = LogitRelaxedBernoulli(torch.tensor(2.0), torch.tensor([0.5]))
        >>> soft.log_prob(torch.zeros(1))
        tensor([-0.6931])
    """

    support = constraints.real
    has_rsample = True
    temperature: Tensor
    _kept = ("temperature",)

    def __init__(
        self,
        temperature: Tensor,
        probs: Parameter | None = None,
        logits: Parameter | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._adopt_chances(probs, logits, validate_args)

    def rsample(self, sample_shape: Shape = EMPTY) -> Tensor:
        u = open_uniform(self._extended_shape(sample_shape), self._param)
        return (u.log() - (-u).log1p() + self.logits) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logistic = self.logits - value * self.temperature
        return rl.as_tensor(self.temperature).log() + logistic - 2 * F.softplus(logistic)


class RelaxedBernoulli(TransformedDistribution):
    """Numbers in (0, 1), through which gradients flow, that are nearly Bernoulli numbers.

    Args:
        temperature: how soft, a scalar; 0 is the Bernoulli distribution.
        probs: the probability of 1.
        logits: its log odds, instead of probs.
        validate_args: as in Distribution.

    Raises:
        ValueError: both or neither of probs and logits are given.

    Example:
        >>> soft = torch.distributions.RelaxedBernoulli(torch.tensor(2.0), torch.tensor([0.5]))
        >>> soft.rsample().shape
        torch.Size([1])
    """

    arg_constraints = BinaryChances.arg_constraints
    support = constraints.unit_interval
    has_rsample = True
    base_dist: LogitRelaxedBernoulli

    def __init__(
        self,
        temperature: Tensor,
        probs: Parameter | None = None,
        logits: Parameter | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Tensor:
        """How soft it is."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The log odds of 1."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probability of 1."""
        return self.base_dist.probs
