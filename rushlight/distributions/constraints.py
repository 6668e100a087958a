"""Constraints: sets of values that parameters and samples belong to.

A constraint has `check`, which says which values are in the set, `event_dim`, how many last dims
make up one value, and `is_discrete`. `constraint_registry` links them to transforms. The class of
`constraints.positive` is `constraints._GreaterThan`, and so on, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A set of values.

    Attributes:
        is_discrete: whether its values are apart from each other.
        event_dim: how many last dims of a tensor make up one value.

    Example:
        >>> from rushlight.distributions import constraints
        >>> constraints.positive.check(torch.tensor([-1.0, 2.0]))
        tensor([False,  True])
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Tensor) -> Tensor:
        """Returns which values are in the set: a bool tensor without the last `event_dim` dims."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__.removeprefix("_") + "()"


# Constraints that an instance decides


def _known(value: Any, name: str) -> Any:
    if value is NotImplemented:
        raise NotImplementedError(f".{name} cannot be determined statically")
    return value


class _Dependent(Constraint):
    """A set that depends on other values, so that there is nothing to check."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self) -> bool:
        return _known(self._is_discrete, "is_discrete")

    @property
    def event_dim(self) -> int:
        return _known(self._event_dim, "event_dim")

    def __call__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> _Dependent:
        """Returns one of which more is known."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise ValueError(
            "dependent: cannot be checked, as it depends on an instance. "
            "Ask the constraint of an instance instead."
        )


def is_dependent(constraint: object) -> bool:
    """Returns whether a constraint depends on other values and cannot be checked.

    Example:
        >>> from rushlight.distributions import constraints
        >>> constraints.is_dependent(torch.distributions.Uniform.support)
        True
    """
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property that is a constraint: exact on an instance, a dependent one on its class."""

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Any) -> _DependentProperty:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Makes a property of a method: what is known was said before, in a decorator."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


# Constraints made of others


class _Wrapping(Constraint):
    """What takes after the constraint that it wraps."""

    def __init__(self, base_constraint: Constraint) -> None:
        if not isinstance(base_constraint, Constraint):
            raise AssertionError(
                f"{type(self).__name__}: base_constraint must be a Constraint, not "
                f"{type(base_constraint).__name__}."
            )
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim


class _IndependentConstraint(_Wrapping):
    """Values that further dims on the left join to one: all of them must be in the base's set."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        super().__init__(base_constraint)
        if not isinstance(reinterpreted_batch_ndims, int) or reinterpreted_batch_ndims < 0:
            raise AssertionError(
                "independent: reinterpreted_batch_ndims must be a non-negative int, got "
                f"{reinterpreted_batch_ndims!r}."
            )
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value)
        dims = self.reinterpreted_batch_ndims
        if result.dim() < dims:
            raise ValueError(
                f"independent: expected at least {self.event_dim} dims, but value has "
                f"{value.dim()}."
            )
        return result.all(tuple(range(-dims, 0))) if dims else result

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(_Wrapping):
    """The support of a mixture: a value must be in the support of every component.

    Args:
        base_constraint: the support of the components, which are the last dim of its batch.
    """

    def check(self, value: Tensor) -> Tensor:
        dims = self.event_dim
        if value.dim() < dims:
            raise ValueError(
                f"MixtureSameFamilyConstraint: expected at least {dims} dims, but value has "
                f"{value.dim()}."
            )
        return self.base_constraint.check(value.unsqueeze(-1 - dims)).all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _Pieces(Constraint):
    """What cat and stack share: a constraint for each piece of a dim."""

    def __init__(self, cseq: Sequence[Constraint], dim: int) -> None:
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError(f"{type(self).__name__}: all of cseq must be Constraints.")
        self.cseq, self.dim = list(cseq), dim

    @property
    def is_discrete(self) -> bool:
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:
        return max(c.event_dim for c in self.cseq)

    def _check_dim(self, value: Tensor) -> None:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(
                f"{type(self).__name__}: dim {self.dim} is out of range for {value.dim()} dims."
            )


class _Cat(_Pieces):
    """Values joined along a dim, as torch.cat does."""

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"Cat: {len(self.lengths)} lengths for {len(self.cseq)} pieces.")

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        pieces = value.split(self.lengths, self.dim)
        return rl.cat([c.check(p) for c, p in zip(self.cseq, pieces, strict=True)], self.dim)


class _Stack(_Pieces):
    """Values side by side in a new dim, as torch.stack does."""

    @property
    def event_dim(self) -> int:
        dims = super().event_dim
        return dims + 1 if self.dim + dims < 0 else dims

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        super().__init__(cseq, dim)

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        pieces = value.unbind(self.dim)
        return rl.stack([c.check(p) for c, p in zip(self.cseq, pieces, strict=True)], self.dim)


# Numbers


class _Real(Constraint):
    """Every number but NaN."""

    def check(self, value: Tensor) -> Tensor:
        return value == value


class _Boolean(Constraint):
    """0 and 1."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _Bounded(Constraint):
    """What has bounds, numbers or tensors, and shows them."""

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={bound}" for name, bound in vars(self).items())
        return f"{type(self).__name__.removeprefix('_')}({bounds})"


class _Above(_Bounded):
    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _Below(_Bounded):
    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _Between(_Bounded):
    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class _GreaterThan(_Above):
    """Numbers above a bound."""

    def check(self, value: Tensor) -> Tensor:
        return value > self.lower_bound


class _GreaterThanEq(_Above):
    """A bound and the numbers above it."""

    def check(self, value: Tensor) -> Tensor:
        return value >= self.lower_bound


class _LessThan(_Below):
    """Numbers below a bound."""

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_Between):
    """Numbers between two bounds, and these."""

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """Numbers between two bounds, and the lower one."""

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value < self.upper_bound)


def _integers_of(inside: Tensor, value: Tensor) -> Tensor:
    """What of a set are integers, which numbers of an integer dtype are."""
    return inside & (value % 1 == 0) if value.is_floating_point() else inside


class _IntegerGreaterThan(_Above):
    """Integers from a bound on."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _integers_of(value >= self.lower_bound, value)


class _IntegerLessThan(_Below):
    """Integers up to a bound."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _integers_of(value <= self.upper_bound, value)


class _IntegerInterval(_Between):
    """Integers from one bound to another."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        inside = (value >= self.lower_bound) & (value <= self.upper_bound)
        return _integers_of(inside, value)


# Vectors


class _OneHot(Constraint):
    """Vectors of a 1 and zeros."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return boolean.check(value).all(-1) & (value.sum(-1) == 1)


class _Simplex(Constraint):
    """Vectors of non-negative numbers with the sum 1."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Vectors of non-negative numbers whose sum is at most a bound."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


# Matrices


class _LowerTriangular(Constraint):
    """Square matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).all((-2, -1))


class _LowerCholesky(_LowerTriangular):
    """Lower triangular matrices with a positive diagonal."""

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Cholesky factors of correlation matrices: lower_cholesky with rows of length 1."""

    def check(self, value: Tensor) -> Tensor:
        tolerance = rl.finfo(value.dtype).eps * value.shape[-1] * 10  # ten roundings in each
        lengths = value.detach().square().sum(-1)
        return super().check(value) & ((lengths - 1).abs() < tolerance).all(-1)


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        is_square = value.shape[-2] == value.shape[-1]
        return rl.full(value.shape[:-2], is_square, dtype=rl.bool, device=value.device)


class _Symmetric(_Square):
    """Symmetric matrices, and `_holds` says what more is asked of one."""

    def check(self, value: Tensor) -> Tensor:
        is_square = super().check(value)
        if value.shape[-2] != value.shape[-1]:
            return is_square
        return rl.isclose(value, value.mT, atol=1e-6).all((-2, -1)) & self._holds(value)

    def _holds(self, value: Tensor) -> Tensor | bool:
        return True


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without negative eigenvalues."""

    def _holds(self, value: Tensor) -> Tensor:
        return (rl.linalg.eigvalsh(value.detach()) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices with positive eigenvalues."""

    def _holds(self, value: Tensor) -> Tensor:
        return rl.linalg.cholesky_ex(value.detach()).info == 0


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
