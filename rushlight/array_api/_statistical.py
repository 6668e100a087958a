"""Sums, means and what else takes many elements to one, and differences between neighbors."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from math import nan

import rushlight as rl
from rushlight import Tensor
from rushlight._dims import wrapped_dim
from rushlight.array_api._data_types import UNSIGNED, is_integral, promoted

Axes = int | tuple[int, ...] | None


def _sum_dtype(x: Tensor, dtype: rl.dtype | None) -> rl.dtype:
    """The dtype of sums and products: integers are added in 64 bits."""
    if dtype is not None:
        return dtype
    if x.dtype in UNSIGNED:
        return rl.uint64
    return rl.int64 if is_integral(x.dtype) or x.dtype is rl.bool else x.dtype


def _reduced(function: Callable[..., Tensor], x: Tensor, axis: Axes, keepdims: bool) -> Tensor:
    """function(x, dim, keepdim) over several axes, taken as one for functions of one dim."""
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    axes = sorted(wrapped_dim(a, x.ndim) for a in axes)
    if len(set(axes)) < len(axes):
        raise ValueError(f"axis {axis} names a dim twice.")
    others = [d for d in range(x.ndim) if d not in axes]
    moved = rl.permute(x, (*others, *axes))
    result = function(moved.reshape(*(x.shape[d] for d in others), -1), -1)
    if keepdims:
        result = result.reshape([1 if d in axes else x.shape[d] for d in range(x.ndim)])
    return result


def sum(
    x: Tensor,
    /,
    *,
    axis: Axes = None,
    dtype: rl.dtype | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Returns the sums over axes, in int64 or uint64 for integers unless dtype says otherwise.

    Example:
        >>> xp.sum(xp.ones((2, 3), dtype=xp.uint8), axis=0)
        tensor([2, 2, 2], dtype=torch.uint64)
    """
    dtype = _sum_dtype(x, dtype)
    if axis == ():  # which is all dims to PyTorch
        return x.to(dtype, copy=True)
    return rl.sum(x, axis, keepdim=keepdims, dtype=dtype)


def prod(
    x: Tensor,
    /,
    *,
    axis: Axes = None,
    dtype: rl.dtype | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Returns the products over axes, in int64 or uint64 for integers unless dtype is given."""
    dtype = _sum_dtype(x, dtype)
    if axis == ():
        return x.to(dtype, copy=True)
    if isinstance(axis, int):
        return rl.prod(x, axis, keepdims, dtype=dtype)
    return _reduced(lambda y, dim: rl.prod(y, dim, dtype=dtype), x, axis, keepdims)


def mean(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Returns the means over axes."""
    return x.clone() if axis == () else rl.mean(x, axis, keepdim=keepdims)


def var(
    x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """Returns the variances over axes, of the whole or, with a correction of 1, of a sample.

    They are NaN where the correction leaves no elements.
    """
    if axis == ():
        result, count = _reduced(lambda y, dim: rl.var(y, dim, correction=0), x, axis, keepdims), 1
    else:
        result = rl.var(x, axis, correction=correction, keepdim=keepdims)
        count = x.numel() // builtins.max(result.numel(), 1)
    return result if count > correction else rl.full_like(result, nan)


def std(
    x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """Returns the standard deviations over axes; see var.

    Example:
        >>> xp.std(xp.asarray([1.0, 3.0])), xp.std(xp.asarray([1.0, 3.0]), correction=1)
        (tensor(1.), tensor(1.4142))
    """
    return rl.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def max(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Returns the largest elements over axes, NaN where there is one."""
    return x.clone() if axis == () else rl.amax(x, axis, keepdim=keepdims)


def min(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Returns the smallest elements over axes, NaN where there is one."""
    return x.clone() if axis == () else rl.amin(x, axis, keepdim=keepdims)


def all(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Returns whether no element over axes is zero."""
    return rl.all(x.bool(), axis, keepdim=keepdims)


def any(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Returns whether some element over axes is not zero."""
    return rl.any(x.bool(), axis, keepdim=keepdims)


def _cumulative(
    function: Callable[..., Tensor],
    start: int,
    x: Tensor,
    axis: int | None,
    dtype: rl.dtype | None,
    include_initial: bool,
) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"axis is required for an array of {x.ndim} dims.")
        axis = 0
    result = function(x, axis, dtype=_sum_dtype(x, dtype))
    if include_initial:
        sizes = list(x.shape)
        sizes[axis] = 1
        result = rl.cat([result.new_full(sizes, start), result], axis)
    return result


def cumulative_sum(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: rl.dtype | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Returns the sums up to each element along an axis, from 0 with include_initial.

    Example:
        >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True)
        tensor([0, 1, 3, 6])
    """
    return _cumulative(rl.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: rl.dtype | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Returns the products up to each element along an axis, from 1 with include_initial."""
    return _cumulative(rl.cumprod, 1, x, axis, dtype, include_initial)


def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Returns the n-th differences between neighbors along an axis.

    Args:
        prepend: what stands before x along the axis.
        append: what stands behind it.

    Example:
        >>> xp.diff(xp.asarray([1, 4, 9, 16]), n=2)
        tensor([2, 2])
    """
    if n < 0:
        raise ValueError(f"diff: n must not be negative, but is {n}.")
    axis = wrapped_dim(axis, x.ndim)
    parts = [part for part in (prepend, x, append) if part is not None]
    x = rl.cat(promoted(*parts), axis) if len(parts) > 1 else x
    for _ in range(n):
        length = builtins.max(x.shape[axis] - 1, 0)
        later, earlier = x.narrow(axis, x.shape[axis] - length, length), x.narrow(axis, 0, length)
        x = later ^ earlier if x.dtype is rl.bool else later - earlier
    return x
