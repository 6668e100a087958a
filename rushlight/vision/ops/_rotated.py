"""The area that two convex quadrilaterals share, for boxes that are turned.

Its corners are those of either that lie inside of the other, and the points where edges cross; in
the order of their angles around their middle, they give the area by the shoelace formula.
"""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor

__all__ = ["shared_area"]

_TOLERANCE = 1e-6  # of the size of a box, for corners that lie on an edge


def _cross(a: Tensor, b: Tensor) -> Tensor:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _inside(points: Tensor, corners: Tensor) -> Tensor:
    """Whether points (..., 4, 2) lie in the quadrilaterals (..., 4, 2)."""
    edges = corners.roll(-1, -2) - corners
    to_points = points[..., :, None, :] - corners[..., None, :, :]  # (..., points, edges, 2)
    sides = _cross(edges[..., None, :, :], to_points)
    slack = _TOLERANCE * edges.square().sum(-1).amax(-1)[..., None]
    return (sides >= -slack[..., None]).all(-1) | (sides <= slack[..., None]).all(-1)


def _crossings(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Where the edges of two quadrilaterals cross, (..., 16, 2), and whether they do."""
    start1, start2 = first[..., :, None, :], second[..., None, :, :]
    edge1 = (first.roll(-1, -2) - first)[..., :, None, :]
    edge2 = (second.roll(-1, -2) - second)[..., None, :, :]
    turn, between = _cross(edge1, edge2), start2 - start1
    is_parallel = turn == 0
    safe = rl.where(is_parallel, 1.0, turn)
    along1, along2 = _cross(between, edge2) / safe, _cross(between, edge1) / safe
    crosses = ~is_parallel & (along1 >= 0) & (along1 <= 1) & (along2 >= 0) & (along2 <= 1)
    points = start1 + along1[..., None] * edge1
    return points.flatten(-3, -2), crosses.flatten(-2)


def shared_area(corners1: Tensor, corners2: Tensor) -> Tensor:
    """Returns the areas (...) that quadrilaterals (..., 8), which broadcast, share."""
    corners1, corners2 = rl.broadcast_tensors(corners1, corners2)
    first, second = corners1.unflatten(-1, (4, 2)), corners2.unflatten(-1, (4, 2))
    crossings, crosses = _crossings(first, second)
    points = rl.cat((first, second, crossings), -2)  # (..., 24, 2)
    counts = rl.cat((_inside(first, second), _inside(second, first), crosses), -1)
    number = counts.sum(-1, keepdim=True)
    middle = (points * counts[..., None]).sum(-2, keepdim=True) / number.clamp(min=1)[..., None]
    around = rl.where(counts[..., None], points - middle, 0.0)
    angles = rl.where(counts, rl.atan2(around[..., 1], around[..., 0]), 4.0)  # the others last
    order = angles.argsort(-1)
    around = around.gather(-2, order[..., None].expand_as(around))
    # What does not count lies in the middle, where it adds nothing, but the last edge must close.
    last = around.gather(-2, (number - 1).clamp(min=0)[..., None].expand(*number.shape, 2))
    closed = rl.cat((last, around[..., :-1, :]), -2)
    return _cross(closed, around).sum(-1).abs() / 2 * (number[..., 0] > 2)
