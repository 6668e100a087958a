"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions._chances import BinaryChances
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.utils import (
    EMPTY,
    Parameter,
    Shape,
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
    uniform,
)
from rushlight.nn import functional as F

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(BinaryChances, ExponentialFamily):
    """Numbers in [0, 1] of density C(probs) probs^x (1 - probs)^(1 - x).

    Its formulas divide by 1 - 2 probs; for probs within `lims` a Taylor series stands in.

    Source: Loaiza-Ganem and Cunningham, The continuous Bernoulli: fixing a pervasive error in
    variational autoencoders, 2019.

    Args:
        probs: the parameter, in [0, 1]; not the mean.
        logits: its log odds, instead of probs.
        lims: where probs counts as about 1/2.
        validate_args: as in Distribution.

    Raises:
        ValueError: both or neither of probs and logits are given.

    Example:
        >>> torch.distributions.ContinuousBernoulli(torch.tensor([0.5])).mean
        tensor([0.5000])
    """

    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _kept = ("_lims",)

    def __init__(
        self,
        probs: Parameter | None = None,
        logits: Parameter | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._lims = lims
        self._adopt_chances(probs, logits, validate_args)
        if probs is not None:
            vars(self)["probs"] = clamp_probs(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """The parameter, apart from 0 and 1, where the formulas would divide by 0."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _split(self, probs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Whether probs are away from 1/2; where so probs, else lims[0]; and probs - 1/2."""
        away = (probs < self._lims[0]) | (probs > self._lims[1])
        return away, rl.where(away, probs, self._lims[0]), probs - 0.5

    @staticmethod
    def _log_odds(probs: Tensor) -> Tensor:
        return probs.log() - (-probs).log1p()

    def _cont_bern_log_norm(self) -> Tensor:
        """log C(probs), where C = 2 atanh(1 - 2 probs) / (1 - 2 probs)."""
        away, p, x = self._split(self.probs)
        exact = (self._log_odds(p) / (2 * p - 1)).log()
        near = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x.square()) * x.square()
        return rl.where(away, exact, near)

    @property
    def mean(self) -> Tensor:
        away, p, x = self._split(self.probs)
        exact = p / (2 * p - 1) - 1 / self._log_odds(p)
        return rl.where(away, exact, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.square()) * x)

    @property
    def variance(self) -> Tensor:
        away, p, x = self._split(self.probs)
        exact = p * (p - 1) / (1 - 2 * p).square() + 1 / self._log_odds(p).square()
        near = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x.square()) * x.square()
        return rl.where(away, exact, near)

    def rsample(self, sample_shape: Shape = EMPTY) -> Tensor:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.probs))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        cross = F.binary_cross_entropy_with_logits(logits, value, reduction="none")
        return self._cont_bern_log_norm() - cross

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        away, p, _ = self._split(self.probs)
        exact = (p.pow(value) * (1 - p).pow(1 - value) + p - 1) / (2 * p - 1)
        return rl.where(away, exact, value).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        away, p, _ = self._split(self.probs)
        exact = ((value * (2 * p - 1) - p).log1p() - (-p).log1p()) / self._log_odds(p)
        return rl.where(away, exact, value)

    def entropy(self) -> Tensor:
        # -E[log density], which is linear in x.
        log_rest = (-self.probs).log1p()
        return -self.mean * self._log_odds(self.probs) - self._cont_bern_log_norm() - log_rest

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        """log((exp(x) - 1) / x), near 0 its Taylor series."""
        away = (x < math.log(self._lims[0] / (1 - self._lims[0]))) | (
            x > math.log(self._lims[1] / (1 - self._lims[1]))
        )
        y = rl.where(away, x, 1.0)
        return rl.where(away, (y.expm1() / y).log(), 0.5 * x + x.square() / 24.0)
