"""Images to look at: grids, drawn boxes, masks and points, optical flow as colors."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, BinaryIO

import rushlight as rl
from rushlight import Tensor
from rushlight.vision._drawing import (
    draw_bounding_boxes,
    draw_keypoints,
    draw_segmentation_masks,
)
from rushlight.vision._pillow import pillow

__all__ = [
    "draw_bounding_boxes",
    "draw_keypoints",
    "draw_segmentation_masks",
    "flow_to_image",
    "make_grid",
    "save_image",
]


@rl.no_grad()
def make_grid(
    tensor: Tensor | list[Tensor],
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    value_range: tuple[float, float] | None = None,
    scale_each: bool = False,
    pad_value: float = 0.0,
) -> Tensor:
    """Images side by side in one.

    Args:
        tensor: the images, (B, C, H, W), or a list of equal ones; a single one is no grid. One
            channel becomes three.
        nrow: how many stand in a row.
        padding: how many pixels lie between them.
        normalize: whether values are scaled to [0, 1].
        value_range: (low, high), what becomes 0 and 1; by default the extremes of all images.
        scale_each: whether extremes are those of each image.
        pad_value: the value between the images.

    Returns:
        The image, (C, rows * (H + padding) + padding, columns * (W + padding) + padding).

    Raises:
        TypeError: if there are other things than tensors, or value_range is no tuple.

    Example:
        >>> from rushlight.vision.utils import make_grid
        >>> make_grid(torch.ones(3, 1, 4, 4), nrow=2).shape
        torch.Size([3, 14, 14])
    """
    images = _batch_of(tensor)
    if normalize:
        images = _scaled(images, value_range, scale_each)
    if images.shape[0] == 1:
        return images[0]
    count, channels, rows, columns = images.shape
    across = min(nrow, count)
    down = math.ceil(count / across)
    height, width = rows + padding, columns + padding
    grid = images.new_full((channels, height * down + padding, width * across + padding), pad_value)
    for index, image in enumerate(images):
        top = index // across * height + padding
        left = index % across * width + padding
        grid[:, top : top + rows, left : left + columns] = image
    return grid


def _batch_of(tensor: Any) -> Tensor:
    """The images as (B, C, H, W), gray ones with three channels."""
    images = tensor
    if isinstance(tensor, list) and all(isinstance(each, Tensor) for each in tensor):
        images = rl.stack(tensor)
    if not isinstance(images, Tensor):
        raise TypeError(
            f"make_grid: got {type(tensor).__name__}. Images are a tensor or a list of tensors."
        )
    images = images[None] if images.ndim == 2 else images  # (H, W) to (1, H, W)
    images = images[None] if images.ndim == 3 else images
    return rl.cat((images,) * 3, dim=1) if images.shape[1] == 1 else images


def _scaled(images: Tensor, value_range: Any, each: bool) -> Tensor:
    if value_range is not None and not isinstance(value_range, tuple):
        raise TypeError(
            f"make_grid: value_range is {value_range!r}. It must be a tuple (min, max)."
        )
    scaled = images.clone()
    for part in scaled if each else (scaled,):
        low, high = value_range or (float(part.min()), float(part.max()))
        part.clamp_(min=low, max=high).sub_(low).div_(max(high - low, 1e-5))
    return scaled


@rl.no_grad()
def save_image(
    tensor: Tensor | list[Tensor],
    fp: str | Path | BinaryIO,
    format: str | None = None,
    **kwargs: Any,
) -> None:
    """Save an image, or several as a grid, to a file.

    Args:
        tensor: the images, of values in [0, 1].
        fp: the file, or its name.
        format: the format of Pillow; by default the one that the name ends with.
        **kwargs: the other arguments of make_grid.
    """
    grid = make_grid(tensor, **kwargs)
    pixels = grid.mul(255).add_(0.5).clamp_(0, 255).permute(1, 2, 0).to("cpu", rl.uint8)
    pillow("save_image").fromarray(pixels.contiguous().numpy()).save(fp, format=format)


# Baker et al., "A Database and Evaluation Methodology for Optical Flow", 2007: how many steps lead
# from each color of the wheel to the next.
_WHEEL = (
    (15, (255, 0, 0)),
    (6, (255, 255, 0)),
    (4, (0, 255, 0)),
    (11, (0, 255, 255)),
    (13, (0, 0, 255)),
    (6, (255, 0, 255)),
)


def _color_wheel() -> Tensor:
    """The colors of directions, (55, 3), from 0 to 255."""
    colors = []
    following = [*_WHEEL[1:], _WHEEL[0]]
    for (steps, start), (_, end) in zip(_WHEEL, following, strict=True):
        for step in range(steps):
            rise = math.floor(255 * step / steps)
            colors.append([a + rise * ((b > a) - (b < a)) for a, b in zip(start, end, strict=True)])
    return rl.tensor(colors, dtype=rl.float32)


@rl.no_grad()
def flow_to_image(flow: Tensor) -> Tensor:
    """Optical flow as colors: the hue is the direction, the saturation the speed.

    Args:
        flow: the flow, (2, H, W) or (N, 2, H, W) float32.

    Returns:
        The images, (3, H, W) or (N, 3, H, W) uint8; the fastest pixel of all is saturated.

    Raises:
        ValueError: for another dtype or shape.
    """
    if flow.dtype != rl.float32:
        raise ValueError(f"flow_to_image: the flow is {flow.dtype}. It must be torch.float32.")
    batch = flow[None] if flow.ndim == 3 else flow
    if batch.ndim != 4 or batch.shape[1] != 2:
        raise ValueError(
            f"flow_to_image: the shape is {tuple(flow.shape)}. It is (2, H, W) or (N, 2, H, W)."
        )
    speed = batch.pow(2).sum(dim=1).sqrt()
    scale = speed.max() + rl.finfo(rl.float32).eps
    x, y = (batch / scale).unbind(dim=1)
    wheel = _color_wheel().to(flow.device)
    place = (rl.atan2(-y, -x) / math.pi + 1) / 2 * (len(wheel) - 1)
    below = place.floor().long()
    part = (place - below)[..., None]
    color = wheel[below] * (1 - part) + wheel[(below + 1) % len(wheel)] * part  # (N, H, W, 3)
    shade = 1 - (speed / scale)[..., None] * (1 - color / 255.0)
    picture = (255 * shade).floor().to(rl.uint8).permute(0, 3, 1, 2)
    return picture[0] if flow.ndim == 3 else picture
