"""The LKJ distribution of Cholesky factors."""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import Size, Tensor
from rushlight.distributions import constraints
from rushlight.distributions.beta import Beta
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import EMPTY, Parameter, Shape, standard_normal

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors L of correlation matrices, where L L^T has density det^(concentration - 1).

    Concentration 1 makes all correlation matrices as likely; more of it means weaker correlations.

    Source: Lewandowski, Kurowicka and Joe, Generating random correlation matrices based on vines
    and extended onion method, 2009.

    Args:
        dim: the size of the matrices, at least 2.
        concentration: the shape.
        validate_args: as in Distribution.

    Raises:
        ValueError: dim is less than 2.

    Example:
        >>> L = torch.distributions.LKJCholesky(3, 0.5).sample()
        >>> torch.allclose((L @ L.mT).diagonal(), torch.ones(3))
        True
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    dim: int
    _kept = ("dim",)
    concentration: Tensor

    def __init__(
        self, dim: int, concentration: Parameter = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"LKJCholesky: expected dim to be an integer greater than or equal to 2, got {dim}."
            )
        self.dim = dim
        self._adopt(validate_args, Size((dim, dim)), concentration=concentration)

    def sample(self, sample_shape: Shape = EMPTY) -> Tensor:
        # The onion method: row i is a direction in i dims, and its squared length below the
        # diagonal is of a beta distribution.
        shape = self._extended_shape(sample_shape)
        with rl.no_grad():
            c = self.concentration.unsqueeze(-1)
            i = rl.arange(1, self.dim, dtype=c.dtype, device=c.device)
            squares = Beta(i / 2, c + (self.dim - 1 - i) / 2, validate_args=False)
            length = squares.sample(sample_shape).sqrt().unsqueeze(-1)  # (*, dim - 1, 1)
            direction = standard_normal(shape, c)[..., 1:, :].tril()
            direction = direction / direction.norm(dim=-1, keepdim=True)
            below = rl.cat([c.new_zeros(*shape[:-2], 1, self.dim), length * direction], -2)
            rest = (1 - below.square().sum(-1)).clamp(min=rl.finfo(c.dtype).tiny)
            return below + rest.sqrt().diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        # Row i of L adds its diagonal element with power 2 (concentration - 1) + dim - i: the
        # determinant, and the Jacobian of L to L L^T. The norm is page 1999 of the source.
        if self._validate_args:
            self._validate_sample(value)
        n, c = self.dim, self.concentration
        rows = rl.arange(2, n + 1, device=c.device)
        powers = 2 * (c - 1).unsqueeze(-1) + n - rows
        shape = (powers * value.diagonal(dim1=-2, dim2=-1)[..., 1:].log()).sum(-1)
        alpha = c + 0.5 * (n - 1)
        norm = 0.5 * (n - 1) * math.log(math.pi) + rl.mvlgamma(alpha - 0.5, n - 1)
        return shape - norm + (n - 1) * alpha.lgamma()
