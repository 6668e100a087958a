"""A line search for the strong Wolfe conditions.

Owns the choice of points on a line; what they cost is the caller's function. LBFGS uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import rushlight as rl
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
    evaluate: Callable[[float], Point],
    start: Point,
    t: float,
    least_width: float,
    decrease: float = _ENOUGH_DECREASE,
    flatness: float = _ENOUGH_FLATNESS,
    most: int = _MOST,
) -> tuple[Point, int]:
    """Finds a point that is lower than the start by enough, and where the line is flat enough.

    Source: Nocedal and Wright, Numerical optimization (2006), algorithms 3.5 and 3.6, with cubic
    interpolation.

    Args:
        evaluate: returns the point at t.
        start: the point at 0, where the slope is negative.
        t: where to look first.
        least_width: width of the bracket below which the search ends.
        decrease, flatness: c1 and c2 of the conditions.
        most: evaluations after the first.

    Returns:
        The best point found, and the number of evaluations.
    """

    def is_too_high(point: Point) -> bool:
        return point.loss > start.loss + decrease * point.t * start.slope

    def is_flat(point: Point) -> bool:
        return abs(point.slope) <= -flatness * start.slope

    # Step out until the bracket (previous, point) holds a good point.
    previous, point, count = start, evaluate(t), 0
    while True:
        if count == most:
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
    while count < most and abs(high.t - low.t) >= least_width:
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


# The same as libraries call it.


def _strong_wolfe(
    obj_func: Callable[[Tensor, float, Tensor], tuple[Any, Tensor]],
    x: Tensor,
    t: float,
    d: Tensor,
    f: Any,
    g: Tensor,
    gtd: Any,
    c1: float = _ENOUGH_DECREASE,
    c2: float = _ENOUGH_FLATNESS,
    tolerance_change: float = 1e-9,
    max_ls: int = _MOST,
) -> tuple[Any, Tensor, float, int]:
    """Searches a line for the strong Wolfe conditions.

    Args:
        obj_func: returns the loss and the gradient at x + t d, for (x, t, d).
        x: where the line begins.
        t: where to look first.
        d: the line's direction.
        f, g, gtd: the loss, the gradient and the slope at x.
        c1, c2: of the conditions.
        tolerance_change: how far the largest element moves at least.
        max_ls: evaluations after the first.

    Returns:
        The loss, the gradient, the t and the number of evaluations.
    """

    def evaluate(t: float) -> Point:
        loss, grad = obj_func(x, t, d)
        return Point(t, loss, grad.clone(), float(grad.dot(d)))

    start = Point(0.0, f, g.clone(), float(gtd))
    width = float(tolerance_change / d.abs().max())  # infinite where nothing moves
    point, count = strong_wolfe(evaluate, start, t, width, c1, c2, max_ls)
    return point.loss, point.grad, point.t, count


def _cubic_interpolate(
    x1: float,
    f1: Any,
    g1: Any,
    x2: float,
    f2: Any,
    g2: Any,
    bounds: tuple[float, float] | None = None,
) -> Any:
    """Where the cubic with losses f1 and f2 and slopes g1 and g2 at x1 and x2 is lowest.

    Args:
        x1, f1, g1, x2, f2, g2: numbers, or tensors with one element.
        bounds: the interval; that of x1 and x2 by default.
    """
    left, right = bounds or (min(x1, x2), max(x1, x2))
    none = rl.empty(0)
    return _lowest_in(left, right, Point(x1, f1, none, g1), Point(x2, f2, none, g2))
