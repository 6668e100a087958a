"""Looking into samples, where torchvision has it."""

from rushlight.vision.transforms._functional.registry import is_pure_tensor
from rushlight.vision.transforms.v2._samples import (
    check_type,
    get_bounding_boxes,
    get_keypoints,
    has_all,
    has_any,
    query_chw,
    query_size,
)

__all__ = [
    "check_type",
    "get_bounding_boxes",
    "get_keypoints",
    "has_all",
    "has_any",
    "is_pure_tensor",
    "query_chw",
    "query_size",
]
