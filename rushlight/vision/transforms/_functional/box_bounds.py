"""Rotated boxes as rectangles again: after a map that skews them, and cut at the image's border.

Boxes are corners, (N, 8): x and y of four points in turn.
"""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import Tensor


def rectangle_around(corners: Tensor) -> Tensor:
    """The rectangle about a parallelogram that keeps its middle and its longer side's direction."""
    exact = corners if corners.dtype in (rl.float32, rl.float64) else corners.float()
    x1, y1, x2, y2, x3, y3, x4, y4 = exact.unbind(-1)
    middle_x, middle_y = (x1 + x3) / 2, (y1 + y3) / 2
    first = ((x2 - x1).pow(2) + (y2 - y1).pow(2)).sqrt()
    second = ((x4 - x1).pow(2) + (y4 - y1).pow(2)).sqrt()
    first_angle = rl.atan2(y1 - y2, x2 - x1)
    second_angle = rl.atan2(y1 - y4, x4 - x1)

    between = first_angle - second_angle
    sign = rl.where(between > math.pi / 2, -1, 1)
    cos, sin = between.cos(), between.sin()
    width = rl.where(first < second, first * sin, first + second * cos * sign)
    height = rl.where(first > second, second * sin, second + first * cos * sign)

    angle = rl.where(second > first, second_angle + math.pi / 2, first_angle)
    cos, sin = angle.cos(), angle.sin()
    along_x, along_y = width / 2 * cos, -width / 2 * sin
    across_x, across_y = height / 2 * sin, height / 2 * cos
    points = []
    for along, across in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
        points.append(middle_x + along * along_x + across * across_x)
        points.append(middle_y + along * along_y + across * across_y)
    return rl.stack(points, dim=-1).to(corners.dtype)


def clamp_rotated(corners: Tensor, canvas_size: tuple[int, int], mode: str) -> Tensor:
    """Boxes cut at the border of an image.

    The image is turned by a quarter four times, so that each of its sides is once the one at the
    left, where boxes are cut. The uncut boxes turn with them: they bound what may change.
    """
    boxes, whole = corners.clone(), corners.clone()
    height, width = canvas_size
    for _ in range(4):
        order = _from_leftmost(boxes)
        boxes, whole = boxes.gather(1, order), whole.gather(1, order)
        boxes = _cut_at_left(boxes, whole, (height, width), mode)
        boxes, whole = boxes.gather(1, order), whole.gather(1, order)
        boxes, whole = _turned(boxes, width), _turned(whole, width)
        height, width = width, height
    return boxes


def _turned(corners: Tensor, width: int) -> Tensor:
    return rl.stack((corners[:, 1::2], width - corners[:, ::2]), dim=-1).flatten(1)


def _from_leftmost(corners: Tensor) -> Tensor:
    """The columns of corners from the point on that is leftmost, and highest among equals."""
    x, y = corners[:, ::2], corners[:, 1::2]
    place = y / y.abs().amax(1, keepdim=True) + x / x.abs().amax(1, keepdim=True) * 100
    start = place.argmin(dim=1, keepdim=True) * 2
    return (start + rl.arange(8, device=corners.device)) % 8


def _lines(corners: Tensor) -> tuple[Tensor, Tensor]:
    """Slopes and intercepts of the sides, (N, 4) each; side i goes from point i to the next."""
    x, y = corners[:, ::2], corners[:, 1::2]
    slope = (y.roll(-1, 1) - y) / (x.roll(-1, 1) - x)
    return slope, y - slope * x


def _meetings(slope: Tensor, intercept: Tensor) -> Tensor:
    """The corners where each side meets the one before it."""
    x = (intercept.roll(1, 1) - intercept) / (slope - slope.roll(1, 1))
    return rl.stack((x, slope * x + intercept), dim=-1).flatten(1)


def _cut_intercepts(boxes: Tensor, whole: Tensor, canvas: tuple[int, int], mode: str) -> Tensor:
    height, width = canvas
    slope, intercept = _lines(boxes)
    a1, a2, a3, a4 = slope.unbind(-1)
    b1, b2, b3, b4 = intercept.unbind(-1)
    b1_whole, b2_whole, b3_whole, b4_whole = _lines(whole)[1].unbind(-1)

    b1, b4 = b2.clamp(b1, b3).clamp(0, height), b3.clamp(b2, b4).clamp(0, height)
    if mode == "hard":
        # Both sides that meet at the left go through one point of it, the other two move inwards.
        b1 = b4 = (b1 + b4) / 2
        lower = (b1 * a2 / a1, b3 * a2 / a3, (a1 - a2) * width + b1, (a3 - a2) * width + b3)
        b2 = rl.stack(lower, dim=1).amax(dim=1).clamp(max=b2)
        upper = (
            height * (1 - a3 / a4) + b4 * a3 / a4,
            height * (1 - a3 / a2) + b2 * a3 / a2,
            (a2 - a3) * width + b2,
            (a4 - a3) * width + b4,
        )
        b3 = rl.stack(upper, dim=1).amin(dim=1).clamp(min=b3)
        b1 = b4 = b1.clamp(b1_whole, b3_whole).clamp(b2_whole, b4_whole)
    else:
        b1, b4 = b1.clamp(b1_whole, b3_whole), b4.clamp(b2_whole, b4_whole)
    b3, b2 = b3.clamp(b1_whole, b3_whole), b2.clamp(b2_whole, b4_whole)
    return rl.stack((b1, b2, b3, b4), dim=-1)


def _cut_at_left(boxes: Tensor, whole: Tensor, canvas: tuple[int, int], mode: str) -> Tensor:
    """Boxes whose first point is the leftmost, without what lies left of the image."""
    slope, _ = _lines(boxes)
    slanted = _meetings(slope, _cut_intercepts(boxes, whole, canvas, mode))
    x1, y1, x2, y2, x3, y3, x4, y4 = boxes.unbind(-1)
    upright = boxes.clone()
    upright[:, 0].clamp_(0)
    upright[:, 6].clamp_(0)

    is_slanted = (x1 < 0) & ~slanted.isnan().any(-1)
    is_upright = y1.isclose(y2) | y3.isclose(y4)
    outside = (x1 <= 0) & (x2 <= 0) & (x3 <= 0) & (x4 <= 0)
    is_empty = outside | y1.isclose(y4) | y2.isclose(y3) | (is_upright & x1.isclose(x2))
    for condition, case in (
        (is_slanted, slanted),
        (is_upright, upright),
        (is_empty, rl.zeros_like(boxes)),
    ):
        boxes = rl.where(condition[:, None], case, boxes)
    return boxes
