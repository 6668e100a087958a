"""Transforms to constrained values: biject_to and transform_to.

`biject_to(constraint)` is one to one, with a log determinant, for samplers; `transform_to` may
have more inputs than it needs, for optimizers. Both take any real numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.distributions import constraints, transforms
from rushlight.distributions.constraints import Constraint
from rushlight.distributions.transforms import Transform

Factory = Callable[[Any], Transform]

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Makes transforms for constraints, by functions registered for the constraints' classes.

    Example:
        >>> D = torch.distributions
        >>> scale = D.transform_to(D.Normal.arg_constraints["scale"])
        >>> scale(torch.zeros(1)), scale.inv(torch.ones(1))
        (tensor([1.]), tensor([0.]))
    """

    def __init__(self) -> None:
        self._registry: dict[type[Constraint], Factory] = {}
        super().__init__()

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Registers a function that takes a constraint and returns a transform.

        Args:
            constraint: a class, or an instance of one.
            factory: the function; without it, register returns a decorator.

        Raises:
            TypeError: constraint is no constraint.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        cls = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not (isinstance(cls, type) and issubclass(cls, Constraint)):
            raise TypeError(
                "register: expected constraint to be either a Constraint subclass or instance, "
                f"but got {constraint}"
            )
        self._registry[cls] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        """Returns a transform to values that satisfy a constraint.

        Raises:
            NotImplementedError: no function is registered for its class.
        """
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _to_real(constraint: Any) -> Transform:
    return transforms.identity_transform


def _to_positive(constraint: Any) -> Transform:
    return transforms.ExpTransform()


def _to_above(constraint: Any) -> Transform:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)]
    )


def _to_below(constraint: Any) -> Transform:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


def _to_interval(constraint: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform(
        [transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)]
    )


for registry in (biject_to, transform_to):
    registry.register(constraints.real, _to_real)
    # positive and nonnegative are of the classes of greater_than and greater_than_eq, for which
    # the last ones registered stay.
    registry.register(constraints.greater_than, _to_above)
    registry.register(constraints.greater_than_eq, _to_above)
    registry.register(constraints.less_than, _to_below)
    registry.register(constraints.interval, _to_interval)
    registry.register(constraints.half_open_interval, _to_interval)
    registry.register(
        constraints.corr_cholesky, lambda constraint: transforms.CorrCholeskyTransform()
    )


biject_to.register(constraints.simplex, lambda constraint: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: transforms.SoftmaxTransform())
transform_to.register(
    constraints.lower_cholesky, lambda constraint: transforms.LowerCholeskyTransform()
)
for matrices in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(matrices, lambda constraint: transforms.PositiveDefiniteTransform())


def _register_composed(registry: ConstraintRegistry) -> None:
    """Registers what is made of the transforms of other constraints."""

    @registry.register(constraints.independent)
    def _to_independent(constraint: Any) -> Transform:
        return transforms.IndependentTransform(
            registry(constraint.base_constraint), constraint.reinterpreted_batch_ndims
        )

    @registry.register(constraints.cat)
    def _to_cat(constraint: Any) -> Transform:
        pieces = [registry(c) for c in constraint.cseq]
        return transforms.CatTransform(pieces, constraint.dim, constraint.lengths)

    @registry.register(constraints.stack)
    def _to_stack(constraint: Any) -> Transform:
        return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)


_register_composed(biject_to)
_register_composed(transform_to)
