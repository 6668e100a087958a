"""Transforms on values of several elements: vectors, matrices, and pieces of a tensor.

transforms.py has the names; import them from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Size, Tensor
from rushlight.distributions import constraints
from rushlight.distributions._elementwise_transforms import clipped_sigmoid
from rushlight.distributions._transform_base import ParameterFree, Transform
from rushlight.distributions.constraints import Constraint
from rushlight.distributions.utils import (
    lazy_property,
    sum_rightmost,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)
from rushlight.nn import functional as F


def _check_vector(shape: Size) -> None:
    if len(shape) < 1:
        raise ValueError("Too few dimensions on input")


class ReshapeTransform(Transform):
    """Values in another shape.

    Args:
        in_shape: the last dims of x.
        out_shape: what they become, with as many elements.
        cache_size: as in Transform.

    Raises:
        ValueError: the shapes differ in their number of elements.

    Example:
        >>> t = torch.distributions.ReshapeTransform(torch.Size([4]), torch.Size([2, 2]))
        >>> t(torch.zeros(3, 4)).shape
        torch.Size([3, 2, 2])
    """

    bijective = True

    def __init__(self, in_shape: Iterable[int], out_shape: Iterable[int], cache_size: int = 0):
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError(
                f"ReshapeTransform: {tuple(self.in_shape)} and {tuple(self.out_shape)} have "
                "different numbers of elements."
            )
        super().__init__(cache_size)

    @constraints.dependent_property
    def domain(self) -> Constraint:
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Size) -> Size:
        return self._replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Size) -> Size:
        return self._replaced(shape, self.out_shape, self.in_shape)

    @staticmethod
    def _replaced(shape: Size, old: Size, new: Size) -> Size:
        if len(shape) < len(old):
            raise ValueError("Too few dimensions on input")
        cut = len(shape) - len(old)
        if shape[cut:] != old:
            raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
        return Size((*shape[:cut], *new))


# Vectors


class SoftmaxTransform(ParameterFree):
    """y = softmax(x), which is not one to one: the inverse is x = log(y).

    It serves to optimize well; for samplers there is StickBreakingTransform.
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return rl.softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Size) -> Size:
        _check_vector(shape)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(ParameterFree):
    """Vectors of n - 1 numbers to n parts of 1: each takes a share of what is left.

    The share is sigmoid(x_i - log(n - i)) for i = 1, ..., so that x = 0 gives equal parts.
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _log_parts_left(x: Tensor) -> Tensor:
        """log(n - i), for vectors x of n - 1 elements."""
        return rl.arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x: Tensor) -> Tensor:
        share = clipped_sigmoid(x - self._log_parts_left(x))
        left = (1 - share).cumprod(-1)
        return F.pad(share, (0, 1), value=1) * F.pad(left, (1, 0), value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = y[..., :-1]
        left = (1 - parts.cumsum(-1)).clamp(min=rl.finfo(y.dtype).tiny)
        return parts.log() - left.log() + self._log_parts_left(parts)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # The Jacobian is triangular: dy_i/dx_i = y_i (1 - share_i), where 1 - sigmoid(u) =
        # sigmoid(u) exp(-u).
        u = x - self._log_parts_left(x)
        return (F.logsigmoid(u) - u + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Size) -> Size:
        _check_vector(shape)
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Size) -> Size:
        _check_vector(shape)
        return Size((*shape[:-1], shape[-1] - 1))


# Matrices


class CorrCholeskyTransform(ParameterFree):
    """Vectors of n(n-1)/2 numbers to the Cholesky factor of a correlation matrix of size n.

    tanh(x) fills the lower triangle; an element is its entry times the length that the row has
    left, sqrt(1 - what stands before squared), and the diagonal takes the rest.

    Source: the Stan reference manual, section on Cholesky factors of correlation matrices.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        x = rl.tanh(x)
        eps = rl.finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.clamp(-1 + eps, 1 - eps), diag=-1)
        left = (1 - r.square()).sqrt().cumprod(-1)
        r = r + rl.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * F.pad(left[..., :-1], (1, 0), value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        left = (1 - (y * y).cumsum(-1)).clamp(min=rl.finfo(y.dtype).tiny)
        below = tril_matrix_to_vec(y, diag=-1)
        length = tril_matrix_to_vec(F.pad(left[..., :-1], (1, 0), value=1), diag=-1).sqrt()
        return rl.atanh(below / length)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        left = 1 - (y * y).cumsum(-1)
        lengths = 0.5 * tril_matrix_to_vec(left, diag=-2).log().sum(-1)
        slopes = -2 * (x + F.softplus(-2 * x) - math.log(2.0)).sum(-1)
        return lengths + slopes

    def forward_shape(self, shape: Size) -> Size:
        _check_vector(shape)
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError(
                f"CorrCholeskyTransform: {shape[-1]} elements are not the lower triangle of a "
                "square matrix."
            )
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Size) -> Size:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError(f"CorrCholeskyTransform: {tuple(shape)} is not square.")
        n = shape[-1]
        return Size((*shape[:-2], n * (n - 1) // 2))


class LowerCholeskyTransform(ParameterFree):
    """Matrices to lower triangular ones whose diagonal is the exponential of theirs."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(ParameterFree):
    """Matrices to positive definite ones: y = L L^T of the L that LowerCholeskyTransform gives."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        lower = LowerCholeskyTransform()(x)
        return lower @ lower.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(rl.linalg.cholesky(y))


# Pieces


class _PiecesTransform(Transform):
    """What cat and stack share: a transform for each piece of a dim."""

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError(f"{type(self).__name__}: all of tseq must be Transforms.")
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size)
        self.transforms, self.dim = list(tseq), dim

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)

    def _pieces(self, value: Tensor) -> Sequence[Tensor]:
        raise NotImplementedError

    def _checked_pieces(self, value: Tensor, length: int) -> Sequence[Tensor]:
        if not -value.dim() <= self.dim < value.dim() or value.shape[self.dim] != length:
            raise AssertionError(
                f"{type(self).__name__}: dim {self.dim} must have size {length}, but the shape is "
                f"{tuple(value.shape)}."
            )
        return self._pieces(value)

    def _each(self, apply: Callable[..., Tensor], *values: Tensor) -> list[Tensor]:
        pieces = (self._checked_pieces(value, self._length) for value in values)
        return [apply(t, *p) for t, *p in zip(self.transforms, *pieces, strict=True)]

    @property
    def _length(self) -> int:
        return len(self.transforms)


class CatTransform(_PiecesTransform):
    """Applies a transform to each of several lengths of a dim, as torch.cat joins them.

    Args:
        tseq: the transforms.
        dim: the dim that is cut.
        lengths: the size of each piece, by default 1.
        cache_size: that of the transforms, unless 0.

    Example:
        >>> T = torch.distributions
        >>> t = T.CatTransform([T.ExpTransform(), T.identity_transform], dim=0, lengths=[1, 2])
        >>> t(torch.zeros(3))
        tensor([1., 0., 0.])
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"CatTransform: {len(self.lengths)} lengths for {len(self.transforms)} transforms."
            )

    @lazy_property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        """The size of the dim that is cut."""
        return sum(self.lengths)

    @property
    def _length(self) -> int:
        return self.length

    def _pieces(self, value: Tensor) -> Sequence[Tensor]:
        return value.split(self.lengths, self.dim)

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return rl.cat(self._each(lambda t, x: t(x), x), self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return rl.cat(self._each(lambda t, y: t.inv(y), y), self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        def term(t: Transform, x: Tensor, y: Tensor) -> Tensor:
            return sum_rightmost(t.log_abs_det_jacobian(x, y), self.event_dim - t.event_dim)

        terms = self._each(term, x, y)
        # Counted from the end, where the cut dim is in the terms; if it belongs to the values, it
        # is gone from them.
        dim = (self.dim if self.dim < 0 else self.dim - x.dim()) + self.event_dim
        return rl.cat(terms, dim) if dim < 0 else sum(terms[1:], terms[0])

    @constraints.dependent_property
    def domain(self) -> Constraint:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_PiecesTransform):
    """Applies a transform to each index of a dim, as torch.stack joins them.

    Args:
        tseq: the transforms.
        dim: the dim that they are for.
        cache_size: that of the transforms, unless 0.

    Example:
        >>> T = torch.distributions
        >>> T.StackTransform([T.ExpTransform(), T.identity_transform], dim=1)(torch.zeros(1, 2))
        tensor([[1., 0.]])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    def _pieces(self, value: Tensor) -> Sequence[Tensor]:
        return value.unbind(self.dim)

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return rl.stack(self._each(lambda t, x: t(x), x), self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return rl.stack(self._each(lambda t, y: t.inv(y), y), self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return rl.stack(self._each(lambda t, x, y: t.log_abs_det_jacobian(x, y), x, y), self.dim)

    @constraints.dependent_property
    def domain(self) -> Constraint:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
