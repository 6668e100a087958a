"""Transforms of colors and sharpness; functional says what each does to an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight.vision.transforms import _arguments, _draws
from rushlight.vision.transforms import _color as _v1
from rushlight.vision.transforms._functional import color, filters
from rushlight.vision.transforms.v2._samples import query_chw
from rushlight.vision.transforms.v2._transform import RandomApplyTransform, Transform

Bounds = float | Sequence[float] | None


class Grayscale(Transform):
    """Take the colors out of images.

    Args:
        num_output_channels: 1, or 3 for equal red, green and blue.
    """

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            color.rgb_to_grayscale, inpt, num_output_channels=self.num_output_channels
        )


class RandomGrayscale(RandomApplyTransform):
    """Take the colors out of images, which keep their number of channels.

    Args:
        p: the probability of doing it.
    """

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p=p)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"num_input_channels": query_chw(flat_inputs)[0]}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            color.rgb_to_grayscale, inpt, num_output_channels=params["num_input_channels"]
        )


class RGB(Transform):
    """Give gray images three equal channels; those that have three stay as they are."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(color.grayscale_to_rgb, inpt)


_ADJUSTMENTS = (
    color.adjust_brightness,
    color.adjust_contrast,
    color.adjust_saturation,
    color.adjust_hue,
)
_FACTORS = ("brightness_factor", "contrast_factor", "saturation_factor", "hue_factor")


class ColorJitter(Transform):
    """Brightness, contrast, saturation and hue, each by a random factor, in a random order.

    Args:
        brightness: the bounds of its factor, or how far it may be from 1.
        contrast: likewise.
        saturation: likewise.
        hue: the bounds of the part of a turn, in [-0.5, 0.5], or how far it may be from 0.

    Raises:
        TypeError: if one is neither a number nor a pair.
        ValueError: if bounds decrease or lie outside of what there is.
    """

    def __init__(
        self,
        brightness: Bounds = None,
        contrast: Bounds = None,
        saturation: Bounds = None,
        hue: Bounds = None,
    ) -> None:
        super().__init__()
        self.brightness = _arguments.jitter_bounds(brightness, "brightness")
        self.contrast = _arguments.jitter_bounds(contrast, "contrast")
        self.saturation = _arguments.jitter_bounds(saturation, "saturation")
        self.hue = _arguments.jitter_bounds(hue, "hue", center=0, bound=(-0.5, 0.5))

    get_params = staticmethod(_v1.ColorJitter.get_params)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        order, factors = _draws.jitter(self.brightness, self.contrast, self.saturation, self.hue)
        return {"fn_idx": order, **dict(zip(_FACTORS, factors, strict=True))}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        for index in params["fn_idx"].tolist():
            factor = params[_FACTORS[index]]
            if factor is not None:
                inpt = self._call_kernel(_ADJUSTMENTS[index], inpt, factor)
        return inpt


class RandomChannelPermutation(Transform):
    """Put the channels of images into a random order."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"permutation": rl.randperm(query_chw(flat_inputs)[0])}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(color.permute_channels, inpt, params["permutation"])


class RandomPhotometricDistort(Transform):
    """Distort the colors of images as photographs do (Howard, 2013; Liu et al., SSD, 2015).

    Args:
        brightness: the bounds of its factor.
        contrast: those of its factor; it is adjusted before or after the others.
        saturation: those of its factor.
        hue: those of the part of a turn.
        p: the probability of each of these, and of a permutation of the channels.
    """

    def __init__(
        self,
        brightness: tuple[float, float] = (0.875, 1.125),
        contrast: tuple[float, float] = (0.5, 1.5),
        saturation: tuple[float, float] = (0.5, 1.5),
        hue: tuple[float, float] = (-0.05, 0.05),
        p: float = 0.5,
    ) -> None:
        super().__init__()
        self.brightness = brightness
        self.contrast = contrast
        self.hue = hue
        self.saturation = saturation
        self.p = p

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        channels = query_chw(flat_inputs)[0]
        bounds = (self.brightness, self.contrast, self.saturation, self.hue)
        params: dict[str, Any] = {
            name: _draws.uniform(*each) if _draws.chance(self.p) else None
            for name, each in zip(_FACTORS, bounds, strict=True)
        }
        params["contrast_before"] = _draws.chance(0.5)
        permuted = _draws.chance(self.p)
        params["channel_permutation"] = rl.randperm(channels) if permuted else None
        return params

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        order = (0, 1, 2, 3) if params["contrast_before"] else (0, 2, 3, 1)
        for index in order:
            factor = params[_FACTORS[index]]
            if factor is not None:
                inpt = self._call_kernel(_ADJUSTMENTS[index], inpt, factor)
        if params["channel_permutation"] is not None:
            inpt = self._call_kernel(color.permute_channels, inpt, params["channel_permutation"])
        return inpt


class RandomEqualize(RandomApplyTransform):
    """Make all levels of each channel of images about equally frequent.

    Args:
        p: the probability of doing it.
    """

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(color.equalize, inpt)


class RandomInvert(RandomApplyTransform):
    """Turn images into their negatives.

    Args:
        p: the probability of doing it.
    """

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(color.invert, inpt)


class RandomPosterize(RandomApplyTransform):
    """Keep the highest bits of images.

    Args:
        bits: how many, from 0 to 8.
        p: the probability of doing it.
    """

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(p=p)
        self.bits = bits

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(color.posterize, inpt, bits=self.bits)


class RandomSolarize(RandomApplyTransform):
    """Invert the values of images from a threshold on.

    Args:
        threshold: the least value that is inverted.
        p: the probability of doing it.
    """

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(p=p)
        self.threshold = threshold

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(color.solarize, inpt, threshold=self.threshold)


class RandomAutocontrast(RandomApplyTransform):
    """Stretch each channel of images from black to white.

    Args:
        p: the probability of doing it.
    """

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(color.autocontrast, inpt)


class RandomAdjustSharpness(RandomApplyTransform):
    """Sharpen or smooth images.

    Args:
        sharpness_factor: 0 smooths them, 1 leaves them, 2 doubles their edges.
        p: the probability of doing it.
    """

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(p=p)
        self.sharpness_factor = sharpness_factor

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            filters.adjust_sharpness, inpt, sharpness_factor=self.sharpness_factor
        )
