"""The functions of transforms: for Pillow images and for tensors (..., C, H, W).

They are those of v2 (_functional), with the arguments' names and the checks of the first version.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.vision._pillow import is_pil_image
from rushlight.vision.transforms._functional import (
    color,
    crops,
    filters,
    resizing,
    sizes,
    warping,
)
from rushlight.vision.transforms._functional.conversions import (
    convert_image_dtype,
    pil_to_tensor,
    to_pil_image,
    to_tensor,
)
from rushlight.vision.transforms._functional.crops import Fill
from rushlight.vision.transforms._functional.interpolation import (
    InterpolationMode,
    parse_interpolation,
)
from rushlight.vision.transforms._functional.sizes import get_image_size

Interpolation = InterpolationMode | int

__all__ = [
    "InterpolationMode",
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_saturation",
    "adjust_sharpness",
    "affine",
    "autocontrast",
    "center_crop",
    "convert_image_dtype",
    "crop",
    "elastic_transform",
    "equalize",
    "erase",
    "five_crop",
    "gaussian_blur",
    "get_dimensions",
    "get_image_num_channels",
    "get_image_size",
    "hflip",
    "invert",
    "normalize",
    "pad",
    "perspective",
    "pil_to_tensor",
    "posterize",
    "resize",
    "resized_crop",
    "rgb_to_grayscale",
    "rotate",
    "solarize",
    "ten_crop",
    "to_grayscale",
    "to_pil_image",
    "to_tensor",
    "vflip",
]

_BILINEAR, _NEAREST = InterpolationMode.BILINEAR, InterpolationMode.NEAREST


def _mode(interpolation: Any) -> InterpolationMode:
    if not isinstance(interpolation, (InterpolationMode, int)):
        raise TypeError(
            f"interpolation: got {interpolation!r}. It must be an InterpolationMode or a number of "
            "Pillow."
        )
    return parse_interpolation(interpolation)


def _check_colors(name: str, img: Any, bytes_only: bool = False) -> None:
    """Refuse tensors that are no gray or RGB images."""
    if not isinstance(img, Tensor):
        return
    if img.ndim < 3 or img.shape[-3] not in (1, 3):
        raise TypeError(
            f"{name}: the shape is {tuple(img.shape)}. An image has one or three channels, "
            "(..., C, H, W)."
        )
    if bytes_only and img.dtype != rl.uint8:
        raise TypeError(f"{name}: the image is {img.dtype}. It must be torch.uint8.")


def get_dimensions(img: Any) -> list[int]:
    """The [channels, height, width] of an image."""
    return sizes.get_dimensions(img)


def get_image_num_channels(img: Any) -> int:
    """The number of channels of an image."""
    return sizes.get_num_channels(img)


def hflip(img: Any) -> Any:
    """Flip an image from left to right."""
    return crops.horizontal_flip(img)


def vflip(img: Any) -> Any:
    """Flip an image upside down."""
    return crops.vertical_flip(img)


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """Cut a window out of an image; what lies outside of it is zero."""
    return crops.crop(img, top, left, height, width)


def center_crop(img: Any, output_size: int | Sequence[int]) -> Any:
    """Cut the middle (height, width) out of an image; a smaller one gets a border of zeros."""
    return crops.center_crop(img, output_size)


def five_crop(img: Any, size: int | Sequence[int]) -> tuple[Any, ...]:
    """The four corners of an image and its middle; ValueError if the image is smaller."""
    return crops.five_crop(img, size)


def ten_crop(img: Any, size: int | Sequence[int], vertical_flip: bool = False) -> tuple[Any, ...]:
    """The five crops of an image and those of the flipped image; ValueError if it is smaller."""
    return crops.ten_crop(img, size, vertical_flip)


def pad(
    img: Any, padding: int | Sequence[int], fill: Fill = 0, padding_mode: str = "constant"
) -> Any:
    """Add a border to an image.

    Args:
        img: the image.
        padding: its width: one number, [left and right, top and bottom], or [left, top, right,
            bottom]; negative numbers cut.
        fill: the value of a constant border.
        padding_mode: "constant", "edge", "reflect" or "symmetric".

    Raises:
        TypeError: if padding is no number or sequence.
        ValueError: for another number of widths or another mode.

    Example:
        >>> from rushlight.vision.transforms.functional import pad
        >>> pad(torch.ones(1, 1, 2), [1, 0])
        tensor([[[0., 1., 1., 0.]]])
    """
    return crops.pad(img, padding, fill=fill, padding_mode=padding_mode)


def erase(img: Tensor, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool = False) -> Tensor:
    """Write v over the window (i, j, h, w) of a tensor; inplace changes the tensor itself."""
    if is_pil_image(img):
        raise TypeError(
            "erase: got a Pillow image. It must be a tensor. Convert it with to_tensor."
        )
    return crops.erase(img, i, j, h, w, v, inplace=inplace)


def resize(
    img: Any,
    size: int | Sequence[int],
    interpolation: Interpolation = _BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    """Resize an image.

    Args:
        img: the image.
        size: (height, width), or one number for the shorter side.
        interpolation: how pixels are found.
        max_size: the most that the longer side may be.
        antialias: whether pixels are averaged when a tensor becomes smaller; Pillow always does so.

    Raises:
        TypeError: if the interpolation is no mode.
        ValueError: if size and max_size contradict each other.

    Example:
        >>> from rushlight.vision.transforms.functional import resize
        >>> resize(torch.zeros(3, 40, 60), 20).shape
        torch.Size([3, 20, 30])
    """
    return resizing.resize(img, size, _mode(interpolation), max_size, antialias)


def resized_crop(
    img: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: int | Sequence[int],
    interpolation: Interpolation = _BILINEAR,
    antialias: bool | None = True,
) -> Any:
    """Cut a window out of an image and resize it; the arguments are those of crop and resize."""
    return resizing.resized_crop(
        img, top, left, height, width, size, _mode(interpolation), antialias
    )


def affine(
    img: Any,
    angle: float,
    translate: Sequence[int],
    scale: float,
    shear: float | Sequence[float],
    interpolation: Interpolation = _NEAREST,
    fill: Fill = None,
    center: Sequence[int] | None = None,
) -> Any:
    """Rotate, shear, scale and move an image; its size stays.

    Args:
        img: the image.
        angle: degrees, clockwise.
        translate: (x, y) in pixels.
        scale: the factor, positive.
        shear: degrees along x, or (x, y).
        interpolation: nearest or bilinear, for Pillow images also bicubic.
        fill: the value outside the image, one or one for each channel; by default zero.
        center: (x, y) of the point about which it is done; by default the middle.

    Raises:
        TypeError: if an argument is of another type.
        ValueError: if the scale is not positive or a sequence has another length.
    """
    mode = _mode(interpolation)
    return warping.affine(img, angle, translate, scale, shear, mode, fill=fill, center=center)


def rotate(
    img: Any,
    angle: float,
    interpolation: Interpolation = _NEAREST,
    expand: bool = False,
    center: Sequence[int] | None = None,
    fill: Fill = None,
) -> Any:
    """Rotate an image counter-clockwise.

    Args:
        img: the image.
        angle: degrees.
        interpolation: nearest or bilinear, for Pillow images also bicubic.
        expand: whether the result is as large as it must be to hold all of the image.
        center: (x, y) of the point about which it turns; by default the middle.
        fill: the value outside the image, one or one for each channel; by default zero.

    Raises:
        TypeError: if an argument is of another type.
    """
    mode = _mode(interpolation)
    if not isinstance(angle, (int, float)):
        raise TypeError(f"rotate: angle is {angle!r}. It must be a number.")
    if center is not None and not isinstance(center, (list, tuple)):
        raise TypeError(f"rotate: center is {center!r}. It must be a sequence (x, y).")
    return warping.rotate(img, angle, mode, expand=expand, center=center, fill=fill)


def perspective(
    img: Any,
    startpoints: Sequence[Sequence[int]],
    endpoints: Sequence[Sequence[int]],
    interpolation: Interpolation = _BILINEAR,
    fill: Fill = None,
) -> Any:
    """Show an image as seen from elsewhere: four points (x, y) of it come to four others.

    Args:
        img: the image.
        startpoints: the points, usually its corners from the top left on, clockwise.
        endpoints: where they come to.
        interpolation: nearest or bilinear, for Pillow images also bicubic.
        fill: the value outside the image, one or one for each channel; by default zero.
    """
    return warping.perspective(img, startpoints, endpoints, _mode(interpolation), fill=fill)


def elastic_transform(
    img: Any,
    displacement: Tensor,
    interpolation: Interpolation = _BILINEAR,
    fill: Fill = None,
) -> Any:
    """Look each pixel of an image up beside itself.

    Args:
        img: the image.
        displacement: by how much, (1, H, W, 2), in units of half the width and half the height.
        interpolation: nearest or bilinear.
        fill: the value outside the image, one or one for each channel; by default zero.

    Raises:
        TypeError: if the displacement is no tensor.
        ValueError: if its shape does not fit.
    """
    return warping.elastic(img, displacement, _mode(interpolation), fill=fill)


def normalize(
    tensor: Tensor, mean: Sequence[float], std: Sequence[float], inplace: bool = False
) -> Tensor:
    """Subtract a mean and divide by a standard deviation, per channel of a tensor of floats.

    Raises:
        TypeError: if it is no tensor of floating-point numbers.
        ValueError: if it has fewer than three dimensions, or a standard deviation is zero.
    """
    return filters.normalize(tensor, mean, std, inplace=inplace)


def gaussian_blur(
    img: Any, kernel_size: int | Sequence[int], sigma: float | Sequence[float] | None = None
) -> Any:
    """Blur an image with a Gaussian.

    Args:
        img: the image.
        kernel_size: the (width, height) of the window, odd, or one number for both.
        sigma: the (x, y) standard deviations in pixels, or one for both; by default
            0.15 * kernel_size + 0.35.

    Raises:
        TypeError: if a size or sigma is no number or sequence.
        ValueError: if a size is even or a sigma is not positive.
    """
    return filters.gaussian_blur(img, kernel_size, sigma)


def adjust_sharpness(img: Any, sharpness_factor: float) -> Any:
    """Sharpen an image: a factor of 0 smooths it, 1 leaves it, 2 doubles its edges."""
    return filters.adjust_sharpness(img, sharpness_factor)


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """Multiply the values of an image: a factor of 0 gives black, 1 the image."""
    return color.adjust_brightness(img, brightness_factor)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """Multiply the distance to the mean gray: a factor of 0 gives gray, 1 the image."""
    return color.adjust_contrast(img, contrast_factor)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """Multiply the distance of colors to their gray: a factor of 0 gives gray, 1 the image."""
    return color.adjust_saturation(img, saturation_factor)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """Turn the colors around the wheel of hues by a part of a turn, from -0.5 to 0.5."""
    return color.adjust_hue(img, hue_factor)


def adjust_gamma(img: Any, gamma: float, gain: float = 1) -> Any:
    """Raise the values of an image, taken in [0, 1], to a power: gain * value ** gamma."""
    _check_colors("adjust_gamma", img)
    return color.adjust_gamma(img, gamma, gain)


def rgb_to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """Take the colors out of an image, which then has one channel or three equal ones."""
    _check_colors("rgb_to_grayscale", img)
    return color.rgb_to_grayscale(img, num_output_channels)


def to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """Take the colors out of a Pillow image; tensors have rgb_to_grayscale."""
    if not is_pil_image(img):
        raise TypeError(
            f"to_grayscale: got {type(img).__name__}. It must be a Pillow image. "
            "Use rgb_to_grayscale."
        )
    return color.rgb_to_grayscale(img, num_output_channels)


def invert(img: Any) -> Any:
    """Turn an image into its negative."""
    _check_colors("invert", img)
    return color.invert(img)


def posterize(img: Any, bits: int) -> Any:
    """Keep the highest bits, from 0 to 8, of an image of bytes."""
    if not 0 <= bits <= 8:
        raise ValueError(f"posterize: bits is {bits}. It must be from 0 to 8.")
    _check_colors("posterize", img, bytes_only=True)
    return color.posterize(img, bits)


def solarize(img: Any, threshold: float) -> Any:
    """Invert the values of an image from a threshold on."""
    _check_colors("solarize", img)
    return color.solarize(img, threshold)


def autocontrast(img: Any) -> Any:
    """Stretch each channel of an image so that its values reach from black to white."""
    _check_colors("autocontrast", img)
    return color.autocontrast(img)


def equalize(img: Any) -> Any:
    """Make all levels of each channel of an image of bytes about equally frequent."""
    _check_colors("equalize", img, bytes_only=True)
    return color.equalize(img)
