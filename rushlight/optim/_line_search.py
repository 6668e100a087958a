"""A line search for the strong Wolfe conditions.

Owns the choice of points on a line; what they cost is the caller's function. LBFGS uses it.
"""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rushlight import Tensor

_ENOUGH_DECREASE, _ENOUGH_FLATNESS = 1e-4, 0.9  # c1 and c2 of the conditions
_MOST = 25  # evaluations after the first: where rounding hides the decrease, none is enough


class Point(NamedTuple):
    """A point of the line: its place, the loss, the gradient, and the slope along the line."""

    t: float
    loss: float
    grad: Tensor
    slope: float


def strong_wolfe(
    evaluate: Callable[[float], Point], start: Point, t: float, least_width: float
) -> tuple[Point, int]:
    """Finds a point that is lower than the start by enough, and where the line is flat enough.

    Source: Nocedal and Wright, Numerical optimization (2006), algorithms 3.5 and 3.6, with cubic
    interpolation.

    Args:
        evaluate: returns the point at t.
        start: the point at 0, where the slope is negative.
        t: where to look first.
        least_width: width of the bracket below which the search ends.
    Returns:
        The best point found, and the number of evaluations.
    """

    def is_too_high(point: Point) -> bool:
        return point.loss > start.loss + _ENOUGH_DECREASE * point.t * start.slope

    def is_flat(point: Point) -> bool:
        return abs(point.slope) <= -_ENOUGH_FLATNESS * start.slope

    # Step out until the bracket (previous, point) holds a good point.
    previous, point, count = start, evaluate(t), 0
    while True:
        if count == _MOST:
            previous = start
            break
        if is_too_high(point) or (count > 1 and point.loss >= previous.loss):
            break
        if is_flat(point):
            return point, count + 1
        if point.slope >= 0:
            break
        nearest, farthest = point.t + 0.01 * (point.t - previous.t), 10 * point.t
        t = _lowest_in(nearest, farthest, previous, point)
        previous, point, count = point, evaluate(t), count + 1

    # Narrow it.
    low, high = (previous, point) if previous.loss <= point.loss else (point, previous)
    has_stalled = False
    while count < _MOST and abs(high.t - low.t) >= least_width:
        left, right = sorted((low.t, high.t))
        t = _lowest_in(left, right, low, high)
        margin = 0.1 * (right - left)
        is_near_end = min(right - t, t - left) < margin
        if is_near_end and (has_stalled or t >= right or t <= left):
            t = right - margin if abs(t - right) < abs(t - left) else left + margin
            is_near_end = False
        has_stalled = is_near_end
        point, count = evaluate(t), count + 1
        if is_too_high(point) or point.loss >= low.loss:
            low, high = (low, point) if low.loss <= point.loss else (point, low)
            continue
        if is_flat(point):
            return point, count + 1
        if point.slope * (high.t - low.t) >= 0:
            high = low
        low = point
    return low, count + 1


def _lowest_in(left: float, right: float, a: Point, b: Point) -> float:
    """Where the cubic through two points is lowest in an interval; its middle if nowhere."""
    a, b = (a, b) if a.t <= b.t else (b, a)
    middle, width = (left + right) / 2, b.t - a.t
    if width == 0:
        return middle
    first = a.slope + b.slope + 3 * (a.loss - b.loss) / width
    square = first * first - a.slope * b.slope
    if not square >= 0:
        return middle
    second = square**0.5
    divisor = b.slope - a.slope + 2 * second
    if not divisor:
        return middle
    return min(max(b.t - width * (b.slope + second - first) / divisor, left), right)
