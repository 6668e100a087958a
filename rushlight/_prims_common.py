"""Names of types, and questions about dtypes, that programs import from PyTorch's insides."""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor as Tensor
from rushlight.types import Number as Number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "DeviceLikeType",
    "is_boolean_dtype",
    "is_complex_dtype",
    "is_float_dtype",
    "is_integer_dtype",
    "make_contiguous_strides_for",
]

DeviceLikeType = str | rl.device | int


def is_boolean_dtype(dtype: rl.dtype) -> bool:
    """Returns whether it is bool."""
    return dtype is rl.bool


def is_integer_dtype(dtype: rl.dtype) -> bool:
    """Returns whether it is an integer; bool is not."""
    return not (dtype.is_floating_point or dtype.is_complex or is_boolean_dtype(dtype))


def is_float_dtype(dtype: rl.dtype) -> bool:
    """Returns whether it is a real floating-point type."""
    return dtype.is_floating_point


def is_complex_dtype(dtype: rl.dtype) -> bool:
    """Returns whether it is complex."""
    return dtype.is_complex


def make_contiguous_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """Returns the strides of a tensor whose last dimension is dense.

    Example:
        >>> torch._prims_common.make_contiguous_strides_for((2, 3, 4))
        (12, 4, 1)
    """
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
