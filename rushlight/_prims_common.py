"""Names of types, and questions about dtypes, that programs import from PyTorch's insides."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight as rl
from rushlight import Tensor as Tensor
from rushlight.types import Number as Number

__all__ = [
    "DeviceLikeType",
    "corresponding_complex_dtype",
    "corresponding_real_dtype",
    "is_boolean_dtype",
    "is_complex_dtype",
    "is_float_dtype",
    "is_integer_dtype",
    "make_contiguous_strides_for",
    "suggest_memory_format",
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


def corresponding_complex_dtype(dtype: rl.dtype) -> rl.dtype:
    """Returns the complex type whose parts are of a real one."""
    return dtype.to_complex()


def corresponding_real_dtype(dtype: rl.dtype) -> rl.dtype:
    """Returns the type of the parts of a complex one."""
    return dtype.to_real()


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


def suggest_memory_format(x: Tensor) -> rl.memory_format:
    """Returns channels_last for a picture or volume whose channels lie together in memory.

    Example:
        >>> x = torch.ones(2, 3, 4, 4)
        >>> torch._prims_common.suggest_memory_format(x)
        torch.contiguous_format
        >>> torch._prims_common.suggest_memory_format(x.to(memory_format=torch.channels_last))
        torch.channels_last
    """
    if x.layout is not rl.strided or x.dim() not in (4, 5) or x.stride(1) == 0:
        return rl.contiguous_format
    extent = 0
    # Each dim begins where the ones inside it end: channels, pixels from the right, samples.
    for dim in (1, *range(x.dim() - 1, 1, -1), 0):
        size, stride = x.shape[dim], x.stride(dim)
        only_samples = dim == 0 and extent == x.stride(1)  # every order is the same
        if size == 0 or stride < extent or only_samples:
            return rl.contiguous_format
        extent = stride * size
    return rl.channels_last if x.dim() == 4 else rl.channels_last_3d
