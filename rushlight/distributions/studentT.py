"""Student's t-distribution."""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import Size, Tensor
from rushlight.distributions import constraints
from rushlight.distributions._location_scale import LocationScale
from rushlight.distributions.utils import Parameter, standard_normal

__all__ = ["StudentT"]


class StudentT(LocationScale):
    """Student's t: loc + scale * z / sqrt(c / df), with z normal and c of a Chi2(df).

    Args:
        df: degrees of freedom.
        loc: the mode; from df > 1 on the mean.
        scale: its size.
        validate_args: as in Distribution.

    Example:
        >>> torch.distributions.StudentT(3.0).variance
        tensor(3.)
    """

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    df: Tensor
    loc: Tensor
    scale: Tensor

    def __init__(
        self,
        df: Parameter,
        loc: Parameter = 0.0,
        scale: Parameter = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self._adopt(validate_args, df=df, loc=loc, scale=scale)

    @property
    def mean(self) -> Tensor:
        return rl.where(self.df > 1, self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        df = self.df
        finite = self.scale.square() * df / rl.where(df > 2, df - 2, 1)
        return rl.where(df > 2, finite, rl.where(df > 1, math.inf, math.nan).to(df.dtype))

    def _standard_sample(self, shape: Size) -> Tensor:
        # In turns of standard numbers: c / df = 2 gamma(df / 2) / df.
        half = self.df.expand(shape) / 2
        return standard_normal(shape, self.df) * (rl._standard_gamma(half) / half).rsqrt()

    @property
    def _log_norm(self) -> Tensor:
        """The logarithm of sqrt(df) B(1/2, df/2)."""
        df = self.df
        beta = math.lgamma(0.5) + (df / 2).lgamma() - ((df + 1) / 2).lgamma()
        return 0.5 * df.log() + beta

    def _standard_log_prob(self, z: Tensor) -> Tensor:
        return -0.5 * (self.df + 1) * (z.square() / self.df).log1p() - self._log_norm

    @property
    def _standard_entropy(self) -> Tensor:
        upper = (self.df + 1) / 2
        return upper * (upper.digamma() - (self.df / 2).digamma()) + self._log_norm
