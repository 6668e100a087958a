"""The geometric distribution."""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions._chances import BinaryChances
from rushlight.distributions.utils import EMPTY, Parameter, Shape
from rushlight.nn import functional as F

__all__ = ["Geometric"]


class Geometric(BinaryChances):
    """The number of failures before the first success: k with probability (1 - probs)^k probs.

    Tensor.geometric_ counts the tries, one more.

    Args:
        probs: the probability of success, in (0, 1].
        logits: its log odds, instead of probs.
        validate_args: as in Distribution.

    Raises:
        ValueError: both or neither of probs and logits are given, or probs has zeros.

    Example:
        >>> torch.distributions.Geometric(torch.tensor([0.25])).mean
        tensor([3.])
    """

    support = constraints.nonnegative_integer

    def __init__(
        self,
        probs: Parameter | None = None,
        logits: Parameter | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._adopt_chances(probs, logits, validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            raise ValueError(
                "Geometric: expected parameter probs to be positive, but found invalid values:\n"
                f"{self.probs}"
            )

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return rl.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Shape = EMPTY) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with rl.no_grad():
            waits = self._param.new_empty(shape).exponential_()
            return (waits / -(-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return rl.special.xlog1py(value, -self.probs) + self.probs.log()

    def entropy(self) -> Tensor:
        cross = F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return cross / self.probs
