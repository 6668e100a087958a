"""Transforms that rotate, shear and bend images; functional says what each does to an image."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from rushlight import Tensor
from rushlight.nn import Module
from rushlight.vision.transforms import _arguments, _draws
from rushlight.vision.transforms import functional as F
from rushlight.vision.transforms._functional.interpolation import parse_interpolation
from rushlight.vision.transforms._random_apply import WithProbability
from rushlight.vision.transforms.functional import InterpolationMode

Interpolation = InterpolationMode | int
Fill = float | Sequence[float]

_BILINEAR, _NEAREST = InterpolationMode.BILINEAR, InterpolationMode.NEAREST


def _checked_fill(fill: Any) -> Any:
    if fill is not None and not isinstance(fill, (Sequence, numbers.Number)):
        raise TypeError(f"fill: got {fill!r}. It must be a number or a sequence of them.")
    return 0 if fill is None else fill


class RandomRotation(Module):
    """Rotate an image by a random angle.

    Args:
        degrees: the bounds of the angle, counter-clockwise, or how far it may be from 0.
        interpolation: how pixels are found.
        expand: whether the result is as large as it must be to hold all of the image.
        center: (x, y) of the point about which it turns; by default the middle.
        fill: the value outside the image.
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        interpolation: Interpolation = _NEAREST,
        expand: bool = False,
        center: Sequence[int] | None = None,
        fill: Fill = 0,
    ) -> None:
        super().__init__()
        self.interpolation = parse_interpolation(interpolation)
        self.degrees = _arguments.angles(degrees, "degrees")
        if center is not None:
            _arguments.check_sequence(center, "center", (2,))
        self.center = center
        self.expand = expand
        self.fill = _checked_fill(fill)

    @staticmethod
    def get_params(degrees: Sequence[float]) -> float:
        """An angle between the bounds."""
        return _draws.uniform(degrees[0], degrees[1])

    def forward(self, img: Any) -> Any:
        angle = self.get_params(self.degrees)
        return F.rotate(img, angle, self.interpolation, self.expand, self.center, self.fill)

    def __repr__(self) -> str:
        center = "" if self.center is None else f", center={self.center}"
        return (
            f"{type(self).__name__}(degrees={self.degrees}, "
            f"interpolation={self.interpolation.value}, expand={self.expand}{center}, "
            f"fill={self.fill})"
        )


class RandomAffine(Module):
    """Rotate, move, scale and shear an image at random; its size stays.

    Args:
        degrees: the bounds of the angle, clockwise, or how far it may be from 0.
        translate: the most by which it moves, as parts of (width, height).
        scale: the bounds of the factor.
        shear: the bounds of the angle along x, those along x and y, or how far from 0 along x.
        interpolation: how pixels are found.
        fill: the value outside the image.
        center: (x, y) of the point about which it is done; by default the middle.
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: Interpolation = _NEAREST,
        fill: Fill = 0,
        center: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        self.interpolation = parse_interpolation(interpolation)
        self.degrees = _arguments.angles(degrees, "degrees")
        _arguments.check_affine(translate, scale, center)
        self.translate = translate
        self.scale = scale
        self.shear = None if shear is None else _arguments.angles(shear, "shear", (2, 4))
        self.fill = _checked_fill(fill)
        self.center = center

    @staticmethod
    def get_params(
        degrees: Sequence[float],
        translate: Sequence[float] | None,
        scale_ranges: Sequence[float] | None,
        shears: Sequence[float] | None,
        img_size: Sequence[int],
    ) -> tuple[float, tuple[int, int], float, tuple[float, float]]:
        """(angle, translation, scale, shear) between the bounds, for (width, height)."""
        return _draws.affine(degrees, translate, scale_ranges, shears, img_size)

    def forward(self, img: Any) -> Any:
        _, height, width = F.get_dimensions(img)
        params = self.get_params(
            self.degrees, self.translate, self.scale, self.shear, [width, height]
        )
        return F.affine(
            img, *params, interpolation=self.interpolation, fill=self.fill, center=self.center
        )

    def __repr__(self) -> str:
        parts = [f"degrees={self.degrees}"]
        parts += [
            f"{name}={getattr(self, name)}"
            for name in ("translate", "scale", "shear")
            if getattr(self, name) is not None
        ]
        if self.interpolation is not _NEAREST:
            parts.append(f"interpolation={self.interpolation.value}")
        if self.fill != 0:
            parts.append(f"fill={self.fill}")
        if self.center is not None:
            parts.append(f"center={self.center}")
        return f"{type(self).__name__}({', '.join(parts)})"


class RandomPerspective(WithProbability):
    """Show an image as seen from a random place.

    Args:
        distortion_scale: how far the corners may come in, from 0 to 1, half the side.
        p: the probability of doing it.
        interpolation: how pixels are found.
        fill: the value outside the image.
    """

    def __init__(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: Interpolation = _BILINEAR,
        fill: Fill = 0,
    ) -> None:
        super().__init__(p)
        self.interpolation = parse_interpolation(interpolation)
        self.distortion_scale = distortion_scale
        self.fill = _checked_fill(fill)

    @staticmethod
    def get_params(
        width: int, height: int, distortion_scale: float
    ) -> tuple[list[list[int]], list[list[int]]]:
        """The corners of an image, and where they come to."""
        return _draws.perspective(width, height, distortion_scale)

    def _changed(self, img: Any) -> Any:
        _, height, width = F.get_dimensions(img)
        corners = self.get_params(width, height, self.distortion_scale)
        return F.perspective(img, *corners, self.interpolation, self.fill)


def _pair_of_floats(value: Any, name: str) -> Any:
    if not isinstance(value, (float, Sequence)):
        raise TypeError(f"{name}: got {value!r}. It must be a float or a sequence of two.")
    pair = [value, value] if isinstance(value, float) else value
    if len(pair) != 2:
        raise ValueError(f"{name}: got {len(pair)} numbers. There must be two.")
    if not all(isinstance(number, float) for number in pair):
        raise TypeError(f"{name}: got {value!r}. The numbers must be floats.")
    return pair


class ElasticTransform(Module):
    """Shift the pixels of an image by smooth noise, as if it were seen through water.

    Args:
        alpha: the most in pixels by which they are shifted, or (x, y).
        sigma: how smooth the noise is: the deviation of the Gaussian that blurs it, or (x, y).
        interpolation: how pixels are found.
        fill: the value outside the image.

    Raises:
        TypeError: if alpha or sigma are not floats, or fill is no number or sequence.
        ValueError: if there are more than two.
    """

    def __init__(
        self,
        alpha: float | Sequence[float] = 50.0,
        sigma: float | Sequence[float] = 5.0,
        interpolation: Interpolation = _BILINEAR,
        fill: Fill = 0,
    ) -> None:
        super().__init__()
        self.alpha = _pair_of_floats(alpha, "alpha")
        self.sigma = _pair_of_floats(sigma, "sigma")
        self.interpolation = parse_interpolation(interpolation)
        if not isinstance(fill, (int, float, list, tuple)):
            raise TypeError(f"fill: got {fill!r}. It must be a number or a sequence of them.")
        self.fill = [float(f) for f in (fill if isinstance(fill, (list, tuple)) else [fill])]

    @staticmethod
    def get_params(alpha: Sequence[float], sigma: Sequence[float], size: Sequence[int]) -> Tensor:
        """A displacement (1, height, width, 2) for an image of (height, width)."""
        return _draws.displacement(alpha, sigma, size)

    def forward(self, tensor: Any) -> Any:
        _, height, width = F.get_dimensions(tensor)
        displacement = self.get_params(self.alpha, self.sigma, [height, width])
        return F.elastic_transform(tensor, displacement, self.interpolation, self.fill)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(alpha={self.alpha}, sigma={self.sigma}, "
            f"interpolation={self.interpolation}, fill={self.fill})"
        )
