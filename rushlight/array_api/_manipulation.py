"""Changes of shape and order."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight as rl
from rushlight import Tensor
from rushlight._dims import wrapped_dim
from rushlight.array_api._data_types import promoted


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Returns the arrays one after the other along an axis, flattened if it is None."""
    joined = promoted(*arrays)
    if axis is None:
        joined, axis = tuple(x.reshape(-1) for x in joined), 0
    return rl.cat(joined, axis)


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...] = 0) -> Tensor:
    """Returns a view with dims of size one at some axes of the result."""
    axes = (axis,) if isinstance(axis, int) else axis
    ndim = x.ndim + len(axes)
    wrapped = sorted({wrapped_dim(a, ndim) for a in axes})
    if len(wrapped) < len(axes):
        raise ValueError(f"expand_dims: axis {axis} names a dim twice.")
    for a in wrapped:
        x = rl.unsqueeze(x, a)
    return x


def flip(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Returns a copy in reverse order along some axes; along all of them if None."""
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    return rl.flip(x, tuple(axes))


def moveaxis(
    x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /
) -> Tensor:
    """Returns a view with some axes moved, the others in order."""
    return rl.movedim(x, source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """Returns a view with the axes in another order."""
    return rl.permute(x, axes)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Returns each element so many times along an axis; of the flattened array if it is None.

    Args:
        repeats: how often, a number for all or an array of one for each.

    Example:
        >>> xp.repeat(xp.asarray([1, 2]), xp.asarray([2, 1]))
        tensor([1, 1, 2])
    """
    if isinstance(repeats, Tensor):
        repeats = repeats.to(rl.int64)
    if x.ndim == 0:
        x = x.reshape(1)
    return rl.repeat_interleave(x, repeats, dim=axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """Returns the elements in another shape.

    Args:
        copy: True copies always, False never, None where it must.

    Raises:
        ValueError: if copy is False and a view is impossible.
    """
    if copy:
        return rl.reshape(x.clone(memory_format=rl.contiguous_format), shape)
    if copy is False:
        try:
            return x.view(shape)
        except RuntimeError as error:
            raise ValueError(str(error)) from error
    return rl.reshape(x, shape)


def roll(
    x: Tensor,
    /,
    shift: int | tuple[int, ...],
    *,
    axis: int | tuple[int, ...] | None = None,
) -> Tensor:
    """Returns the elements moved along axes; those that leave one end come in at the other."""
    if axis is None:
        return rl.roll(x, shift)
    axes = (axis,) if isinstance(axis, int) else axis
    shifts = (shift,) * len(axes) if isinstance(shift, int) else shift
    return rl.roll(x, shifts, axes)


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Returns a view without some dims of size one.

    Raises:
        ValueError: if one of them has another size.
    """
    axes = tuple(wrapped_dim(a, x.ndim) for a in ((axis,) if isinstance(axis, int) else axis))
    for a in axes:
        if x.shape[a] != 1:
            raise ValueError(f"squeeze: dim {a} has size {x.shape[a]}. Only size 1 can go.")
    return rl.squeeze(x, axes)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Returns the arrays side by side along a new axis."""
    return rl.stack(promoted(*arrays), axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """Returns the array repeated as a whole along each axis."""
    return rl.tile(x, repetitions)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Returns the slices along an axis, views."""
    return tuple(rl.unbind(x, axis))
