"""The Wishart distribution."""

from __future__ import annotations

import math
import warnings

import rushlight as rl
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions._covariance import FORMS, CovarianceForms, log_diagonal
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.utils import EMPTY, Parameter, Shape, standard_normal

__all__ = ["Wishart"]


class Wishart(CovarianceForms, ExponentialFamily):
    """Positive definite matrices: the sum of x x^T of df normal vectors x.

    Args:
        df: degrees of freedom, more than n - 1; below n samples are nearly singular.
        covariance_matrix: (*, n, n), that of x.
        precision_matrix: its inverse, instead of it.
        scale_tril: its Cholesky factor, instead of it.
        validate_args: as in Distribution.

    Raises:
        ValueError: df is too small, or not one of the three is given.

    Example:
        >>> torch.distributions.Wishart(torch.tensor(3.0), torch.eye(2)).mean
        tensor([[3., 0.],
                [0., 3.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    df: Tensor

    def __init__(
        self,
        df: Parameter,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, value = self._given_form(
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        df = df if isinstance(df, Tensor) else value.new_tensor(df)
        batch_shape = rl.broadcast_shapes(value.shape[:-2], df.shape)
        n = value.shape[-1]
        if not (df > n - 1).all():
            raise ValueError(f"Wishart: df must be greater than n - 1 = {n - 1}, but is {df}.")
        if (df < n).any():
            warnings.warn(
                f"Wishart: df {df} is less than n = {n}, so that singular samples are likely.",
                stacklevel=2,
            )
        self.df = df.expand(batch_shape)
        setattr(self, name, value.expand(*batch_shape, -1, -1))
        super().__init__(batch_shape, value.shape[-2:], validate_args)
        self._factorize(name, value)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        return {**FORMS, "df": constraints.greater_than(self.event_shape[-1] - 1)}

    @property
    def _df_of_matrix(self) -> Tensor:
        return self.df[..., None, None]

    @property
    def mean(self) -> Tensor:
        return self._df_of_matrix * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self._df_of_matrix - (self._event_shape[-1] + 1)
        return rl.where(factor > 0, factor, math.nan) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        cov = self.covariance_matrix
        diagonal = cov.diagonal(dim1=-2, dim2=-1)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self._df_of_matrix * (cov.square() + products)

    def rsample(self, sample_shape: Shape = EMPTY, max_try_correction: int | None = None) -> Tensor:
        """Returns samples; those that rounding makes singular are drawn again.

        Args:
            sample_shape: as in Distribution.
            max_try_correction: how often, by default 10 times.
        """
        sample = self._bartlett_sampling(sample_shape)
        for _ in range(10 if max_try_correction is None else max_try_correction):
            regular = self.support.check(sample)
            if regular.all():
                break
            again = self._bartlett_sampling(sample_shape)
            sample = rl.where(regular[..., None, None], sample, again)
        return sample

    def _bartlett_sampling(self, sample_shape: Shape = EMPTY) -> Tensor:
        # The Cholesky factor of a standard sample has normal numbers below the diagonal and the
        # roots of Chi2(df - i), which are 2 gamma((df - i) / 2), on it: Bartlett, On the theory of
        # statistical regression, 1933.
        tril = self._unbroadcasted_scale_tril
        shape = self._extended_shape(sample_shape)
        left = self.df.unsqueeze(-1) - rl.arange(shape[-1], dtype=tril.dtype, device=tril.device)
        squares = 2 * rl._standard_gamma((left / 2).expand(shape[:-1]))
        diagonal = squares.sqrt().clamp(min=rl.finfo(tril.dtype).eps)
        factor = tril @ (standard_normal(shape, tril).tril(-1) + diagonal.diag_embed())
        return factor @ factor.mT

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        df, n = self.df, self._event_shape[-1]
        log_det = rl.linalg.slogdet(value).logabsdet
        trace = (self.precision_matrix * value).sum((-2, -1))
        return (df - n - 1) / 2 * log_det - trace / 2 - self._log_norm(n)

    def _log_norm(self, n: int) -> Tensor:
        half = self.df / 2
        log_scale = n * math.log(2) / 2 + log_diagonal(self._unbroadcasted_scale_tril)
        return self.df * log_scale + rl.mvlgamma(half, n)

    def entropy(self) -> Tensor:
        df, n = self.df, self._event_shape[-1]
        steps = rl.arange(n, dtype=df.dtype, device=df.device)
        mvdigamma = ((df.unsqueeze(-1) - steps) / 2).digamma().sum(-1)
        log_scale = n * math.log(2) / 2 + log_diagonal(self._unbroadcasted_scale_tril)
        # E[log det] = mvdigamma + 2 log_scale
        log_det = mvdigamma + 2 * log_scale
        return self._log_norm(n) - (df - n - 1) / 2 * log_det + df * n / 2

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        n = self._event_shape[-1]
        half = y + (n + 1) / 2
        log_det = rl.linalg.slogdet(-2 * x).logabsdet
        return half * (n * math.log(2) - log_det) + rl.mvlgamma(half, n)
