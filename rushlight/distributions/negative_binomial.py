"""The negative binomial distribution."""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions._chances import BinaryChances
from rushlight.distributions.utils import EMPTY, Parameter, Shape
from rushlight.nn import functional as F

__all__ = ["NegativeBinomial"]


class NegativeBinomial(BinaryChances):
    """The number of successes before total_count failures.

    Args:
        total_count: the failures to wait for, which need not be an integer.
        probs: the probability of success in each try, in [0, 1).
        logits: its log odds, instead of probs.
        validate_args: as in Distribution.

    Raises:
        ValueError: both or neither of probs and logits are given.

    Example:
        >>> torch.distributions.NegativeBinomial(3.0, torch.tensor([0.5])).mean
        tensor([3.])
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    total_count: Tensor

    def __init__(
        self,
        total_count: Parameter,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._adopt_chances(probs, logits, validate_args, total_count=total_count)
        self.total_count = self.total_count.to(self._param.dtype)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Shape = EMPTY) -> Tensor:
        with rl.no_grad():
            count = self.total_count.expand(self._extended_shape(sample_shape))
            return rl.poisson(rl._standard_gamma(count) * self.logits.exp())

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        log_chances = n * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        log_norm = (1 + value).lgamma() + n.lgamma() - (n + value).lgamma()
        # No failures to wait for, no successes: lgamma is infinite twice.
        return log_chances - rl.where(n + value == 0, 0.0, log_norm)
