"""Fisher and Snedecor's F-distribution."""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import EMPTY, Parameter, Shape

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The ratio of Chi2(df1) / df1 to Chi2(df2) / df2.

    Args:
        df1: degrees of freedom above.
        df2: degrees of freedom below.
        validate_args: as in Distribution.

    Example:
        >>> torch.distributions.FisherSnedecor(1.0, 4.0).mean
        tensor(2.)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    df1: Tensor
    df2: Tensor

    def __init__(self, df1: Parameter, df2: Parameter, validate_args: bool | None = None) -> None:
        self._adopt(validate_args, df1=df1, df2=df2)

    def _where_above(self, least: float, value: Tensor) -> Tensor:
        """value where df2 > least, elsewhere NaN."""
        return rl.where(self.df2 > least, value, math.nan)

    @property
    def mean(self) -> Tensor:
        return self._where_above(2, self.df2 / (self.df2 - 2))

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return rl.where(self.df1 > 2, mode, math.nan)

    @property
    def variance(self) -> Tensor:
        df1, df2 = self.df1, self.df2
        top, bottom = 2 * df2.square() * (df1 + df2 - 2), df1 * (df2 - 2).square() * (df2 - 4)
        return self._where_above(4, top / bottom)

    def rsample(self, sample_shape: Shape = EMPTY) -> Tensor:
        shape = self._extended_shape(sample_shape)
        above = rl._standard_gamma(self.df1.expand(shape) / 2) / self.df1
        below = rl._standard_gamma(self.df2.expand(shape) / 2) / self.df2
        tiny = rl.finfo(above.dtype).tiny
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a, b, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
        log_shape = a * ratio.log() + (a - 1) * value.log()
        return log_shape - (a + b) * (ratio * value).log1p() - log_beta
