"""The Bernoulli distribution."""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions._chances import BinaryChances
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.utils import EMPTY, Parameter, Shape, broadcast_all
from rushlight.nn import functional as F

__all__ = ["Bernoulli"]


class Bernoulli(BinaryChances, ExponentialFamily):
    """1 with probability probs, else 0.

    Args:
        probs: the probability of 1.
        logits: its log odds, instead of probs.
        validate_args: as in Distribution.

    Raises:
        ValueError: both or neither of probs and logits are given.

    Example:
        >>> torch.distributions.Bernoulli(torch.tensor([0.25])).log_prob(torch.tensor([1.0]))
        tensor([-1.3863])
    """

    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Parameter | None = None,
        logits: Parameter | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._adopt_chances(probs, logits, validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        probs = self.probs
        return rl.where(probs == 0.5, math.nan, (probs > 0.5).to(probs))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = EMPTY) -> Tensor:
        probs = self.probs.detach()
        return rl.bernoulli(probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = rl.arange(2, dtype=self._param.dtype, device=self._param.device)
        return self._enumerated(values, expand)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return F.softplus(x)
