"""Indexing by arrays, searching, sorting and sets."""

from __future__ import annotations

from typing import Literal, NamedTuple

import rushlight as rl
from rushlight import Tensor
from rushlight._dims import wrapped_dim
from rushlight.array_api._data_types import Number, as_arrays, promoted


def _from_front(indices: Tensor, size: int) -> Tensor:
    """Indices of which negative ones count from the end."""
    indices = indices.to(rl.int64)
    return rl.where(indices < 0, indices + size, indices)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Returns the slices of the given indices along an axis, which a 1-d array need not have.

    Example:
        >>> xp.take(xp.asarray([10, 20, 30]), xp.asarray([-1, 0]))
        tensor([30, 10])
    """
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: axis is required for an array of {x.ndim} dims.")
        axis = 0
    axis = wrapped_dim(axis, x.ndim)
    flat = _from_front(indices, x.shape[axis]).reshape(-1)
    taken = rl.index_select(x, axis, flat)
    return taken.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Returns elements along an axis, whose indices stand where they shall go.

    Example:
        >>> x = xp.asarray([[3, 1], [5, 7]])
        >>> xp.take_along_axis(x, xp.argsort(x), axis=-1)
        tensor([[1, 3],
                [5, 7]])
    """
    axis = wrapped_dim(axis, x.ndim)
    return rl.take_along_dim(x, _from_front(indices, x.shape[axis]), axis)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Returns the position of the first largest element along an axis, or in the flat array."""
    return rl.argmax(x, axis, keepdim=keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Returns the position of the first smallest element along an axis, or in the flat array."""
    return rl.argmin(x, axis, keepdim=keepdims)


def count_nonzero(
    x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False
) -> Tensor:
    """Returns how many elements over the axes are not zero."""
    return rl.sum(x != 0, _over(x, axis), keepdim=keepdims) if axis != () else (x != 0).long()


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Returns the indices of the elements that are not zero, an array for each axis.

    Raises:
        ValueError: for an array without axes.
    """
    if x.ndim == 0:
        raise ValueError("nonzero: the array must have a dim. Write xp.reshape(x, (1,)).")
    return tuple(rl.nonzero(x, as_tuple=True))


def searchsorted(
    x1: Tensor,
    x2: Tensor,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Tensor | None = None,
) -> Tensor:
    """Returns where the elements of x2 would stand in x1, a sorted 1-d array.

    Args:
        side: before elements that are equal, or behind them.
        sorter: the order of x1, if it is not sorted.

    Example:
        >>> xp.searchsorted(xp.asarray([1, 3, 5]), xp.asarray([3, 4]))
        tensor([1, 2])
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', but is {side!r}.")
    x1, x2 = promoted(x1, x2)
    if sorter is not None:
        x1 = take(x1, sorter)
    return rl.searchsorted(x1, x2, right=side == "right")


def where(condition: Tensor, x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """Returns x1 where the condition is true, x2 elsewhere. One of both may be a number."""
    return rl.where(condition, *as_arrays(x1, x2))


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """Returns where the elements along an axis are, in order; equal ones keep theirs."""
    return rl.argsort(x, axis, descending, stable=True)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Returns the elements along an axis in order; NaN is larger than any number."""
    return rl.sort(x, axis, descending, stable=True)[0]


def _over(x: Tensor, axis: int | tuple[int, ...] | None) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(x.ndim))
    return (axis,) if isinstance(axis, int) else axis


# Sets


class UniqueAllResult(NamedTuple):
    """What unique_all returns."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """What unique_counts returns."""

    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """What unique_inverse returns."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAllResult:
    """Returns the different elements; the first place, all places, and the number of each.

    Every NaN differs from all others.

    Example:
        >>> xp.unique_all(xp.asarray([3, 1, 3])).indices
        tensor([1, 0])
    """
    if x.dtype.is_complex:
        pairs = rl.view_as_real(x.reshape(-1).contiguous())
        pairs, inverse, counts = rl.unique(pairs, return_inverse=True, return_counts=True, dim=0)
        values = rl.view_as_complex(pairs.contiguous())
    else:
        values, inverse, counts = rl.unique(x, return_inverse=True, return_counts=True)
    inverse = inverse.reshape(-1)
    first = rl.argsort(inverse, stable=True)[counts.cumsum(0) - counts]
    return UniqueAllResult(values, first, inverse.reshape(x.shape), counts)


def unique_counts(x: Tensor, /) -> UniqueCountsResult:
    """Returns the different elements, and how often each occurs."""
    values, _, _, counts = unique_all(x)
    return UniqueCountsResult(values, counts)


def unique_inverse(x: Tensor, /) -> UniqueInverseResult:
    """Returns the different elements, and which of them each element is."""
    values, _, inverse, _ = unique_all(x)
    return UniqueInverseResult(values, inverse)


def unique_values(x: Tensor, /) -> Tensor:
    """Returns the different elements."""
    return unique_all(x).values
