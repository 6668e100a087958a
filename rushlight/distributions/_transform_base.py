"""The base of transforms, and transforms made of others.

transforms.py has the names; import them from there.
"""

from __future__ import annotations

import copy
import functools
import math
import operator
from typing import TYPE_CHECKING, Any, Self

import rushlight as rl
from rushlight import Size, Tensor
from rushlight.distributions import constraints
from rushlight.distributions.constraints import Constraint
from rushlight.distributions.utils import lazy_property, own_class, sum_rightmost


class Transform:
    """The base of transforms y = t(x).

    A subclass defines `domain`, `codomain` and `_call`; `_inverse` if it has one; with
    `bijective = True` also `log_abs_det_jacobian`, and `sign` if it is a function of one number.

    Args:
        cache_size: 1 keeps the last x and y, so that inverting y is free and exact; 0 nothing.

    Attributes:
        domain: the constraint that inputs satisfy.
        codomain: the constraint that outputs satisfy.
        bijective: whether t.inv(t(x)) == x and t(t.inv(y)) == y.

    Raises:
        ValueError: another cache_size.

    Example:
        >>> t = torch.distributions.ExpTransform()
        >>> t(torch.zeros(2)), t.inv(torch.ones(2))
        (tensor([1., 1.]), tensor([0., 0.]))
    """

    bijective: Any = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError(f"Transform: cache_size must be 0 or 1, got {cache_size}.")
        self._cache_size = cache_size
        self._inv: Any = None  # the inverse, once it was asked for
        if cache_size:
            self._cached_x_y: tuple[Tensor | None, Tensor | None] = None, None
        super().__init__()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None}

    # Subclasses have attributes or properties.
    if TYPE_CHECKING:
        event_dim: Any
        sign: Any
    else:

        @property
        def event_dim(self) -> int:
            """How many last dims make up one value, where domain and codomain agree."""
            if self.domain.event_dim == self.codomain.event_dim:
                return self.domain.event_dim
            raise ValueError(
                f"{type(self).__name__}: use .domain.event_dim ({self.domain.event_dim}) or "
                f".codomain.event_dim ({self.codomain.event_dim}), which differ."
            )

        @property
        def sign(self) -> int | Tensor:
            """1 or -1: whether it increases or decreases."""
            raise NotImplementedError(f"{type(self).__name__} has no sign.")

    @property
    def inv(self) -> Transform:
        """The inverse, whose own inverse is this transform."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Self:
        """Returns this transform, or a copy of it with such a cache.

        Raises:
            NotImplementedError: a subclass has its own __init__ and does not override this.
        """
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is not own_class(type(self)).__init__:
            raise NotImplementedError(f"{type(self)}.with_cache is not implemented")
        new = copy.copy(self)
        Transform.__init__(new, cache_size)
        return new

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __call__(self, x: Tensor) -> Tensor:
        """Returns y = t(x)."""
        if not self._cache_size:
            return self._call(x)
        x_old, y_old = self._cached_x_y
        if y_old is not None and x is x_old:
            return y_old
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        """Returns the x of which y is the image."""
        if not self._cache_size:
            return self._inverse(y)
        x_old, y_old = self._cached_x_y
        if x_old is not None and y is y_old:
            return x_old
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not implement _call.")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not implement _inverse.")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns log |det dy/dx|, without the event dims."""
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian.")

    def forward_shape(self, shape: Size) -> Size:
        """Returns the shape of y for that of x."""
        return shape

    def inverse_shape(self, shape: Size) -> Size:
        """Returns the shape of x for that of y."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """A transform, read from y to x."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._inv = transform

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Constraint:
        return self._inv.domain

    @property
    def bijective(self) -> bool:
        return self._inv.bijective

    @property
    def sign(self) -> int | Tensor:
        return self._inv.sign

    def with_cache(self, cache_size: int = 1) -> Any:
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = None

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Size) -> Size:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Size) -> Size:
        return self._inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"


class ParameterFree(Transform):
    """What is equal to any other of its class."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    __hash__ = None


# Made of other transforms


def widened(constraint: Constraint, event_dim: int) -> Constraint:
    """Returns a constraint with further dims on the left, up to event_dim."""
    extra = event_dim - constraint.event_dim
    return constraints.independent(constraint, extra) if extra else constraint


class ComposeTransform(Transform):
    """Transforms one after another, which keep their own caches.

    Args:
        parts: the first one is applied first.
        cache_size: that of the parts, unless 0.

    Example:
        >>> T = torch.distributions
        >>> T.ComposeTransform([T.ExpTransform(), T.AffineTransform(1.0, 2.0)])(torch.zeros(1))
        tensor([3.])
    """

    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None:
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size)
        self.parts = parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = None

    # The event dims of an end are at least its own; what a part in the middle needs, or adds, is
    # carried to the end.
    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        if not self.parts:
            return constraints.real
        dims = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            grown = part.domain.event_dim - part.codomain.event_dim
            dims = max(dims + grown, part.domain.event_dim)
        return widened(self.parts[0].domain, dims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Constraint:
        if not self.parts:
            return constraints.real
        dims = self.parts[0].domain.event_dim
        for part in self.parts:
            grown = part.codomain.event_dim - part.domain.event_dim
            dims = max(dims + grown, part.codomain.event_dim)
        return widened(self.parts[-1].codomain, dims)

    @lazy_property
    def bijective(self) -> bool:
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self) -> int | Tensor:
        return math.prod(part.sign for part in self.parts)

    @property
    def inv(self) -> Transform:
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return ComposeTransform(self.parts, cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return rl.zeros_like(x)
        points = [x]
        for part in self.parts[:-1]:
            points.append(part(points[-1]))
        points.append(y)
        dims, terms = self.domain.event_dim, []
        for part, before, after in zip(self.parts, points[:-1], points[1:], strict=True):
            term = part.log_abs_det_jacobian(before, after)
            terms.append(sum_rightmost(term, dims - part.domain.event_dim))
            dims += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape: Size) -> Size:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Size) -> Size:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        inside = ",\n    ".join(map(repr, self.parts))
        return f"{type(self).__name__}(\n    {inside}\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform with some batch dims taken into its values, and summed over in its log det.

    Args:
        base_transform: what is applied.
        reinterpreted_batch_ndims: how many dims.
        cache_size: that of base_transform.
    """

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Constraint:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:
        return self.base_transform.bijective

    @property
    def sign(self) -> int | Tensor:
        return self.base_transform.sign

    def _check_dims(self, value: Tensor, dims: int) -> None:
        if value.dim() < dims:
            raise ValueError(
                f"IndependentTransform: too few dims: {value.dim()}, but one value has {dims}."
            )

    def _call(self, x: Tensor) -> Tensor:
        self._check_dims(x, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        self._check_dims(y, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        result = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_rightmost(result, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Size) -> Size:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Size) -> Size:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"
