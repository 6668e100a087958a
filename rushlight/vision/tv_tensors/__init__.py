"""Tensors that say what they are of a sample: images, masks, videos, boxes, keypoints."""

from rushlight.vision.tv_tensors._base import TVTensor, set_return_type, wrap
from rushlight.vision.tv_tensors._pixels import Image, Mask, Video
from rushlight.vision.tv_tensors._places import (
    BoundingBoxes,
    BoundingBoxFormat,
    KeyPoints,
    is_rotated_bounding_format,
)

__all__ = [
    "BoundingBoxFormat",
    "BoundingBoxes",
    "Image",
    "KeyPoints",
    "Mask",
    "TVTensor",
    "Video",
    "is_rotated_bounding_format",
    "set_return_type",
    "wrap",
]
