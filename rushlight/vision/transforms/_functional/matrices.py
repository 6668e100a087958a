"""The matrices of affine and perspective maps: plain numbers, for images, boxes and points."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any


class AffineMap:
    """Rotation by an angle, shear, scaling and translation about a center, checked.

    Args:
        angle: degrees, clockwise.
        translate: (x, y) in pixels.
        scale: the factor, positive.
        shear: degrees along x, or (x, y).
        center: (x, y), the point that only the translation moves; None for the middle.

    Raises:
        TypeError: if an argument is of another type.
        ValueError: if the scale is not positive or a sequence has another length.
    """

    def __init__(
        self,
        angle: float,
        translate: Sequence[float],
        scale: float,
        shear: float | Sequence[float],
        center: Sequence[float] | None,
    ) -> None:
        if not isinstance(angle, (int, float)):
            raise TypeError(f"affine: angle is {angle!r}. It must be a number.")
        for name, value in (("translate", translate), ("center", center)):
            if value is not None and not isinstance(value, (list, tuple)):
                raise TypeError(f"affine: {name} is {value!r}. It must be a sequence (x, y).")
        if len(translate) != 2:
            raise ValueError(f"affine: translate is {translate!r}. It must be (x, y).")
        if scale <= 0.0:
            raise ValueError(f"affine: scale is {scale}. It must be positive.")
        if not isinstance(shear, (numbers.Number, list, tuple)):
            raise TypeError(f"affine: shear is {shear!r}. It must be a number or (x, y).")
        shears: Any = (shear, 0.0) if isinstance(shear, numbers.Number) else tuple(shear)
        shears = shears * 2 if len(shears) == 1 else shears
        if len(shears) != 2:
            raise ValueError(f"affine: shear is {shear!r}. It must be a number or (x, y).")
        self.center = center
        self._translate = translate
        self._scale = scale
        self._angle = math.radians(angle)
        self._shears = math.radians(shears[0]), math.radians(shears[1])

    def _linear(self) -> tuple[float, float, float, float]:
        """Rotation by shear: R(angle) Shear_y Shear_x, of determinant one."""
        x, y = self._shears
        a = math.cos(self._angle - y) / math.cos(y)
        b = -(a * math.tan(x) + math.sin(self._angle))
        c = math.sin(self._angle - y) / math.cos(y)
        d = math.cos(self._angle) - c * math.tan(x)
        return a, b, c, d

    def forward(self, center: Sequence[float]) -> list[float]:
        """The rows (a, b, x, c, d, y) that map a place of the input to one of the output."""
        a, b, c, d = (self._scale * entry for entry in self._linear())
        x, y = center
        dx, dy = self._translate
        return [a, b, x + dx - a * x - b * y, c, d, y + dy - c * x - d * y]

    def inverse(self, center: Sequence[float]) -> list[float]:
        """The rows that map a place of the output to the one of the input that is seen there."""
        a, b, c, d = self._linear()
        a, b, c, d = d / self._scale, -b / self._scale, -c / self._scale, a / self._scale
        x, y = center
        to_x, to_y = x + self._translate[0], y + self._translate[1]
        return [a, b, x - a * to_x - b * to_y, c, d, y - c * to_x - d * to_y]

    def about_middle(self, width: int, height: int) -> list[float]:
        """The inverse for places that are counted from the middle of an image."""
        x, y = self.center or (width * 0.5, height * 0.5)
        return self.inverse((x - width * 0.5, y - height * 0.5))


def expanded_size(matrix: Sequence[float], width: int, height: int) -> tuple[int, int]:
    """The (width, height) that holds all of an image whose middle is the origin of the map."""
    a, b, x, c, d, y = matrix
    if x == y == 0 and min(abs(a), abs(b)) < 1e-9 and abs(a * d - b * c - 1) < 1e-9:
        # A turn by quarters about the middle, after which no pixel lies between others.
        return (width, height) if abs(a) > abs(b) else (height, width)
    sides = []
    for length, (p, q, shift) in ((width, (a, b, x)), (height, (c, d, y))):
        reach = 0.5 * (abs(p) * width + abs(q) * height)
        middle = shift + 0.5 * length
        # Less than that is an error of rounding, which adds no row of pixels.
        sides.append(math.ceil(middle + reach - 1e-4) - math.floor(middle - reach + 1e-4))
    return sides[0], sides[1]


def perspective_coefficients(
    startpoints: Sequence[Sequence[int]] | None,
    endpoints: Sequence[Sequence[int]] | None,
    coefficients: Sequence[float] | None = None,
) -> list[float]:
    """The eight numbers of the map from endpoints to startpoints, found or checked.

    (x, y) of the output shows ((a x + b y + c) / w, (d x + e y + f) / w) with w = g x + h y + 1.

    Raises:
        ValueError: unless either the corners or eight coefficients are given.
    """
    if coefficients is not None:
        if startpoints is not None and endpoints is not None:
            raise ValueError(
                "perspective: both corners and coefficients are given. Pass one of them."
            )
        if len(coefficients) != 8:
            raise ValueError(f"perspective: got {len(coefficients)} coefficients. There are eight.")
        return list(coefficients)
    if startpoints is None or endpoints is None:
        raise ValueError(
            "perspective: neither the corners nor coefficients are given. Pass startpoints and "
            "endpoints, or coefficients."
        )
    if len(startpoints) != 4 or len(endpoints) != 4:
        raise ValueError(
            f"perspective: got {len(startpoints)} startpoints and {len(endpoints)} endpoints. "
            "An image has four corners."
        )
    import rushlight as rl

    rows = []
    for (x, y), (u, v) in zip(endpoints, startpoints, strict=True):
        rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y])
        rows.append([0, 0, 0, x, y, 1, -v * x, -v * y])
    system = rl.tensor(rows, dtype=rl.float64)
    corners = rl.tensor(startpoints, dtype=rl.float64).view(8, 1)
    solution = rl.linalg.lstsq(system, corners).solution
    return solution.view(8).to(rl.float32).tolist()


def inverse_perspective(coefficients: Sequence[float]) -> list[list[float]]:
    """The 3 by 3 matrix of the map back, scaled so that its last entry is one."""
    a, b, c, d, e, f, g, h = coefficients
    determinant = a * e - b * d
    if determinant == 0:
        raise RuntimeError(
            f"perspective: the coefficients {list(coefficients)} have no inverse. "
            "They map the image to a line, so that boxes and points have no place."
        )
    cofactors = [
        [e - f * h, c * h - b, b * f - c * e],
        [f * g - d, a - c * g, c * d - a * f],
        [d * h - e * g, b * g - a * h, determinant],
    ]
    return [[entry / determinant for entry in row] for row in cofactors]
