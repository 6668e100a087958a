"""The Dirichlet distribution."""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.utils import EMPTY, Shape
from rushlight.nn import functional as F

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """Vectors of sum 1, of a density proportional to the product of x_i^(concentration_i - 1).

    Args:
        concentration: (*, K), what each part counts.
        validate_args: as in Distribution.

    Raises:
        ValueError: concentration has no dim.

    Example:
        >>> torch.distributions.Dirichlet(torch.tensor([1.0, 3.0])).mean
        tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _mean_carrier_measure = 0
    concentration: Tensor

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError(
                "Dirichlet: `concentration` parameter must be at least one-dimensional."
            )
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @property
    def _total(self) -> Tensor:
        return self.concentration.sum(-1, keepdim=True)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self._total

    @property
    def mode(self) -> Tensor:
        excess = (self.concentration - 1).clamp(min=0)
        inner = excess / excess.sum(-1, keepdim=True)
        # Without a concentration above 1 it is in a corner.
        corner = F.one_hot(self.concentration.argmax(-1), excess.shape[-1]).to(inner)
        return rl.where((self.concentration < 1).all(-1, keepdim=True), corner, inner)

    @property
    def variance(self) -> Tensor:
        a, total = self.concentration, self._total
        return a * (total - a) / (total.square() * (total + 1))

    def rsample(self, sample_shape: Shape = EMPTY) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return rl._sample_dirichlet(self.concentration.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a = self.concentration
        return rl.xlogy(a - 1.0, value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    def entropy(self) -> Tensor:
        a = self.concentration
        total, k = a.sum(-1), a.shape[-1]
        log_beta = a.lgamma().sum(-1) - total.lgamma()
        return log_beta - (k - total) * total.digamma() - ((a - 1.0) * a.digamma()).sum(-1)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.concentration - 1,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        a = x + 1
        return a.lgamma().sum(-1) - a.sum(-1).lgamma()
