"""The chi-squared distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.gamma import Gamma
from rushlight.distributions.utils import Parameter, lazy_property

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of df squared standard normal numbers: Gamma(df / 2, 1 / 2).

    Args:
        df: degrees of freedom, which need not be an integer.
        validate_args: as in Distribution.

    Example:
        >>> torch.distributions.Chi2(3.0).mean
        tensor(3.)
    """

    arg_constraints = {"df": constraints.positive}
    df: Tensor

    def __init__(self, df: Parameter, validate_args: bool | None = None) -> None:
        self._adopt(validate_args, df=df)

    if not TYPE_CHECKING:

        @lazy_property
        def concentration(self) -> Tensor:
            """df / 2"""
            return 0.5 * self.df

        @lazy_property
        def rate(self) -> Tensor:
            """1 / 2"""
            return rl.full_like(self.df, 0.5)
