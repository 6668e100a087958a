"""Numeric functions of the package root whose arguments or results come one for each dim."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import _C, Tensor, return_types
from rushlight._dims import wrapped_dim
from rushlight._overridable import overridable


@overridable
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
        spacing: distance of neighbors, one for all dims or one for each; or a vector of places for
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
    dims = [wrapped_dim(d, input.dim()) for d in dims]
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"gradient: dims must be different, but are {dims}.")
    for d in dims:
        if input.shape[d] < edge_order + 1:
            raise RuntimeError(
                "gradient: each dimension size must be at least edge_order + 1 = "
                f"{edge_order + 1}, but dim {d} has size {input.shape[d]}."
            )
    spacing = 1 if spacing is None else spacing
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
    slopes = []
    for d, places in zip(dims, spacings, strict=True):
        parts = _slope(input.movedim(d, -1), places, edge_order)
        slopes.append(rl.cat([part.movedim(-1, d) for part in parts], d))
    return tuple(slopes)


def _slope(f: Tensor, places: Any, edge_order: int) -> list[Tensor]:
    """The derivative along the last dim, in pieces, from places or the distance of neighbors."""
    steps: Any
    if isinstance(places, Tensor) and places.dim() > 0:
        if places.dim() != 1 or len(places) != f.shape[-1]:
            raise RuntimeError(
                f"gradient: places must be a vector of {f.shape[-1]} elements, but have shape "
                f"{tuple(places.shape)}."
            )
        f = f.to(rl.promote_types(f.dtype, places.dtype))
        steps = places.diff()
        before, after = steps[:-1], steps[1:]
        first, last, ends = steps[0], steps[-1], (steps[:2], steps[-2:].flip(0))
    else:
        before = after = first = last = places
        ends = ((places, places), (places, places))
    if before is after:
        middle = (f[..., 2:] - f[..., :-2]) / (2 * before)
    else:  # of a parabola through three points with gaps `before` and `after`
        middle = (
            (f[..., 1:-1] - f[..., :-2]) / before * after
            + (f[..., 2:] - f[..., 1:-1]) / after * before
        ) / (before + after)
    if edge_order == 1:
        left, right = (f[..., 1] - f[..., 0]) / first, (f[..., -1] - f[..., -2]) / last
    else:
        left, right = _end_slope(f[..., :3], *ends[0]), -_end_slope(f[..., -3:].flip(-1), *ends[1])
    return [left.unsqueeze(-1), middle, right.unsqueeze(-1)]


def _end_slope(f: Tensor, near: Any, far: Any) -> Tensor:
    """The slope at the first of three points of a parabola, which are `near` and `far` apart."""
    slope_near, slope_far = (f[..., 1] - f[..., 0]) / near, (f[..., 2] - f[..., 1]) / far
    return slope_near + (slope_near - slope_far) * near / (near + far)


@overridable
def hash_tensor(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    mode: int = 0,
    out: Tensor | None = None,
) -> Tensor:
    """Returns hashes of the elements over dims: all bits of their 64-bit forms, joined by xor.

    Floats are read as float64 and integers as int64 first, so that equal numbers of different
    dtypes have one hash.

    Args:
        input: real numbers.
        dim: dims to reduce; all of them unless given.
        keepdim: whether these dims stay, with size 1.
        mode: 0, the only one there is.
        out: where the result is written.

    Returns:
        Hashes, uint64.

    Raises:
        RuntimeError: if mode is not 0, there are no elements and no dim, or a dim is named twice.
        IndexError: if a dim to reduce has size 0.

    Example:
        >>> torch.hash_tensor(torch.tensor([1, 2, 4]))
        tensor(7, dtype=torch.uint64)
    """
    if mode != 0:
        raise RuntimeError(f"hash_tensor: mode must be 0, but is {mode}.")
    if input.dtype.is_complex:
        raise NotImplementedError(f"hash_tensor: not implemented for {input.dtype._name}.")
    if dim is None and input.numel() == 0:
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. "
            "Specify the reduction dim with the 'dim' argument."
        )
    is_float = input.dtype.is_floating_point
    bits = input.detach().double().view(rl.int64) if is_float else input.to(rl.int64)
    dims = [dim] if isinstance(dim, int) else dim or range(input.dim())
    dims = sorted((wrapped_dim(d, input.dim()) for d in dims), reverse=True) if input.dim() else []
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"hash_tensor: a dim appears multiple times in the list of dims {dim}.")
    for d in dims:
        if bits.shape[d] == 0:
            raise IndexError(f"hash_tensor: Expected reduction dim {d} to have non-zero size.")
        while bits.shape[d] > 1:  # halves upon each other
            half = bits.shape[d] // 2
            joined = bits.narrow(d, 0, half) ^ bits.narrow(d, half, half)
            rest = bits.narrow(d, 2 * half, bits.shape[d] - 2 * half)
            bits = rl.cat([joined, rest], d)
        bits = bits if keepdim else bits.squeeze(d)
    result = bits.view(rl.uint64)
    return result if out is None else rl.clone(result, out=out)


@overridable
def histogram(
    input: Tensor,
    bins: int | Tensor = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: tuple[Tensor, Tensor] | None = None,
) -> return_types.histogram:
    """Returns how many elements fall into each bin, and the edges of the bins.

    Bins contain their left edge, and the last one its right edge too. Elements outside do not
    count.

    Args:
        input: floats of any shape.
        bins: the number of bins of equal width, or their edges in ascending order.
        range: the outermost edges; the smallest and the largest element unless given.
        weight: what each element counts, of the input's shape and dtype; 1 unless given.
        density: whether to divide by the sum and the widths, so that the integral is 1.
        out: where hist and bin_edges are written.

    Returns:
        The named tuple (hist, bin_edges), both of the input's dtype.

    Raises:
        RuntimeError: if bins, range or weight do not fit.

    Example:
        >>> torch.histogram(torch.tensor([1.0, 2.0, 1.0]), bins=4, range=(0.0, 3.0)).hist
        tensor([0., 2., 1., 0.])
    """
    hist, edges = _histogram(
        "histogram", input.reshape(-1, 1), [bins], range, _flat(weight, input.shape), density
    )
    if out is not None:
        hist, edges = rl.clone(hist, out=out[0]), [rl.clone(edges[0], out=out[1])]
    return _named(return_types.histogram, hist, edges[0])


@overridable
def histogramdd(
    input: Tensor,
    bins: int | Sequence[int] | Sequence[Tensor],
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> return_types.histogramdd:
    """Returns how many points fall into each bin of a grid, and the edges of the bins by dim.

    Args:
        input: points along the last dim: (*, D).
        bins: the number of bins of equal width, one for all D dims or one for each; or their edges.
        range: the outermost edges of each dim, 2 * D numbers; those of the data unless given.
        weight: what each point counts, of shape (*) and the input's dtype; 1 unless given.
        density: whether to divide by the sum and the volumes, so that the integral is 1.

    Returns:
        The named tuple (hist, bin_edges), where bin_edges is a tuple with a tensor for each dim.

    Raises:
        RuntimeError: if bins, range or weight do not fit.

    Example:
        >>> points = torch.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
        >>> torch.histogramdd(points, bins=2).hist.tolist()
        [[0.0, 1.0], [1.0, 1.0]]
    """
    if input.dim() < 2:
        raise RuntimeError(
            f"histogramdd: input must have at least 2 dims, but has shape {tuple(input.shape)}."
        )
    dims = input.shape[-1]
    each: Any = [bins] * dims if isinstance(bins, int) else list(bins)
    if len(each) != dims:
        raise RuntimeError(
            f"histogramdd: bins must have one entry for each of {dims} dims, but have {len(each)}."
        )
    weight = _flat(weight, input.shape[:-1])
    return _named(
        return_types.histogramdd,
        *_histogram("histogramdd", input.reshape(-1, dims), each, range, weight, density),
    )


def _named(kind: Any, *results: Any) -> Any:
    return kind(results)


def _flat(weight: Tensor | None, shape: Sequence[int]) -> Tensor | None:
    if weight is not None and tuple(weight.shape) != tuple(shape):
        raise RuntimeError(
            f"histogram: weight has shape {tuple(weight.shape)}, but must have {tuple(shape)}, one "
            f"for each element that is counted."
        )
    return None if weight is None else weight.reshape(-1)


def _histogram(
    op: str, points: Tensor, bins: list[Any], range: Any, weight: Tensor | None, density: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The histogram of points (N, D), and the edges by dim."""
    even = not any(isinstance(b, Tensor) for b in bins)
    if range is not None and not even:
        raise RuntimeError(f"{op}: range cannot be given together with edges; leave it out.")
    if range is not None and len(range) != 2 * len(bins):
        raise RuntimeError(f"{op}: range must have {2 * len(bins)} numbers, but has {len(range)}.")
    edges = []
    for d, count in enumerate(bins):
        if isinstance(count, Tensor):
            edges.append(count)
            continue
        if count <= 0:
            raise RuntimeError(f"{op}: bins must be positive, but is {count}.")
        low, high = range[2 * d : 2 * d + 2] if range is not None else _extent(points[:, d])
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(f"{op}: dimension {d}'s range [{low}, {high}] is not finite.")
        if low > high:
            raise RuntimeError(f"{op}: min should not exceed max, but got {low} and {high}.")
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges.append(rl.linspace(low, high, count + 1, dtype=points.dtype, device=points.device))
    hist = _C._histogram(points, edges, weight, even)
    if density:
        hist = hist / hist.sum()
        for d, edge in enumerate(edges):
            hist = hist / edge.diff().reshape([-1] + [1] * (len(edges) - 1 - d))
    return hist, tuple(edges)


def _extent(values: Tensor) -> tuple[float, float]:
    """The smallest and the largest value; 0 and 1 when there are none."""
    if values.numel() == 0:
        return 0.0, 1.0
    low, high = values.aminmax()
    return low.item(), high.item()
