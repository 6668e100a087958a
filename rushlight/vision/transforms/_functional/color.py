"""Colors of images: brightness, contrast, saturation, hue, gamma and what counts levels.

Values are [0, max_value(dtype)]; integers are computed as float32 and truncated, as in torchvision.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.vision.transforms._functional.conversions import to_dtype_image
from rushlight.vision.transforms._functional.registry import (
    IMAGES,
    functional,
    kernel,
)
from rushlight.vision.transforms._functional.sizes import max_value

_LUMA = (0.2989, 0.587, 0.114)  # ITU-R 601, as MATLAB rounds it


def _check(name: str, image: Tensor, argument: str, factor: float) -> int:
    """The number of channels, where both they and the factor are allowed."""
    if factor < 0:
        raise ValueError(f"{name}: {argument} is {factor}. It must not be negative.")
    if image.ndim < 3 or image.shape[-3] not in (1, 3):
        raise TypeError(
            f"{name}: the shape is {tuple(image.shape)}. An image has one or three channels, "
            "(..., C, H, W)."
        )
    return image.shape[-3]


def _gray(image: Tensor) -> Tensor:
    """The luma of an RGB image, (..., 1, H, W), as floating-point numbers."""
    red, green, blue = image.split(1, dim=-3)
    gray = red.mul(_LUMA[0])
    return gray.add_(green, alpha=_LUMA[1]).add_(blue, alpha=_LUMA[2])


def _blend(image: Tensor, other: Tensor, ratio: float) -> Tensor:
    mixed = image.mul(float(ratio)).add_(other, alpha=1.0 - ratio)
    return mixed.clamp_(0, max_value(image.dtype)).to(image.dtype)


@functional
def rgb_to_grayscale(inpt: Any, num_output_channels: int = 1) -> Any:
    """Take the colors out of an image.

    Args:
        inpt: an image.
        num_output_channels: 1, or 3 for equal red, green and blue.

    Raises:
        ValueError: for another number.
    """


to_grayscale = rgb_to_grayscale


@kernel(rgb_to_grayscale, *IMAGES)
def rgb_to_grayscale_image(image: Tensor, num_output_channels: int = 1) -> Tensor:
    if num_output_channels not in (1, 3):
        raise ValueError(
            f"rgb_to_grayscale: num_output_channels is {num_output_channels}. It must be 1 or 3."
        )
    gray = image.clone() if image.shape[-3] == 1 else _gray(image).to(image.dtype)
    if num_output_channels == 1:
        return gray
    return gray.expand(*gray.shape[:-3], 3, *gray.shape[-2:])


@functional
def grayscale_to_rgb(inpt: Any) -> Any:
    """Give a gray image three equal channels; one that has three stays as it is."""


@kernel(grayscale_to_rgb, *IMAGES)
def grayscale_to_rgb_image(image: Tensor) -> Tensor:
    return image if image.shape[-3] >= 3 else rgb_to_grayscale_image(image, 3)


@functional
def adjust_brightness(inpt: Any, brightness_factor: float) -> Any:
    """Multiply the values of an image by a factor: 0 gives black, 1 the image.

    Args:
        inpt: an image or a video of one or three channels.
        brightness_factor: the factor, not negative.
    """


@kernel(adjust_brightness, *IMAGES)
def adjust_brightness_image(image: Tensor, brightness_factor: float) -> Tensor:
    _check("adjust_brightness", image, "brightness_factor", brightness_factor)
    scaled = image.mul(float(brightness_factor))
    return scaled.clamp_(0, max_value(image.dtype)).to(image.dtype)


@functional
def adjust_contrast(inpt: Any, contrast_factor: float) -> Any:
    """Multiply the distance to the mean gray by a factor: 0 gives gray, 1 the image.

    Args:
        inpt: an image or a video of one or three channels.
        contrast_factor: the factor, not negative.
    """


@kernel(adjust_contrast, *IMAGES)
def adjust_contrast_image(image: Tensor, contrast_factor: float) -> Tensor:
    channels = _check("adjust_contrast", image, "contrast_factor", contrast_factor)
    gray = _whole_gray(image) if channels == 3 else image
    gray = gray if gray.dtype.is_floating_point else gray.to(rl.float32)
    return _blend(image, gray.mean(dim=(-3, -2, -1), keepdim=True), contrast_factor)


def _whole_gray(image: Tensor) -> Tensor:
    """The luma as a gray image would hold it: whole numbers for integers."""
    gray = _gray(image)
    return gray if image.dtype.is_floating_point else gray.floor_()


@functional
def adjust_saturation(inpt: Any, saturation_factor: float) -> Any:
    """Multiply the distance of colors to their gray by a factor: 0 gives gray, 1 the image.

    Args:
        inpt: an image or a video of one or three channels.
        saturation_factor: the factor, not negative.
    """


@kernel(adjust_saturation, *IMAGES)
def adjust_saturation_image(image: Tensor, saturation_factor: float) -> Tensor:
    if _check("adjust_saturation", image, "saturation_factor", saturation_factor) == 1:
        return image
    return _blend(image, _whole_gray(image), saturation_factor)


@functional
def adjust_hue(inpt: Any, hue_factor: float) -> Any:
    """Turn the colors of an image around the wheel of hues.

    Args:
        inpt: an image or a video of one or three channels.
        hue_factor: the part of a turn, from -0.5 to 0.5.

    Raises:
        ValueError: if the part is greater.
    """


def check_hue(hue_factor: float) -> None:
    """Refuse more than half a turn."""
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"adjust_hue: hue_factor is {hue_factor}. It must be in [-0.5, 0.5].")


@kernel(adjust_hue, *IMAGES)
def adjust_hue_image(image: Tensor, hue_factor: float) -> Tensor:
    check_hue(hue_factor)
    if _check("adjust_hue", image, "hue_factor", 0) == 1 or image.numel() == 0:
        return image
    sixths, saturation, value = _hsv(to_dtype_image(image, rl.float32, scale=True))
    # Two turns on, so that the fraction is what is left of a positive number.
    hue = sixths.mul_(1.0 / 6.0).add_(2.0 + hue_factor).frac_()
    return to_dtype_image(_rgb(hue, saturation, value), image.dtype, scale=True)


def _hsv(image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hue in sixths of a turn, from -1 to 5, saturation and value of an RGB image."""
    red, green, blue = image.unbind(dim=-3)
    low, high = rl.aminmax(image, dim=-3)
    chroma = high - low
    saturation = chroma / rl.where(high == 0, 1.0, high)
    scale = rl.where(chroma == 0, 1.0, chroma)
    # The channel that is highest says in which third of the wheel the hue is.
    of_green = (blue - red) / scale + 2.0
    of_blue = (red - green) / scale + 4.0
    sixths = rl.where(high == green, of_green, of_blue)
    return rl.where(high == red, (green - blue) / scale, sixths), saturation, high


def _rgb(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    """The RGB image of hue, saturation and value, all in [0, 1].

    A channel is v (1 - s (1 - w)), where its weight w depends on the hue h in sixths of a turn:
    |h - 3| - 1 for red, 2 - |h - 2| for green, 2 - |h - 4| for blue, between 0 and 1.
    """
    sixths = hue.mul(6.0)
    depth = saturation * value
    missing = (  # 1 - w
        2.0 - (sixths - 3.0).abs_(),
        (sixths - 2.0).abs_().sub_(1.0),
        (sixths - 4.0).abs_().sub_(1.0),
    )
    return rl.stack([value - m.clamp_(0.0, 1.0).mul_(depth) for m in missing], dim=-3)


@functional
def adjust_gamma(inpt: Any, gamma: float, gain: float = 1) -> Any:
    """Raise the values of an image, taken in [0, 1], to a power: gain * value ** gamma.

    Args:
        inpt: an image or a video.
        gamma: the exponent, not negative; above 1 shadows become darker.
        gain: the factor.

    Raises:
        ValueError: if gamma is negative.
    """


def check_gamma(gamma: float) -> None:
    """Refuse negative exponents."""
    if gamma < 0:
        raise ValueError(f"adjust_gamma: gamma is {gamma}. It must not be negative.")


@kernel(adjust_gamma, *IMAGES)
def adjust_gamma_image(image: Tensor, gamma: float, gain: float = 1.0) -> Tensor:
    check_gamma(gamma)
    if image.dtype.is_floating_point:
        powers = image.pow(gamma)
    else:
        powers = to_dtype_image(image, rl.float32, scale=True).pow_(gamma)
    if gain != 1.0:
        powers = powers.mul(gain).clamp_(0.0, 1.0)
    return to_dtype_image(powers, image.dtype, scale=True)


@functional
def posterize(inpt: Any, bits: int) -> Any:
    """Keep the highest bits of the values of an image.

    Args:
        inpt: an image or a video.
        bits: how many, from 0 to 8.

    Raises:
        TypeError: if bits is another number.
    """


@kernel(posterize, *IMAGES)
def posterize_image(image: Tensor, bits: int) -> Tensor:
    if not isinstance(bits, int) or not 0 <= bits <= 8:
        raise TypeError(f"posterize: bits is {bits!r}. It must be an integer from 0 to 8.")
    if image.dtype.is_floating_point:
        levels = 1 << bits
        return image.mul(levels).floor_().clamp_(0, levels - 1).mul_(1.0 / levels)
    total = max_value(image.dtype).bit_length()
    if bits >= total:
        return image
    return _with_mask(operator.and_, image, ((1 << bits) - 1) << (total - bits))


def _with_mask(operation: Callable[[Tensor, int], Tensor], image: Tensor, mask: int) -> Tensor:
    """A bitwise operation of integers with a mask, on eight bytes at a time where they are in turn.

    The core computes integers of all lengths as 64 bits.
    """
    in_turn = image.is_contiguous() and image.numel() % 8 == 0 and image.storage_offset() % 8 == 0
    if image.dtype != rl.uint8 or not in_turn:
        return operation(image, mask)
    masks = int.from_bytes(bytes([mask] * 8), "little", signed=True)
    words = operation(image.reshape(-1).view(rl.int64), masks)
    return words.view(rl.uint8).view(image.shape)


@functional
def solarize(inpt: Any, threshold: float) -> Any:
    """Invert the values of an image from a threshold on.

    Args:
        inpt: an image or a video.
        threshold: the least value that is inverted.

    Raises:
        TypeError: if no value can be that high.
    """


@kernel(solarize, *IMAGES)
def solarize_image(image: Tensor, threshold: float) -> Tensor:
    if threshold > max_value(image.dtype):
        raise TypeError(
            f"solarize: threshold is {threshold}, but values of {image.dtype} are at most "
            f"{max_value(image.dtype)}. Choose a lower threshold."
        )
    return rl.where(image >= threshold, invert_image(image), image)


@functional
def invert(inpt: Any) -> Any:
    """Turn an image into its negative: white minus each value."""


@kernel(invert, *IMAGES)
def invert_image(image: Tensor) -> Tensor:
    white = max_value(image.dtype)
    return _with_mask(operator.xor, image, white) if image.dtype == rl.uint8 else white - image


@functional
def autocontrast(inpt: Any) -> Any:
    """Stretch each channel of an image so that its values reach from black to white."""


@kernel(autocontrast, *IMAGES)
def autocontrast_image(image: Tensor) -> Tensor:
    _check("autocontrast", image, "", 0)
    if image.numel() == 0:
        return image
    white = max_value(image.dtype)
    values = image if image.dtype.is_floating_point else image.to(rl.float32)
    low = values.amin(dim=(-2, -1), keepdim=True)
    high = values.amax(dim=(-2, -1), keepdim=True)
    flat = high == low
    scale = rl.where(flat, 1.0, (high - low) * (1.0 / white))
    stretched = (values - rl.where(flat, 0.0, low)).div_(scale)
    return stretched.clamp(0, white).to(image.dtype)


@functional
def equalize(inpt: Any) -> Any:
    """Make all levels of each channel of an image about equally frequent."""


@kernel(equalize, *IMAGES)
def equalize_image(image: Tensor) -> Tensor:
    if image.numel() == 0:
        return image
    levels = to_dtype_image(image, rl.uint8, scale=True)
    flat = levels.flatten(start_dim=-2).to(rl.int64)  # (..., C, H * W)
    counts = flat.new_zeros((*flat.shape[:-1], 256))
    counts.scatter_add_(-1, flat, rl.ones_like(flat))
    below = counts.cumsum(dim=-1)
    # The pixels of the highest level that occurs make no step.
    highest = flat.amax(dim=-1, keepdim=True)
    step = (flat.shape[-1] - counts.gather(-1, highest)) // 255
    table = (below[..., :-1] + step // 2) // step.clamp(min=1)
    table = rl.cat((rl.zeros_like(step), table.clamp_(0, 255)), dim=-1)
    spread = table.gather(-1, flat).to(rl.uint8).view_as(levels)
    return to_dtype_image(rl.where(step[..., None] == 0, levels, spread), image.dtype, scale=True)


@functional
def permute_channels(inpt: Any, permutation: Sequence[int]) -> Any:
    """Put the channels of an image into another order.

    Args:
        inpt: an image or a video.
        permutation: the channels as they shall stand.

    Raises:
        ValueError: if they are not as many as the image has.
    """


@kernel(permute_channels, *IMAGES)
def permute_channels_image(image: Tensor, permutation: Sequence[int]) -> Tensor:
    if len(permutation) != image.shape[-3]:
        raise ValueError(
            f"permute_channels: permutation has {len(permutation)} entries and the image "
            f"{image.shape[-3]} channels. Name each channel once."
        )
    return image.index_select(-3, rl.as_tensor(permutation, device=image.device))


adjust_brightness_video = adjust_brightness_image
adjust_contrast_video = adjust_contrast_image
adjust_saturation_video = adjust_saturation_image
adjust_hue_video = adjust_hue_image
adjust_gamma_video = adjust_gamma_image
posterize_video = posterize_image
solarize_video = solarize_image
invert_video = invert_image
autocontrast_video = autocontrast_image
equalize_video = equalize_image
permute_channels_video = permute_channels_image
