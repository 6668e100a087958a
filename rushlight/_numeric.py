"""Numeric functions of the package root whose results are lists of tensors, one for each dim."""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def gradient(
    input: Tensor,
    *,
    spacing: Any = 1,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """Returns estimates of the derivatives of a function along dims, from its values on a grid.

    Inside they are exact for quadratic functions, at the edges for linear ones, or for quadratic
    ones with edge_order=2.

    Args:
        input: real or complex values.
        spacing: distance of neighbours, one for all dims or one for each; or a vector of places for
            each dim.
        dim: the dims to differentiate along; all of them unless given.
        edge_order: 1 or 2, the order of the estimates at the edges.

    Returns:
        A tensor of the input's shape for each dim.

    Raises:
        RuntimeError: if a dim has fewer than edge_order + 1 elements or repeats, or the spacing
            does not fit.

    Example:
        >>> x = torch.tensor([0.0, 1.0, 2.0, 4.0])
        >>> torch.gradient(x**2, spacing=(x,))[0].tolist()
        [1.0, 2.0, 4.0, 6.0]
    """
    if edge_order not in (1, 2):
        raise RuntimeError(
            f"gradient: only supports edge_order=1 and edge_order=2, not {edge_order}."
        )
    dims = range(input.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    dims = [_wrapped(d, input.dim()) for d in dims]
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"gradient: dims must be different, but are {dims}.")
    for d in dims:
        if input.shape[d] < edge_order + 1:
            raise RuntimeError(
                f"gradient: each dimension size must be at least edge_order + 1 = {edge_order + 1}, "
                f"but dim {d} has size {input.shape[d]}."
            )
    many = isinstance(spacing, (list, tuple))
    spacings = list(spacing) if many else [spacing] * len(dims)
    if isinstance(spacing, Tensor):
        raise RuntimeError("gradient: places must be given as a list with a vector for each dim.")
    if len(spacings) != len(dims):
        raise RuntimeError(
            f"gradient: spacing must be one number or have one for each of {len(dims)} dims, but "
            f"has {len(spacings)}."
        )
    if not input.dtype.is_floating_point and not input.dtype.is_complex:
        input = input.to(rl.get_default_dtype())
    return tuple(
        _slope(input.movedim(d, -1), places, edge_order).movedim(-1, d)
        for d, places in zip(dims, spacings, strict=True)
    )


def _wrapped(dim: int, ndim: int) -> int:
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], "
            f"but got {dim})"
        )
    return dim % ndim


def _slope(f: Tensor, places: Any, edge_order: int) -> Tensor:
    """The derivative along the last dim, from places or the distance of neighbours."""
    steps: Any
    if isinstance(places, Tensor) and places.dim() > 0:
        if places.dim() != 1 or len(places) != f.shape[-1]:
            raise RuntimeError(
                f"gradient: places must be a vector of {f.shape[-1]} elements, but have shape "
                f"{tuple(places.shape)}."
            )
        steps = places.diff()
        before, after = steps[:-1], steps[1:]
        first, last, ends = steps[0], steps[-1], (steps[:2], steps[-2:].flip(0))
    else:
        before = after = first = last = places
        ends = ((places, places), (places, places))
    # The slope at the middle of a parabola through three points with gaps `before` and `after`.
    middle = (
        (f[..., 1:-1] - f[..., :-2]) / before * after + (f[..., 2:] - f[..., 1:-1]) / after * before
    ) / (before + after)
    if edge_order == 1:
        left, right = (f[..., 1] - f[..., 0]) / first, (f[..., -1] - f[..., -2]) / last
    else:
        left, right = _end_slope(f[..., :3], *ends[0]), -_end_slope(f[..., -3:].flip(-1), *ends[1])
    return rl.cat([left.unsqueeze(-1), middle, right.unsqueeze(-1)], -1)


def _end_slope(f: Tensor, near: Any, far: Any) -> Tensor:
    """The slope at the first of three points of a parabola, which are `near` and `far` apart."""
    slope_near, slope_far = (f[..., 1] - f[..., 0]) / near, (f[..., 2] - f[..., 1]) / far
    return slope_near + (slope_near - slope_far) * near / (near + far)


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Returns the coordinates, one tensor for each dim, of places in a flat tensor of this shape.

    Args:
        indices: integers of any shape; negative ones count from the end.
        shape: the sizes of the tensor.

    Raises:
        ValueError: if a size is negative or an index lies outside.
        TypeError: if the indices are not integers.

    Example:
        >>> torch.unravel_index(torch.tensor([7, 2]), (3, 4))
        (tensor([1, 0]), tensor([3, 2]))
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if indices.dtype.is_floating_point or indices.dtype.is_complex or indices.dtype is rl.bool:
        raise TypeError(f"unravel_index: indices must be integers, but are {indices.dtype}.")
    if any(size < 0 for size in sizes):
        raise ValueError(f"unravel_index: sizes must not be negative, but shape is {sizes}.")
    count = math.prod(sizes)
    if indices.numel() and indices.device.type != "meta":
        least, greatest = (int(v) for v in indices.aminmax())
        if least < -count or greatest >= count:
            outside = greatest if greatest >= count else least
            raise ValueError(
                f"unravel_index: index {outside} is out of range for shape {sizes}, which has "
                f"{count} elements."
            )
    coordinates = []
    rest = indices
    for size in reversed(sizes):
        coordinates.append(rest % size if size else rest)
        rest = rest.div(size, rounding_mode="floor") if size else rest
    return tuple(reversed(coordinates))
