"""Types that say the sizes of tensors, for annotations that passes read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]


class _DynType:
    """What is not known: a size, or a whole type. There is one, Dyn."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DynType)

    def __hash__(self) -> int:
        return hash(_DynType)

    def __repr__(self) -> str:
        return "Dyn"


Dyn = _DynType()


class TensorType:
    """The type of tensors of given sizes.

    Args:
        dim: the sizes; Dyn for one that is not known.

    Example:
        >>> from rushlight.fx.tensor_type import Dyn, TensorType, is_consistent
        >>> TensorType[2, Dyn]
        TensorType[(2, Dyn)]
        >>> is_consistent(TensorType([2, Dyn]), TensorType([2, 3]))
        True
    """

    def __init__(self, dim: Sequence[Any]) -> None:
        self.__origin__ = TensorType
        self.__args__ = dim

    @property
    def dims(self) -> Sequence[Any]:
        """The sizes."""
        return self.__args__

    def __class_getitem__(cls, sizes: Any) -> TensorType:
        return TensorType(sizes if isinstance(sizes, tuple) else (sizes,))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and list(self.dims) == list(other.dims)

    def __hash__(self) -> int:
        return hash((TensorType, tuple(self.dims)))

    def __repr__(self) -> str:
        return f"TensorType[{self.dims}]"


def is_consistent(t1: object, t2: object) -> bool:
    """Returns whether two types can be of one value: they are equal where both are known."""
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        return len(t1.dims) == len(t2.dims) and all(map(is_consistent, t1.dims, t2.dims))
    return t1 == t2 or Dyn in (t1, t2)


def is_more_precise(t1: object, t2: object) -> bool:
    """Returns whether a type says all that another does, and agrees with it."""
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        return len(t1.dims) == len(t2.dims) and all(map(is_more_precise, t1.dims, t2.dims))
    return t1 == t2 or t2 == Dyn
