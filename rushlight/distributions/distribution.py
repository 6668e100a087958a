"""The base of all distributions: shapes, validation, expansion, repr.

Note [Parameters of distributions]
    A distribution keeps its parameters as attributes, under the names of `arg_constraints`, in
    broadcast form: batch shape, then as many dims as the constraint's `event_dim`. Validation,
    `expand` and `repr` read them there, so that a distribution says nothing about these. Of two
    forms of a parameter (probs and logits) one is an attribute and the other a lazy_property,
    which joins when it is first read.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Self

import rushlight as rl
from rushlight import Size, Tensor
from rushlight.distributions import constraints
from rushlight.distributions.constraints import Constraint
from rushlight.distributions.utils import EMPTY, Shape, broadcast_all, lazy_property, own_class

__all__ = ["Distribution"]

_Dependent = constraints._Dependent


class Distribution:
    """The base of probability distributions.

    A sample has the shape sample_shape + batch_shape + event_shape: independent draws, then
    distributions with parameters of their own, then the dims of one value. log_prob leaves out the
    event dims.

    Args:
        batch_shape: the shape over which parameters are batched.
        event_shape: the shape of one value.
        validate_args: whether parameters and values are checked; by default as
            set_default_validate_args says.

    Attributes:
        has_rsample: whether rsample gives samples through which gradients flow.
        has_enumerate_support: whether enumerate_support is there.

    Raises:
        ValueError: a parameter is outside its constraint.
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args = __debug__
    _kept: tuple[str, ...] = ()  # attributes that expand passes on as they are

    # Subclasses have attributes or properties.
    if TYPE_CHECKING:
        arg_constraints: Any
        support: Any
    else:

        @property
        def arg_constraints(self) -> dict[str, Constraint]:
            """What each parameter must satisfy, by its name."""
            raise NotImplementedError

        @property
        def support(self) -> Constraint | None:
            """The constraint that samples satisfy."""
            raise NotImplementedError

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Sets whether distributions check their arguments that are not told to.

        On by default, unless Python runs with -O.

        Raises:
            ValueError: value is not a bool.
        """
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: value must be a bool, got {value!r}.")
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: tuple[int, ...] = EMPTY,
        event_shape: tuple[int, ...] = EMPTY,
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape: Any = batch_shape
        self._event_shape: Any = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()
        super().__init__()

    def _adopt(
        self,
        validate_args: bool | None,
        event_shape: tuple[int, ...] = EMPTY,
        **parameters: Any,
    ) -> None:
        """Makes scalar parameters attributes, broadcast, and their shape the batch's."""
        tensors = broadcast_all(*parameters.values())
        vars(self).update(zip(parameters, tensors, strict=True))
        Distribution.__init__(self, tensors[0].shape, event_shape, validate_args)

    def _validate_parameters(self) -> None:
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Set `arg_constraints = {{}}`, or "
                "use `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        for name, constraint in arg_constraints.items():
            if isinstance(constraint, _Dependent):
                continue
            value = self.__dict__.get(name)
            if value is None:
                if isinstance(getattr(type(self), name, None), lazy_property):
                    continue
                value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"{type(self).__name__}: expected parameter {name} (shape "
                    f"{tuple(value.shape)}) to satisfy the constraint {constraint!r}, but found "
                    f"invalid values:\n{value}"
                )

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Self:
        """Returns the distribution with its batch expanded, which shares the parameters' memory.

        Args:
            batch_shape: what batch_shape becomes.
            _instance: for subclasses that override expand: what is filled and returned.

        Raises:
            NotImplementedError: a subclass has its own __init__ and does not override expand.

        Example:
            >>> torch.distributions.Normal(0.0, 1.0).expand((2,)).mean
            tensor([0., 0.])
        """
        new = self._get_checked_instance(own_class(type(self)), _instance)
        batch_shape = Size(batch_shape)
        self._expand_parameters(new, batch_shape)
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expand_parameters(self, new: Distribution, batch_shape: Size) -> None:
        """Gives `new` the parameters of self, expanded, as Note [Parameters of distributions]."""
        for name in self._kept:
            setattr(new, name, getattr(self, name))
        for name, constraint in self.arg_constraints.items():
            value = self.__dict__.get(name)
            if isinstance(value, Tensor):
                event = value.shape[value.dim() - constraint.event_dim :]
                setattr(new, name, value.expand(batch_shape + event))

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """Returns an instance for expand to fill, if __init__ is still that of `cls`."""
        if _instance is not None:
            return _instance
        if type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                "method must also define a custom .expand() method."
            )
        return type(self).__new__(type(self))

    @property
    def batch_shape(self) -> Size:
        """The shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one value."""
        return self._event_shape

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError(f"{type(self)} does not implement mean")

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance of each element of a value."""
        raise NotImplementedError(f"{type(self)} does not implement variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation of each element of a value."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Shape = EMPTY) -> Tensor:
        """Returns samples without gradients, sample_shape of each distribution of the batch."""
        with rl.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Shape = EMPTY) -> Tensor:
        """Returns samples that are differentiable functions of the parameters."""
        raise NotImplementedError(f"{type(self)} does not implement rsample")

    def sample_n(self, n: int) -> Tensor:
        """Returns n samples; deprecated, use sample((n,))."""
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """Returns the logarithm of the density, or of the probability, of values."""
        raise NotImplementedError(f"{type(self)} does not implement log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """Returns the probability of what is at most a value."""
        raise NotImplementedError(f"{type(self)} does not implement cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """Returns the value of which cdf gives the probability `value`."""
        raise NotImplementedError(f"{type(self)} does not implement icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Returns all values of a discrete distribution in dim 0.

        Args:
            expand: the other dims are batch_shape; otherwise ones.

        Returns:
            (number of values, *batch_shape, *event_shape).
        """
        raise NotImplementedError(f"{type(self)} does not implement enumerate_support")

    def entropy(self) -> Tensor:
        """Returns the entropy, in nats, of each distribution of the batch."""
        raise NotImplementedError(f"{type(self)} does not implement entropy")

    def perplexity(self) -> Tensor:
        """Returns exp(entropy) of each distribution of the batch."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Shape = EMPTY) -> Size:
        """Returns the shape of samples."""
        if not sample_shape:
            return self._batch_shape + self._event_shape
        if isinstance(sample_shape, int):
            raise TypeError(
                f"{type(self).__name__}: sample_shape must be a tuple of ints, got {sample_shape}. "
                f"Pass ({sample_shape},)."
            )
        return Size(sample_shape) + self._batch_shape + self._event_shape

    def _enumerated(self, values: Tensor, expand: bool) -> Tensor:
        """Returns one-dimensional values in the shape that enumerate_support gives them."""
        values = values.reshape(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values

    def _validate_sample(self, value: Tensor) -> None:
        """Checks the shape of a value and that it is in the support.

        Raises:
            ValueError: it is not a Tensor of such a shape, or outside the support.
        """
        if not isinstance(value, Tensor):
            raise ValueError(
                f"{type(self).__name__}: the value must be a Tensor, not {type(value).__name__}."
            )
        expected = self._batch_shape + self._event_shape
        if value.shape != expected:
            self._check_shape(value.shape, expected)
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support`, by which samples are validated. Use "
                "`validate_args=False` to turn off validation.",
                stacklevel=2,
            )
            return
        if support is None:
            raise AssertionError(f"{type(self).__name__}: support is None.")
        if not support.check(value).all():
            raise ValueError(
                f"{type(self).__name__}: expected the value (shape {tuple(value.shape)}) to be "
                f"within the support {support!r} of {self!r}, but found invalid values:\n{value}"
            )

    def _check_shape(self, shape: Size, expected: Size) -> None:
        event = self._event_shape
        if shape[len(shape) - len(event) :] != event:
            raise ValueError(
                f"{type(self).__name__}: the last dims of the value, of shape {tuple(shape)}, must "
                f"be event_shape {tuple(event)}."
            )
        for size, other in zip(reversed(shape), reversed(expected), strict=False):
            if size != other and size != 1 and other != 1:
                raise ValueError(
                    f"{type(self).__name__}: the value's shape {tuple(shape)} does not broadcast "
                    f"with batch_shape + event_shape {tuple(expected)}."
                )

    def __repr__(self) -> str:
        given = {k: self.__dict__[k] for k in self.arg_constraints if k in self.__dict__}
        shown = (f"{k}: {v if v.numel() == 1 else v.shape}" for k, v in given.items())
        return f"{type(self).__name__}({', '.join(shown)})"
