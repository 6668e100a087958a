"""How inputs were prepared when the published weights were trained: Weights.transforms.

Each preset takes a Pillow image or a tensor (..., C, H, W); describe() says what it does.
"""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.vision.transforms import InterpolationMode
from rushlight.vision.transforms import functional as F

__all__ = [
    "ImageClassification",
    "ObjectDetection",
    "OpticalFlow",
    "SemanticSegmentation",
    "VideoClassification",
]

_IMAGES = (
    "Accepts ``PIL.Image``, batched ``(B, C, H, W)`` and single ``(C, H, W)`` image "
    "``torch.Tensor`` objects. "
)


def _as_floats(img: Any) -> Tensor:
    """An image as a tensor of floats from 0 to 1."""
    tensor = img if isinstance(img, Tensor) else F.pil_to_tensor(img)
    return F.convert_image_dtype(tensor, rl.float32)


class _Prepared(nn.Module):
    """Attributes that tell how to resize, crop and normalize; None is left out."""

    def __init__(
        self,
        crop_size: Any,
        resize_size: Any,
        mean: tuple[float, ...],
        std: tuple[float, ...],
        interpolation: InterpolationMode | str,
    ) -> None:
        super().__init__()
        if crop_size is not None:
            self.crop_size = list(crop_size)
        self.resize_size: Any = None if resize_size is None else list(resize_size)
        self.mean = list(mean)
        self.std = list(std)
        self.interpolation = InterpolationMode(interpolation)

    def __repr__(self) -> str:
        names = ("crop_size", "resize_size", "mean", "std", "interpolation")
        lines = [f"\n    {name}={getattr(self, name)}" for name in names if hasattr(self, name)]
        return f"{type(self).__name__}({''.join(lines)}\n)"

    def _describe_steps(self) -> str:
        crop = ""
        if hasattr(self, "crop_size"):
            crop = f", followed by a central crop of ``crop_size={self.crop_size}``"
        return (
            f"resized to ``resize_size={self.resize_size}`` using "
            f"``interpolation={self.interpolation}``{crop}. Finally the values are first rescaled "
            f"to ``[0.0, 1.0]`` and then normalized using ``mean={self.mean}`` and "
            f"``std={self.std}``."
        )


class ImageClassification(_Prepared):
    """Resizes, crops the center and normalizes."""

    def __init__(
        self,
        *,
        crop_size: int,
        resize_size: int = 256,
        mean: tuple[float, ...] = (0.485, 0.456, 0.406),
        std: tuple[float, ...] = (0.229, 0.224, 0.225),
        interpolation: InterpolationMode | str = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__([crop_size], [resize_size], mean, std, interpolation)
        self.antialias = antialias

    def forward(self, img: Any) -> Tensor:
        img = F.resize(img, self.resize_size, self.interpolation, antialias=self.antialias)
        return F.normalize(_as_floats(F.center_crop(img, self.crop_size)), self.mean, self.std)

    def describe(self) -> str:
        """Returns what the preset does, in words."""
        return f"{_IMAGES}The images are {self._describe_steps()}"


class VideoClassification(_Prepared):
    """Resizes, crops the center and normalizes (..., T, C, H, W); returns (..., C, T, H, W)."""

    def __init__(
        self,
        *,
        crop_size: tuple[int, int],
        resize_size: tuple[int, ...],
        mean: tuple[float, ...] = (0.43216, 0.394666, 0.37645),
        std: tuple[float, ...] = (0.22803, 0.22145, 0.216989),
        interpolation: InterpolationMode | str = InterpolationMode.BILINEAR,
    ) -> None:
        super().__init__(crop_size, resize_size, mean, std, interpolation)

    def forward(self, vid: Tensor) -> Tensor:
        frames = vid.reshape(-1, *vid.shape[-3:])
        # The published weights were trained without antialiasing.
        frames = F.resize(frames, self.resize_size, self.interpolation, antialias=False)
        frames = _as_floats(F.center_crop(frames, self.crop_size))
        frames = F.normalize(frames, self.mean, self.std)
        return frames.reshape(*vid.shape[:-2], *self.crop_size).transpose(-4, -3)

    def describe(self) -> str:
        """Returns what the preset does, in words."""
        return (
            "Accepts batched ``(B, T, C, H, W)`` and single ``(T, C, H, W)`` video frame "
            f"``torch.Tensor`` objects. The frames are {self._describe_steps()} Finally the output "
            "dimensions are permuted to ``(..., C, T, H, W)`` tensors."
        )


class SemanticSegmentation(_Prepared):
    """Resizes and normalizes."""

    def __init__(
        self,
        *,
        resize_size: int | None,
        mean: tuple[float, ...] = (0.485, 0.456, 0.406),
        std: tuple[float, ...] = (0.229, 0.224, 0.225),
        interpolation: InterpolationMode | str = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        sizes = None if resize_size is None else [resize_size]
        super().__init__(None, sizes, mean, std, interpolation)
        self.antialias = antialias

    def forward(self, img: Any) -> Tensor:
        if self.resize_size is not None:
            img = F.resize(img, self.resize_size, self.interpolation, antialias=self.antialias)
        return F.normalize(_as_floats(img), self.mean, self.std)

    def describe(self) -> str:
        """Returns what the preset does, in words."""
        return f"{_IMAGES}The images are {self._describe_steps()}"


class ObjectDetection(nn.Module):
    """Brings the values to 0 to 1; the models resize and normalize by themselves."""

    def forward(self, img: Any) -> Tensor:
        return _as_floats(img)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def describe(self) -> str:
        """Returns what the preset does, in words."""
        return f"{_IMAGES}The images are rescaled to ``[0.0, 1.0]``."


class OpticalFlow(nn.Module):
    """Brings the values of two images to -1 to 1."""

    def forward(self, img1: Any, img2: Any) -> tuple[Tensor, Tensor]:
        first, second = (_as_floats(img) * 2 - 1 for img in (img1, img2))
        return first.contiguous(), second.contiguous()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def describe(self) -> str:
        """Returns what the preset does, in words."""
        return f"{_IMAGES}The images are rescaled to ``[-1.0, 1.0]``."
