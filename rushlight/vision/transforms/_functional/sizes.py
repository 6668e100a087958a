"""How large a sample is: channels, height, width, frames."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.vision.transforms._functional.registry import (
    IMAGES,
    PillowImage,
    functional,
    kernel,
)
from rushlight.vision.tv_tensors import BoundingBoxes, KeyPoints, Mask, Video


def max_value(dtype: rl.dtype) -> int:
    """What white is: the largest integer of a dtype, 1 for floating-point numbers."""
    return 1 if dtype.is_floating_point or dtype == rl.bool else rl.iinfo(dtype).max


def _sides(image: Tensor) -> list[int]:
    if image.ndim < 2:
        raise TypeError(
            f"get_size: got a tensor of {image.ndim} dimensions. An image has height and width."
        )
    return list(image.shape[-3:])


@functional
def get_dimensions(inpt: Any) -> Any:
    """The [channels, height, width] of an image or a video."""


@kernel(get_dimensions, *IMAGES)
def get_dimensions_image(image: Tensor) -> list[int]:
    sides = _sides(image)
    return sides if len(sides) == 3 else [1, *sides]


@kernel(get_dimensions, PillowImage)
def get_dimensions_pil(image: Any) -> list[int]:
    return [len(image.getbands()), image.height, image.width]


get_dimensions_video = get_dimensions_image


@functional
def get_num_channels(inpt: Any) -> Any:
    """The number of channels of an image or a video."""


@kernel(get_num_channels, *IMAGES)
def get_num_channels_image(image: Tensor) -> int:
    return get_dimensions_image(image)[0]


@kernel(get_num_channels, PillowImage)
def get_num_channels_pil(image: Any) -> int:
    return len(image.getbands())


get_num_channels_video = get_num_channels_image
get_image_num_channels = get_num_channels


@functional
def get_size(inpt: Any) -> Any:
    """The [height, width] of an image, a video or a mask, or of the canvas of boxes and points."""


@kernel(get_size, *IMAGES, Mask)
def get_size_image(image: Tensor) -> list[int]:
    return _sides(image)[-2:]


@kernel(get_size, PillowImage)
def get_size_pil(image: Any) -> list[int]:
    return [image.height, image.width]


get_size_mask = get_size_video = get_size_image


@kernel(get_size, BoundingBoxes, KeyPoints)
def get_size_places(places: Tensor, canvas_size: tuple[int, int]) -> list[int]:
    return list(canvas_size)


def get_size_bounding_boxes(bounding_box: BoundingBoxes) -> list[int]:
    return list(bounding_box.canvas_size)


def get_size_keypoints(keypoints: KeyPoints) -> list[int]:
    return list(keypoints.canvas_size)


def get_image_size(img: Any) -> list[int]:
    """The [width, height] of an image."""
    return get_size(img)[::-1]


@functional
def get_num_frames(inpt: Any) -> Any:
    """The number of frames of a video."""


@kernel(get_num_frames, Tensor, Video)
def get_num_frames_video(video: Tensor) -> int:
    return video.shape[-4]


@functional
def uniform_temporal_subsample(inpt: Any, num_samples: int) -> Any:
    """Take frames of a video at equal distances.

    Args:
        inpt: the video, (..., T, C, H, W).
        num_samples: how many; the first and the last are among them.
    """


@kernel(uniform_temporal_subsample, Tensor, Video)
def uniform_temporal_subsample_video(video: Tensor, num_samples: int) -> Tensor:
    last = video.shape[-4] - 1
    indices = rl.linspace(0, last, num_samples, device=video.device).long()
    return rl.index_select(video, -4, indices)
