"""The multinomial distribution."""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.binomial import Binomial
from rushlight.distributions.categorical import VectorChances
from rushlight.distributions.utils import EMPTY, Shape

__all__ = ["Multinomial"]


class Multinomial(VectorChances):
    """How often each of K categories is drawn in total_count draws.

    Args:
        total_count: the number of draws, one for the whole batch.
        probs: (*, K) weights, which are divided by their sum.
        logits: (*, K) logarithms of weights, instead of probs.
        validate_args: as in Distribution.

    Raises:
        NotImplementedError: total_count is not an int.
        ValueError: both or neither of probs and logits are given, or they have no dim, or
            total_count is negative.

    Example:
        >>> torch.distributions.Multinomial(4, torch.tensor([1.0, 3.0])).mean
        tensor([1., 3.])
    """

    total_count: int
    _kept = ("total_count",)

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError(
                "Multinomial: inhomogeneous total_count is not supported. Pass an int."
            )
        if total_count < 0:
            raise ValueError(f"Multinomial: total_count must be at least 0, but is {total_count}")
        self.total_count = total_count
        self._adopt_chances(probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = EMPTY) -> Tensor:
        drawn = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
        counts = self._param.new_zeros(self._extended_shape(sample_shape))
        return counts.scatter_add_(-1, drawn, rl.ones_like(drawn, dtype=counts.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        ways = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        # A category that was not drawn says nothing, even if it is impossible.
        terms = rl.where(value == 0, 0.0, value * self.logits)
        return ways + terms.sum(-1)

    def entropy(self) -> Tensor:
        n = self.total_count
        whole = n * self._categorical.entropy() - rl.lgamma(self._param.new_tensor(n + 1.0))
        # Each count alone is binomial, and log(count!) is zero for counts of 0.
        count = Binomial(n, self.probs, validate_args=False)
        values = count.enumerate_support(expand=False)[1:]
        weights = count.log_prob(values).exp() * (values + 1).lgamma()
        return whole + weights.sum((0, -1))
