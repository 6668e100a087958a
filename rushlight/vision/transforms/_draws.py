"""The random numbers of transforms, drawn from Rushlight's generator in torchvision's order.

Both versions of a transform draw here, so that a seed means the same to them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import rushlight as rl
from rushlight import Tensor
from rushlight.vision.transforms._functional.filters import gaussian_blur_image

Range = Sequence[float]


def uniform(low: float, high: float) -> float:
    """A number in [low, high)."""
    return rl.empty(1).uniform_(float(low), float(high)).item()


def integer(low: int, high: int) -> int:
    """An integer in [low, high)."""
    return int(rl.randint(low, high, size=(1,)).item())


def chance(p: float) -> bool:
    """True with probability p."""
    return rl.rand(1).item() < p


def _ratio(bounds: Range) -> float:
    """A ratio whose logarithm is uniform, so that a and 1 / a are equally likely."""
    return math.exp(uniform(math.log(bounds[0]), math.log(bounds[1])))


def resized_crop(height: int, width: int, scale: Range, ratio: Range) -> tuple[int, int, int, int]:
    """A window (top, left, height, width) of a part of the area and of some ratio of its sides.

    After ten windows that do not fit it is the largest in the middle whose ratio is allowed.
    """
    for _ in range(10):
        area = height * width * uniform(*scale)
        aspect = _ratio(ratio)
        columns, rows = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < columns <= width and 0 < rows <= height:
            top = integer(0, height - rows + 1)
            return top, integer(0, width - columns + 1), rows, columns
    rows, columns = height, width
    if width / height < min(ratio):
        rows = round(width / min(ratio))
    elif width / height > max(ratio):
        columns = round(height * max(ratio))
    return (height - rows) // 2, (width - columns) // 2, rows, columns


def affine(
    degrees: Range,
    translate: Range | None,
    scale: Range | None,
    shear: Range | None,
    size: Sequence[int],
) -> tuple[float, tuple[int, int], float, tuple[float, float]]:
    """(angle, translation, scale, shear) for an image of (width, height)."""
    angle = uniform(*degrees)
    shift = (0, 0)
    if translate is not None:
        far = float(translate[0] * size[0]), float(translate[1] * size[1])
        shift = round(uniform(-far[0], far[0])), round(uniform(-far[1], far[1]))
    factor = 1.0 if scale is None else uniform(*scale)
    shear_x = uniform(shear[0], shear[1]) if shear is not None else 0.0
    shear_y = uniform(shear[2], shear[3]) if shear is not None and len(shear) == 4 else 0.0
    return angle, shift, factor, (shear_x, shear_y)


def perspective(
    width: int, height: int, distortion_scale: float
) -> tuple[list[list[int]], list[list[int]]]:
    """The corners of an image, and four points near them, from the top left on clockwise."""
    right, bottom = width - 1, height - 1
    reach_x = int(distortion_scale * (width // 2)) + 1
    reach_y = int(distortion_scale * (height // 2)) + 1
    startpoints = [[0, 0], [right, 0], [right, bottom], [0, bottom]]
    endpoints = []
    for x, y in startpoints:
        near_x = integer(width - reach_x, width) if x else integer(0, reach_x)
        near_y = integer(height - reach_y, height) if y else integer(0, reach_y)
        endpoints.append([near_x, near_y])
    return startpoints, endpoints


def displacement(alpha: Range, sigma: Range, size: Sequence[int]) -> Tensor:
    """A smooth displacement (1, height, width, 2) of alpha pixels at most."""
    shifts = []
    for strength, width, length in ((alpha[0], sigma[0], size[1]), (alpha[1], sigma[1], size[0])):
        noise = rl.rand(1, 1, *size) * 2 - 1
        if width > 0.0:
            window = int(8 * width + 1) | 1  # odd
            noise = gaussian_blur_image(noise, [window, window], list(sigma))
        shifts.append(noise * strength / length)
    return rl.cat(shifts, dim=1).permute(0, 2, 3, 1)


def erasing(
    channels: int,
    height: int,
    width: int,
    scale: Range,
    ratio: Range,
    value: Sequence[float] | None,
) -> tuple[int, int, int, int, Tensor] | None:
    """A window (top, left, height, width) and what to write over it; None if ten do not fit."""
    for _ in range(10):
        area = height * width * uniform(*scale)
        aspect = _ratio(ratio)
        rows, columns = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if rows >= height or columns >= width:
            continue
        if value is None:
            paint = rl.empty(channels, rows, columns).normal_()
        else:
            paint = rl.tensor(value)[:, None, None]
        top = integer(0, height - rows + 1)
        return top, integer(0, width - columns + 1), rows, columns, paint
    return None


def jitter(*bounds: Range | None) -> tuple[Tensor, list[float | None]]:
    """The order of four adjustments and a factor for each that has bounds."""
    order = rl.randperm(4)
    return order, [None if each is None else uniform(*each) for each in bounds]
