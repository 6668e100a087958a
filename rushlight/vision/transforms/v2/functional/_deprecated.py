"""Functions of transforms.functional that programs find in v2 as well, with a warning."""

from __future__ import annotations

import warnings
from typing import Any

from rushlight import Tensor
from rushlight.vision.transforms._functional import conversions, sizes


def to_tensor(inpt: Any) -> Tensor:
    """A Pillow image or an array as a tensor, bytes scaled to [0, 1]. Use to_image and to_dtype."""
    warnings.warn(
        "to_tensor is deprecated. Use to_image, then to_dtype(..., torch.float32, scale=True).",
        stacklevel=2,
    )
    return conversions.to_tensor(inpt)


def get_image_size(inpt: Any) -> list[int]:
    """The [width, height] of an image. Use get_size, which returns [height, width]."""
    warnings.warn(
        "get_image_size is deprecated. Use get_size, which returns [height, width].", stacklevel=2
    )
    return sizes.get_image_size(inpt)
