"""Images of several sizes in one batch."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor

__all__ = ["ImageList"]


class ImageList:
    """A batch of images that were padded to one size, and their sizes before that.

    Args:
        tensors: (N, C, H, W).
        image_sizes: (height, width) of each image.
    """

    def __init__(self, tensors: Tensor, image_sizes: list[tuple[int, int]]) -> None:
        self.tensors = tensors
        self.image_sizes = image_sizes

    def to(self, device: Any) -> ImageList:
        """Returns the images on another device."""
        return ImageList(self.tensors.to(device), self.image_sizes)
