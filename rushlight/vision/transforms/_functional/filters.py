"""Normalization, blurring, sharpening, noise and JPEG artifacts of images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as nnf
from rushlight.vision.transforms._functional.registry import IMAGES, functional, kernel
from rushlight.vision.transforms._functional.sizes import max_value


@functional
def normalize(inpt: Any, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> Any:
    """Subtract a mean and divide by a standard deviation, per channel.

    Args:
        inpt: an image or a video of floating-point numbers, (..., C, H, W).
        mean: the means of the channels.
        std: their standard deviations.
        inplace: whether to change the tensor itself.

    Raises:
        TypeError: if the image holds integers.
        ValueError: if it has fewer than three dimensions, or a standard deviation is zero.

    Example:
        >>> from rushlight.vision.transforms.functional import normalize
        >>> normalize(torch.full((1, 1, 1), 0.75), [0.5], [0.25])
        tensor([[[1.]]])
    """


@kernel(normalize, *IMAGES)
def normalize_image(
    image: Tensor, mean: Sequence[float], std: Sequence[float], inplace: bool = False
) -> Tensor:
    if not image.dtype.is_floating_point:
        raise TypeError(
            f"normalize: the image is {image.dtype}. It must be floating-point numbers. "
            "Convert it with to_dtype(image, torch.float32, scale=True)."
        )
    if image.ndim < 3:
        raise ValueError(
            f"normalize: the shape is {tuple(image.shape)}. An image has the shape (..., C, H, W)."
        )
    means = rl.as_tensor(mean, dtype=image.dtype, device=image.device)
    deviations = rl.as_tensor(std, dtype=image.dtype, device=image.device)
    listed = std if isinstance(std, (list, tuple)) else deviations.flatten().tolist()
    if 0 in listed:
        raise ValueError(f"normalize: std is {std}. Zero cannot be divided by. Leave it out.")
    means, deviations = (t.view(-1, 1, 1) if t.ndim == 1 else t for t in (means, deviations))
    centered = image.sub_(means) if inplace else image.sub(means)
    return centered.div_(deviations)


normalize_video = normalize_image


@functional
def gaussian_blur(
    inpt: Any, kernel_size: int | Sequence[int], sigma: float | Sequence[float] | None = None
) -> Any:
    """Blur an image with a Gaussian; beyond its border it is reflected.

    Args:
        inpt: an image or a video.
        kernel_size: the (width, height) of the window, odd, or one number for both.
        sigma: the (x, y) standard deviations in pixels, or one for both; by default
            0.15 * kernel_size + 0.35.

    Raises:
        TypeError: if sigma is no number or sequence.
        ValueError: if a size is even or a sigma is not positive.
    """


def _blur_arguments(kernel_size: Any, sigma: Any) -> tuple[list[int], list[float]]:
    if not isinstance(kernel_size, (int, list, tuple)):
        raise TypeError(
            f"gaussian_blur: kernel_size is {kernel_size!r}. It must be an integer or two."
        )
    sizes: list[int] = [kernel_size] * 2 if isinstance(kernel_size, int) else list(kernel_size)
    if len(sizes) != 2 or any(size < 1 or size % 2 == 0 for size in sizes):
        raise ValueError(
            f"gaussian_blur: kernel_size is {kernel_size!r}. It must be an odd positive integer, "
            "or two of them."
        )
    if sigma is None:
        return sizes, [size * 0.15 + 0.35 for size in sizes]
    if not isinstance(sigma, (int, float, list, tuple)):
        raise TypeError(f"gaussian_blur: sigma is {sigma!r}. It must be a number or two.")
    sigmas: list[float] = [sigma] if isinstance(sigma, (int, float)) else list(sigma)
    sigmas = sigmas * 2 if len(sigmas) == 1 else sigmas
    if len(sigmas) != 2 or min(sigmas) <= 0.0:
        raise ValueError(
            f"gaussian_blur: sigma is {sigma!r}. It must be a positive number, or two of them."
        )
    return sizes, sigmas


def _bell(size: int, sigma: float, like: Tensor) -> Tensor:
    """Gaussian weights of sum one at the distances from the middle."""
    reach = (size - 1) / (2.0 * math.sqrt(2.0))  # the exponent's factor 1/2 is in here
    x = rl.linspace(-reach, reach, steps=size, dtype=like.dtype, device=like.device)
    return rl.softmax(-((x / sigma) ** 2), dim=0)


@kernel(gaussian_blur, *IMAGES)
def gaussian_blur_image(
    image: Tensor, kernel_size: int | Sequence[int], sigma: float | Sequence[float] | None = None
) -> Tensor:
    sizes, sigmas = _blur_arguments(kernel_size, sigma)
    if image.numel() == 0:
        return image
    channels = image.shape[-3]
    values = image if image.dtype.is_floating_point else image.to(rl.float32)
    x, y = (_bell(size, s, values) for size, s in zip(sizes, sigmas, strict=True))
    edges = [sizes[0] // 2, sizes[0] // 2, sizes[1] // 2, sizes[1] // 2]
    padded = nnf.pad(values.reshape(-1, *image.shape[-3:]), edges, mode="reflect")
    # The window is a product, so that rows and columns are blurred one after the other.
    rows = nnf.conv2d(padded, x.expand(channels, 1, 1, -1), groups=channels)
    blurred = nnf.conv2d(rows, y[:, None].expand(channels, 1, -1, 1), groups=channels)
    blurred = blurred.reshape(image.shape)
    return blurred if image.dtype == blurred.dtype else blurred.round_().to(image.dtype)


gaussian_blur_video = gaussian_blur_image


@functional
def adjust_sharpness(inpt: Any, sharpness_factor: float) -> Any:
    """Multiply the distance of an image to its smoothed self: 0 gives that, 1 the image.

    Args:
        inpt: an image or a video of one or three channels.
        sharpness_factor: the factor, not negative; the outermost pixels stay.

    Raises:
        TypeError: if there are other channels.
        ValueError: if the factor is negative.
    """


@kernel(adjust_sharpness, *IMAGES)
def adjust_sharpness_image(image: Tensor, sharpness_factor: float) -> Tensor:
    if image.ndim < 3 or image.shape[-3] not in (1, 3):
        raise TypeError(
            f"adjust_sharpness: the shape is {tuple(image.shape)}. An image has one or three "
            "channels, (..., C, H, W)."
        )
    if sharpness_factor < 0:
        raise ValueError(
            f"adjust_sharpness: sharpness_factor is {sharpness_factor}. It must not be negative."
        )
    channels, height, width = image.shape[-3:]
    if image.numel() == 0 or min(height, width) <= 2:
        return image
    whole = not image.dtype.is_floating_point
    output = image.to(rl.float32 if whole else image.dtype, copy=True)
    output = output.reshape(-1, channels, height, width)
    window = output.new_full((channels, 1, 3, 3), 1.0 / 13.0)
    window[:, :, 1, 1] = 5.0 / 13.0
    smooth = nnf.conv2d(output, window, groups=channels)
    smooth = smooth.round_() if whole else smooth
    inner = output[..., 1:-1, 1:-1]
    inner.add_(smooth.sub_(inner), alpha=1.0 - sharpness_factor)
    return output.clamp_(0, max_value(image.dtype)).to(image.dtype).reshape(image.shape)


adjust_sharpness_video = adjust_sharpness_image


@functional
def gaussian_noise(inpt: Any, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> Any:
    """Add normally distributed noise to an image.

    Args:
        inpt: an image or a video of floating-point numbers in [0, 1] or of bytes.
        mean: the mean of the noise, where white is 1.
        sigma: its standard deviation.
        clip: whether the result is held between black and white.

    Raises:
        ValueError: if sigma is negative or the dtype another.
    """


@kernel(gaussian_noise, *IMAGES)
def gaussian_noise_image(
    image: Tensor, mean: float = 0.0, sigma: float = 0.1, clip: bool = True
) -> Tensor:
    if sigma < 0:
        raise ValueError(f"gaussian_noise: sigma is {sigma}. It must not be negative.")
    if not (image.dtype.is_floating_point or image.dtype == rl.uint8):
        raise ValueError(
            f"gaussian_noise: the image is {image.dtype}. It must be uint8 or floating point."
        )
    white = max_value(image.dtype)
    floating = image.dtype if image.dtype.is_floating_point else rl.float32
    noise = rl.randn_like(image, dtype=floating).mul_(sigma * white).add_(mean * white)
    noisy = image + (noise if floating == image.dtype else noise.to(rl.int16))
    return (noisy.clamp_(0, white) if clip else noisy).to(image.dtype)


gaussian_noise_video = gaussian_noise_image


@functional
def jpeg(inpt: Any, quality: int) -> Any:
    """Compress an image as JPEG and read it again, for the artifacts of it.

    Args:
        inpt: an image or a video of bytes.
        quality: from 1, small and bad, to 100.
    """


@kernel(jpeg, *IMAGES)
def jpeg_image(image: Tensor, quality: int) -> Tensor:
    from rushlight.vision.io import decode_jpeg, encode_jpeg

    frames = image.reshape(-1, *image.shape[-3:])
    if frames.shape[0] == 0:
        return image.clone()
    again = [decode_jpeg(encode_jpeg(frame, quality=quality)) for frame in frames]
    return rl.stack(again).reshape(image.shape)


jpeg_video = jpeg_image
