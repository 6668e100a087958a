"""What distributions with probs or logits share: one of them is given, the other is lazy.

Of one probability each (Bernoulli, ...), and of a vector in the last dim (Categorical, ...).
"""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Size, Tensor
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import (
    EMPTY,
    Parameter,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)


def check_one(owner: object, probs: object, logits: object) -> None:
    """Raises ValueError unless one of probs and logits is given."""
    if (probs is None) == (logits is None):
        raise ValueError(
            f"{type(owner).__name__}: either `probs` or `logits` must be specified, but not both."
        )


class _Chances(Distribution):
    probs: Any
    logits: Any

    @property
    def _param(self) -> Tensor:
        """The one that was given."""
        given = self.__dict__.get("probs")
        return self.logits if given is None else given

    @property
    def param_shape(self) -> Size:
        """The shape of probs and logits."""
        return self._param.shape


class BinaryChances(_Chances):
    """Has the probability of a success, or its log odds."""

    arg_constraints = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }

    def _adopt_chances(
        self,
        probs: Parameter | None,
        logits: Parameter | None,
        validate_args: bool | None,
        **others: Any,
    ) -> None:
        check_one(self, probs, logits)
        if logits is None and probs is not None:
            self._adopt(validate_args, probs=probs, **others)
        elif logits is not None:
            self._adopt(validate_args, logits=logits, **others)

    @lazy_property
    def logits(self) -> Tensor:
        """log(probs / (1 - probs))"""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The probability of a success."""
        return logits_to_probs(self.logits, is_binary=True)


class CategoryChances(_Chances):
    """Has the probabilities of categories, or their logarithms, normalized, in the last dim."""

    _of_vectors = False  # whether a value has a number for each category
    arg_constraints = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }

    def _adopt_chances(
        self,
        probs: Tensor | None,
        logits: Tensor | None,
        validate_args: bool | None,
    ) -> None:
        check_one(self, probs, logits)
        given = logits if probs is None else probs
        assert given is not None
        if given.dim() < 1:
            name = "logits" if probs is None else "probs"
            raise ValueError(
                f"{type(self).__name__}: `{name}` parameter must be at least one-dimensional."
            )
        shape = given.shape
        if probs is None:
            vars(self)["logits"] = rl.log_softmax(given, -1)
        else:
            vars(self)["probs"] = given / given.sum(-1, keepdim=True)
        event_shape = shape[-1:] if self._of_vectors else EMPTY
        super().__init__(shape[:-1], event_shape, validate_args)

    @property
    def _num_events(self) -> int:
        return self._param.shape[-1]

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithms of probs."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities, of sum 1."""
        return logits_to_probs(self.logits)
