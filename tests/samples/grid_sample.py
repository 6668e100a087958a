"""Samples of sampling at grids, one place after the other."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, normal, samples, uniform


def cubic(x: float) -> float:
    a, x = -0.75, abs(x)
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return ((x - 5) * x + 8) * x * a - 4 * a if x < 2 else 0.0


def continued(at: float, size: int, padding: int, align_corners: bool) -> float:
    """A coordinate after what the padding makes of it."""
    if padding == 2:
        low, high = (0, size - 1) if align_corners else (-0.5, size - 0.5)
        if high == low:
            return 0.0
        away = (at - low) % (2 * (high - low))
        at = low + min(away, 2 * (high - low) - away)
    return float(np.clip(at, 0, size - 1)) if padding else at


def taps(x: float, size: int, mode: int, padding: int, aligned: bool) -> list[tuple[int, float]]:
    """The elements of a dim that a coordinate of the grid takes, and their weights."""
    at = (x + 1) / 2 * (size - 1) if aligned else ((x + 1) * size - 1) / 2
    if mode == 2:
        low = int(np.floor(at))
        places = [(continued(low + k, size, padding, aligned), low + k) for k in range(-1, 3)]
        return [(int(place), cubic(at - tap)) for place, tap in places]
    at = continued(at, size, padding, aligned)
    if mode == 1:
        return [(int(np.rint(at)), 1.0)]
    low = int(np.floor(at))
    return [(low, low + 1 - at), (low + 1, at - low)]


def sampled(
    x: np.ndarray, grid: np.ndarray, mode: int, padding: int, align_corners: bool
) -> np.ndarray:
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for place in np.ndindex(*grid.shape[:-1]):
        axes = [
            taps(float(c), n, mode, padding, align_corners)
            for c, n in zip(grid[place], x.shape[:1:-1], strict=True)
        ]
        for combination in itertools.product(*axes):
            index = tuple(i for i, _ in combination[::-1])
            if all(0 <= i < n for i, n in zip(index, x.shape[2:], strict=True)):
                weight = np.prod([w for _, w in combination])
                out[(place[0], slice(None), *place[1:])] += weight * x[(place[0], ..., *index)]
    return out


def places(*shape: int) -> np.ndarray:
    """Coordinates inside and outside, away from where the gradient jumps."""
    return np.round(uniform(*shape, low=-1.6, high=1.6) * 16) / 16 + 0.0173


@samples("grid_sampler_2d", "grid_sampler", ref=sampled, tolerance=1e-8)
def grid_sampler_2d() -> Iterator[Any]:
    for mode, padding, align_corners in itertools.product(range(3), range(3), (False, True)):
        yield Sample(normal(1, 2, 4, 5), places(1, 3, 2, 2), mode, padding, align_corners)
    yield Sample(normal(2, 1, 3, 4), places(2, 3, 47, 2), 0, 0, False)
    yield Sample(normal(1, 2, 1, 1), places(1, 3, 2, 2), 0, 2, True)
    yield Sample(normal(0, 2, 4, 5), places(0, 3, 2, 2), 0, 0, False)
    yield Sample(normal(1, 0, 4, 5), places(1, 3, 2, 2), 0, 0, False)


@samples("grid_sampler_3d", ref=sampled, tolerance=1e-8)
def grid_sampler_3d() -> Iterator[Any]:
    for mode, padding, align_corners in itertools.product(range(2), range(3), (False, True)):
        yield Sample(normal(1, 2, 2, 3, 4), places(1, 2, 2, 1, 3), mode, padding, align_corners)


def affine(theta: np.ndarray, size: list[int], align_corners: bool) -> np.ndarray:
    ends = [
        np.linspace(-1, 1, n) if align_corners else (np.arange(n) * 2 + 1) / n - 1 for n in size[2:]
    ]
    at = np.stack(np.meshgrid(*ends, indexing="ij")[::-1], -1)
    return np.einsum("...j,nij->n...i", at, theta[:, :, :-1]) + theta[:, :, -1].reshape(
        len(theta), *[1] * len(ends), -1
    )


@samples("affine_grid_generator", ref=affine)
def affine_grid_generator() -> Iterator[Any]:
    yield normal(2, 2, 3), [2, 1, 3, 4], False
    yield normal(2, 2, 3), [2, 1, 3, 4], True
    yield normal(1, 3, 4), [1, 2, 2, 3, 2], False
