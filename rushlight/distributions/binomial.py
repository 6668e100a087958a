"""The binomial distribution."""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions._chances import BinaryChances
from rushlight.distributions.utils import EMPTY, Shape
from rushlight.nn import functional as F

__all__ = ["Binomial"]


class Binomial(BinaryChances):
    """The number of successes in total_count tries.

    Args:
        total_count: how many tries.
        probs: the probability of success in each.
        logits: its log odds, instead of probs.
        validate_args: as in Distribution.

    Raises:
        ValueError: both or neither of probs and logits are given.

    Example:
        >>> torch.distributions.Binomial(4, torch.tensor([0.25])).mean
        tensor([1.])
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        **BinaryChances.arg_constraints,
    }
    has_enumerate_support = True
    total_count: Tensor

    def __init__(
        self,
        total_count: Tensor | int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._adopt_chances(probs, logits, validate_args, total_count=total_count)
        self.total_count = self.total_count.to(self._param.dtype)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return rl.minimum(((self.total_count + 1) * self.probs).floor(), self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = EMPTY) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with rl.no_grad():
            return rl.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        # log(p^k (1-p)^(n-k)) = k logits - n log(1 + exp(logits))
        return ways + value * self.logits - n * F.softplus(self.logits)

    def _same_count(self, what: str) -> int:
        """The total_count of the whole batch."""
        count = int(self.total_count.max())
        if not (self.total_count == count).all():
            raise NotImplementedError(
                f"Binomial: inhomogeneous total_count is not supported by {what}."
            )
        return count

    def entropy(self) -> Tensor:
        self._same_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._same_count("enumerate_support")
        values = rl.arange(1 + count, dtype=self._param.dtype, device=self._param.device)
        return self._enumerated(values, expand)
