"""The ways of interpolating pixels and their names, numbers in Pillow among them."""

from __future__ import annotations

from enum import Enum


class InterpolationMode(Enum):
    """How pixels between the pixels are found.

    Tensors know NEAREST, NEAREST_EXACT, BILINEAR and BICUBIC, Pillow the others too.
    """

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


# Pillow's nearest is what tensors call nearest-exact; its number comes back as NEAREST.
_IN_PILLOW = {
    InterpolationMode.NEAREST_EXACT: 0,
    InterpolationMode.NEAREST: 0,
    InterpolationMode.LANCZOS: 1,
    InterpolationMode.BILINEAR: 2,
    InterpolationMode.BICUBIC: 3,
    InterpolationMode.BOX: 4,
    InterpolationMode.HAMMING: 5,
}
_OF_PILLOW = {number: mode for mode, number in _IN_PILLOW.items()}


def parse_interpolation(interpolation: InterpolationMode | str | int) -> InterpolationMode:
    """The mode of a mode, its name or its number in Pillow."""
    if isinstance(interpolation, InterpolationMode):
        return interpolation
    names = {mode.value: mode for mode in InterpolationMode}
    known = names if isinstance(interpolation, str) else _OF_PILLOW
    if interpolation not in known:
        raise ValueError(
            f"interpolation: got {interpolation!r}. It is an InterpolationMode, one of the names "
            f"{', '.join(names)}, or a number of Pillow."
        )
    return known[interpolation]  # pyright: ignore[reportArgumentType]


def pillow_number(interpolation: InterpolationMode | str | int) -> int:
    """The number in Pillow of a mode, its name or number."""
    return _IN_PILLOW[parse_interpolation(interpolation)]
