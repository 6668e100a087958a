"""The categorical distribution."""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions._chances import CategoryChances
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import EMPTY, Shape

__all__ = ["Categorical"]


class Categorical(CategoryChances):
    """An index from 0 to K - 1, with probabilities in the last dim.

    Args:
        probs: (*, K) weights, which are divided by their sum.
        logits: (*, K) logarithms of weights, instead of probs.
        validate_args: as in Distribution.

    Raises:
        ValueError: both or neither of probs and logits are given, or they have no dim.

    Example:
        >>> policy = torch.distributions.Categorical(torch.tensor([1.0, 3.0]))
        >>> policy.log_prob(torch.tensor([0, 1])).exp()
        tensor([0.2500, 0.7500])
    """

    has_enumerate_support = True

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._adopt_chances(probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return self._param.new_full(self._extended_shape(), math.nan)

    @property
    def mode(self) -> Tensor:
        return self._param.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return self._param.new_full(self._extended_shape(), math.nan)

    def sample(self, sample_shape: Shape = EMPTY) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = self.probs.detach()
        if probs.dim() != 2:
            probs = probs.reshape(-1, self._num_events)
        count = rl.Size(sample_shape).numel()
        if count == 0:
            return rl.empty(shape, dtype=rl.int64, device=probs.device)
        drawn = rl.multinomial(probs, count, True)  # (batch, count)
        return (drawn if count == 1 else drawn.T).reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, index = self.logits, value.long()
        if index.shape != self._batch_shape:
            shape = rl.broadcast_shapes(index.shape, self._batch_shape)
            logits, index = logits.expand(*shape, -1), index.expand(shape)
        return logits.gather(-1, index.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        # A logit of -inf, of probability 0, adds nothing.
        logits = self.logits.clamp(min=rl.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = rl.arange(self._num_events, device=self._param.device)
        return self._enumerated(values, expand)


class VectorChances(CategoryChances):
    """The base of distributions of vectors that have a number for each category."""

    _of_vectors = True

    @property
    def _categorical(self) -> Categorical:
        """The distribution of one draw, as an index."""
        new = Categorical.__new__(Categorical)
        vars(new).update({k: v for k, v in vars(self).items() if k in self.arg_constraints})
        Distribution.__init__(new, self._batch_shape, EMPTY, validate_args=False)
        return new
