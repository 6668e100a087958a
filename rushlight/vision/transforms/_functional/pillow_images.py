"""Kernels of Pillow images: Pillow does the work, what it lacks is done on the tensor."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from rushlight.vision._pillow import pillow
from rushlight.vision.transforms._functional import (
    color,
    crops,
    filters,
    resizing,
    warping,
)
from rushlight.vision.transforms._functional.conversions import pil_to_tensor, to_pil_image
from rushlight.vision.transforms._functional.crops import Fill
from rushlight.vision.transforms._functional.interpolation import (
    InterpolationMode,
    pillow_number,
)
from rushlight.vision.transforms._functional.matrices import (
    AffineMap,
    perspective_coefficients,
)
from rushlight.vision.transforms._functional.registry import PillowImage, kernel
from rushlight.vision.transforms._functional.resizing import Interpolation

# Pillow's numbers for Image.transpose and Image.transform.
_LEFT_RIGHT, _TOP_BOTTOM = 0, 1
_AFFINE, _PERSPECTIVE = 0, 2

_BILINEAR, _NEAREST = InterpolationMode.BILINEAR, InterpolationMode.NEAREST


@kernel(crops.horizontal_flip, PillowImage)
def _horizontal_flip(image: Any) -> Any:
    return image.transpose(_LEFT_RIGHT)


@kernel(crops.vertical_flip, PillowImage)
def _vertical_flip(image: Any) -> Any:
    return image.transpose(_TOP_BOTTOM)


@kernel(crops.crop, PillowImage)
def _crop(image: Any, top: int, left: int, height: int, width: int) -> Any:
    return image.crop((left, top, left + width, top + height))


@kernel(resizing.resize, PillowImage)
def _resize(
    image: Any,
    size: int | Sequence[int] | None,
    interpolation: Interpolation = _BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    if antialias is False:
        warnings.warn(
            "resize: antialias is False, but Pillow always averages pixels. Resize a tensor.",
            stacklevel=3,
        )
    old = (image.height, image.width)
    new = resizing.resized_size(old, size, max_size)
    return image if new == old else image.resize(new[::-1], pillow_number(interpolation))


def _fill_of(image: Any, fill: Fill) -> Any:
    """A fill as Pillow wants it: a number for one channel, else a tuple; whole unless in F."""
    channels = len(image.getbands())
    values = crops.fill_values(fill)
    values = values * channels if len(values) == 1 else values
    if len(values) != channels:
        raise ValueError(
            f"fill: got {len(values)} values for an image of {channels} channels. "
            "Give one value, or one for each channel."
        )
    if image.mode != "F":
        values = [int(value) for value in values]
    return tuple(values) if channels > 1 else values[0]


@kernel(crops.pad, PillowImage)
def _pad(
    image: Any,
    padding: int | Sequence[int],
    fill: Fill = 0,
    padding_mode: str = "constant",
) -> Any:
    left, right, top, bottom = crops.parse_padding(padding)
    crops.check_padding_mode(padding_mode)
    if padding_mode != "constant":
        import numpy as np

        # Negative numbers cut, and cannot be left to NumPy.
        inner = (
            max(-left, 0),
            max(-top, 0),
            image.width + min(right, 0),
            image.height + min(bottom, 0),
        )
        array = np.asarray(image.crop(inner))
        rows, columns = (max(top, 0), max(bottom, 0)), (max(left, 0), max(right, 0))
        widths = (rows, columns, (0, 0))[: array.ndim]
        padded = pillow("pad").fromarray(np.pad(array, widths, mode=padding_mode))  # pyright: ignore[reportArgumentType, reportCallIssue]
    else:
        size = (left + image.width + right, top + image.height + bottom)
        padded = pillow("pad").new(image.mode, size, _fill_of(image, fill))
        padded.paste(image, (left, top))
    if image.mode == "P":
        padded.putpalette(image.getpalette())
    return padded


@kernel(warping.affine, PillowImage)
def _affine(
    image: Any,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: float | Sequence[float],
    interpolation: Interpolation = _NEAREST,
    fill: Fill = None,
    center: Sequence[float] | None = None,
) -> Any:
    mapping = AffineMap(angle, translate, scale, shear, center)
    matrix = mapping.inverse(center or (image.width * 0.5, image.height * 0.5))
    number = pillow_number(interpolation)
    return image.transform(image.size, _AFFINE, matrix, number, fillcolor=_fill_of(image, fill))


@kernel(warping.rotate, PillowImage)
def _rotate(
    image: Any,
    angle: float,
    interpolation: Interpolation = _NEAREST,
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Fill = None,
) -> Any:
    number = pillow_number(interpolation)
    return image.rotate(angle, number, expand, center, fillcolor=_fill_of(image, fill))


@kernel(warping.perspective, PillowImage)
def _perspective(
    image: Any,
    startpoints: Sequence[Sequence[int]] | None,
    endpoints: Sequence[Sequence[int]] | None,
    interpolation: Interpolation = _BILINEAR,
    fill: Fill = None,
    coefficients: Sequence[float] | None = None,
) -> Any:
    numbers = perspective_coefficients(startpoints, endpoints, coefficients)
    number = pillow_number(interpolation)
    return image.transform(
        image.size, _PERSPECTIVE, numbers, number, fillcolor=_fill_of(image, fill)
    )


def _enhanced(name: str, image: Any, factor: float) -> Any:
    return getattr(pillow(f"adjust_{name.lower()}", "ImageEnhance"), name)(image).enhance(factor)


@kernel(color.adjust_brightness, PillowImage)
def _adjust_brightness(image: Any, brightness_factor: float) -> Any:
    return _enhanced("Brightness", image, brightness_factor)


@kernel(color.adjust_contrast, PillowImage)
def _adjust_contrast(image: Any, contrast_factor: float) -> Any:
    return _enhanced("Contrast", image, contrast_factor)


@kernel(color.adjust_saturation, PillowImage)
def _adjust_saturation(image: Any, saturation_factor: float) -> Any:
    return _enhanced("Color", image, saturation_factor)


@kernel(filters.adjust_sharpness, PillowImage)
def _adjust_sharpness(image: Any, sharpness_factor: float) -> Any:
    return _enhanced("Sharpness", image, sharpness_factor)


@kernel(color.adjust_hue, PillowImage)
def _adjust_hue(image: Any, hue_factor: float) -> Any:
    color.check_hue(hue_factor)
    if image.mode in ("L", "1", "I", "F"):
        return image
    hue, saturation, value = image.convert("HSV").split()
    shift = int(hue_factor * 255)
    turned = hue.point([(level + shift) % 256 for level in range(256)])
    merged = pillow("adjust_hue").merge("HSV", (turned, saturation, value))
    return merged.convert(image.mode)


@kernel(color.adjust_gamma, PillowImage)
def _adjust_gamma(image: Any, gamma: float, gain: float = 1.0) -> Any:
    color.check_gamma(gamma)
    # The factor is just below the number of levels, as where numbers in [0, 1] become bytes.
    table = [int((256 - 1e-3) * gain * (level / 255.0) ** gamma) for level in range(256)]
    return image.convert("RGB").point(table * 3).convert(image.mode)


@kernel(color.rgb_to_grayscale, PillowImage)
def _grayscale(image: Any, num_output_channels: int = 1) -> Any:
    if num_output_channels not in (1, 3):
        raise ValueError(
            f"rgb_to_grayscale: num_output_channels is {num_output_channels}. It must be 1 or 3."
        )
    gray = image.convert("L")
    return gray if num_output_channels == 1 else gray.convert("RGB")


@kernel(color.grayscale_to_rgb, PillowImage)
def _to_rgb(image: Any) -> Any:
    return image.convert("RGB")


@kernel(color.posterize, PillowImage)
def _posterize(image: Any, bits: int) -> Any:
    return pillow("posterize", "ImageOps").posterize(image, bits)


@kernel(color.solarize, PillowImage)
def _solarize(image: Any, threshold: float) -> Any:
    return pillow("solarize", "ImageOps").solarize(image, threshold)


@kernel(color.invert, PillowImage)
def _invert(image: Any) -> Any:
    return pillow("invert", "ImageOps").invert(image)


@kernel(color.autocontrast, PillowImage)
def _autocontrast(image: Any) -> Any:
    return pillow("autocontrast", "ImageOps").autocontrast(image)


@kernel(color.equalize, PillowImage)
def _equalize(image: Any) -> Any:
    return pillow("equalize", "ImageOps").equalize(image)


@kernel(filters.jpeg, PillowImage)
def _jpeg(image: Any, quality: int) -> Any:
    import io

    file = io.BytesIO()
    image.save(file, format="JPEG", quality=quality)
    return pillow("jpeg").open(file).copy()


@kernel(filters.gaussian_noise, PillowImage)
def _gaussian_noise(image: Any, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> Any:
    raise ValueError(
        "gaussian_noise: got a Pillow image. Noise is added to tensors. Convert it with to_image."
    )


def _register_by_tensors() -> None:
    """What Pillow lacks goes through the tensor and back."""

    def through(tensor_kernel: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(tensor_kernel)
        def call(image: Any, *args: Any, **kwargs: Any) -> Any:
            output = tensor_kernel(pil_to_tensor(image), *args, **kwargs)
            return to_pil_image(output, mode=image.mode)

        return call

    for function, tensor_kernel in (
        (warping.elastic, warping.elastic_image),
        (filters.gaussian_blur, filters.gaussian_blur_image),
        (color.permute_channels, color.permute_channels_image),
        (crops.erase, crops.erase_image),
    ):
        kernel(function, PillowImage)(through(tensor_kernel))


_register_by_tensors()
