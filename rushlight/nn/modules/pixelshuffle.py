"""Layers that trade channels for pixels, and shuffle channels."""

from __future__ import annotations

from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module

__all__ = ["ChannelShuffle", "PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Module):
    """Lays groups of channels out as pixels (Shi et al. 2016, arXiv:1609.05158).

    Args:
        upscale_factor: r, by which height and width grow.

    Shape:
        (*, C * r * r, H, W) to (*, C, H * r, W * r).

    Example:
        >>> torch.nn.PixelShuffle(2)(torch.arange(4.0).reshape(4, 1, 1)).tolist()
        [[[0.0, 1.0], [2.0, 3.0]]]
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Gathers blocks of pixels as channels: the inverse of PixelShuffle.

    Args:
        downscale_factor: r, by which height and width shrink.

    Shape:
        (*, C, H * r, W * r) to (*, C * r * r, H, W).

    Example:
        >>> torch.nn.PixelUnshuffle(2)(torch.arange(4.0).reshape(1, 2, 2)).tolist()
        [[[0.0]], [[1.0]], [[2.0]], [[3.0]]]
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Deals channels out in turns: those of all groups alternate (Zhang et al. 2018).

    Args:
        groups: how many groups the channels are in.

    Shape:
        (N, C, *), unchanged.

    Example:
        >>> torch.nn.ChannelShuffle(2)(torch.arange(4.0).reshape(1, 4, 1)).flatten().tolist()
        [0.0, 2.0, 1.0, 3.0]
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
