"""Transforms of colors and sharpness; functional says what each does to an image."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from rushlight import Tensor
from rushlight.nn import Module
from rushlight.vision.transforms import _arguments, _draws
from rushlight.vision.transforms import functional as F
from rushlight.vision.transforms._random_apply import WithProbability

Range = Sequence[float] | None


class ColorJitter(Module):
    """Brightness, contrast, saturation and hue, each by a random factor, in a random order.

    Args:
        brightness: the bounds of its factor, or how far it may be from 1.
        contrast: likewise.
        saturation: likewise.
        hue: the bounds of the part of a turn, in [-0.5, 0.5], or how far it may be from 0.

    Raises:
        TypeError: if one is neither a number nor a pair.
        ValueError: if bounds decrease or lie outside of what there is.

    Example:
        >>> transforms.ColorJitter(brightness=0.5, hue=0.1)
        ColorJitter(brightness=(0.5, 1.5), contrast=None, saturation=None, hue=(-0.1, 0.1))
    """

    def __init__(
        self,
        brightness: float | tuple[float, float] = 0,
        contrast: float | tuple[float, float] = 0,
        saturation: float | tuple[float, float] = 0,
        hue: float | tuple[float, float] = 0,
    ) -> None:
        super().__init__()
        self.brightness = _arguments.jitter_bounds(brightness, "brightness")
        self.contrast = _arguments.jitter_bounds(contrast, "contrast")
        self.saturation = _arguments.jitter_bounds(saturation, "saturation")
        self.hue = _arguments.jitter_bounds(hue, "hue", center=0, bound=(-0.5, 0.5))

    @staticmethod
    def get_params(
        brightness: Range, contrast: Range, saturation: Range, hue: Range
    ) -> tuple[Tensor, float | None, float | None, float | None, float | None]:
        """The order of the adjustments and the factor of each, None where it has no bounds."""
        order, (b, c, s, h) = _draws.jitter(brightness, contrast, saturation, hue)
        return order, b, c, s, h

    def forward(self, img: Any) -> Any:
        order, *factors = self.get_params(self.brightness, self.contrast, self.saturation, self.hue)
        adjustments = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)
        for index in order.tolist():
            factor = factors[index]
            if factor is not None:
                img = adjustments[index](img, factor)
        return img

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(brightness={self.brightness}, contrast={self.contrast}, "
            f"saturation={self.saturation}, hue={self.hue})"
        )


class Grayscale(Module):
    """Take the colors out of an image.

    Args:
        num_output_channels: 1, or 3 for equal red, green and blue.
    """

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def forward(self, img: Any) -> Any:
        return F.rgb_to_grayscale(img, num_output_channels=self.num_output_channels)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_output_channels={self.num_output_channels})"


class RandomGrayscale(WithProbability):
    """Take the colors out of an image, which keeps its number of channels.

    Args:
        p: the probability of doing it.
    """

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)

    def _changed(self, img: Any) -> Any:
        return F.rgb_to_grayscale(img, num_output_channels=F.get_image_num_channels(img))


class GaussianBlur(Module):
    """Blur an image with a Gaussian of random width.

    Args:
        kernel_size: the (width, height) of the window, odd, or one number for both.
        sigma: the bounds of the standard deviation, or the deviation.

    Raises:
        ValueError: if a size is even, or a deviation not positive.
    """

    def __init__(
        self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] = (0.1, 2.0)
    ) -> None:
        super().__init__()
        self.kernel_size = _arguments.pair_of_sides(kernel_size, "kernel_size")
        bounds: Any = (sigma, sigma) if isinstance(sigma, numbers.Number) else sigma
        if not (isinstance(bounds, (tuple, list)) and len(bounds) == 2):
            raise ValueError(f"sigma: got {sigma!r}. It must be a number or a pair.")
        self.sigma = bounds
        _arguments.check_blur(self.kernel_size, self.sigma)

    @staticmethod
    def get_params(sigma_min: float, sigma_max: float) -> float:
        """A standard deviation between the bounds."""
        return _draws.uniform(sigma_min, sigma_max)

    def forward(self, img: Any) -> Any:
        sigma = self.get_params(*self.sigma)
        return F.gaussian_blur(img, self.kernel_size, [sigma, sigma])

    def __repr__(self) -> str:
        return f"{type(self).__name__}(kernel_size={self.kernel_size}, sigma={self.sigma})"


class RandomInvert(WithProbability):
    """Turn an image into its negative.

    Args:
        p: the probability of doing it.
    """

    def _changed(self, img: Any) -> Any:
        return F.invert(img)


class RandomPosterize(WithProbability):
    """Keep the highest bits of an image.

    Args:
        bits: how many, from 0 to 8.
        p: the probability of doing it.
    """

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(p)
        self.bits = bits

    def _changed(self, img: Any) -> Any:
        return F.posterize(img, self.bits)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(bits={self.bits},p={self.p})"


class RandomSolarize(WithProbability):
    """Invert the values of an image from a threshold on.

    Args:
        threshold: the least value that is inverted.
        p: the probability of doing it.
    """

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.threshold = threshold

    def _changed(self, img: Any) -> Any:
        return F.solarize(img, self.threshold)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(threshold={self.threshold},p={self.p})"


class RandomAdjustSharpness(WithProbability):
    """Sharpen or smooth an image.

    Args:
        sharpness_factor: 0 smooths it, 1 leaves it, 2 doubles its edges.
        p: the probability of doing it.
    """

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.sharpness_factor = sharpness_factor

    def _changed(self, img: Any) -> Any:
        return F.adjust_sharpness(img, self.sharpness_factor)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(sharpness_factor={self.sharpness_factor},p={self.p})"


class RandomAutocontrast(WithProbability):
    """Stretch each channel of an image from black to white.

    Args:
        p: the probability of doing it.
    """

    def _changed(self, img: Any) -> Any:
        return F.autocontrast(img)


class RandomEqualize(WithProbability):
    """Make all levels of each channel of an image about equally frequent.

    Args:
        p: the probability of doing it.
    """

    def _changed(self, img: Any) -> Any:
        return F.equalize(img)
