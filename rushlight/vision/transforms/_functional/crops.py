"""Flips, crops and padding of images: what moves pixels without changing them."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as nnf
from rushlight.vision.transforms._functional.registry import (
    IMAGES,
    PillowImage,
    functional,
    kernel,
    on_masks,
)
from rushlight.vision.transforms._functional.sizes import get_size
from rushlight.vision.tv_tensors import Mask

Fill = int | float | Sequence[float] | None

PADDING_MODES = ("constant", "edge", "reflect", "symmetric")


@functional
def horizontal_flip(inpt: Any) -> Any:
    """Flip a sample from left to right."""


@functional
def vertical_flip(inpt: Any) -> Any:
    """Flip a sample upside down."""


hflip = horizontal_flip
vflip = vertical_flip


@kernel(horizontal_flip, *IMAGES, Mask)
def horizontal_flip_image(image: Tensor) -> Tensor:
    return image.flip(-1)


@kernel(vertical_flip, *IMAGES, Mask)
def vertical_flip_image(image: Tensor) -> Tensor:
    return image.flip(-2)


horizontal_flip_mask = horizontal_flip_video = horizontal_flip_image
vertical_flip_mask = vertical_flip_video = vertical_flip_image


@functional
def crop(inpt: Any, top: int, left: int, height: int, width: int) -> Any:
    """Cut a window out of a sample; what lies outside of it is zero.

    Args:
        inpt: the sample.
        top: the first row of the window.
        left: its first column.
        height: its number of rows.
        width: its number of columns.
    """


@kernel(crop, *IMAGES, Mask)
def crop_image(image: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    rows, columns = image.shape[-2:]
    bottom, right = top + height, left + width
    inside = image[..., max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
    if left >= 0 and top >= 0 and right <= columns and bottom <= rows:
        return inside
    before = [max(min(right, 0) - left, 0), max(min(bottom, 0) - top, 0)]
    after = [max(right - max(columns, left), 0), max(bottom - max(rows, top), 0)]
    return nnf.pad(inside, [before[0], after[0], before[1], after[1]])


crop_mask = crop_video = crop_image


@functional
def pad(
    inpt: Any,
    padding: int | Sequence[int],
    fill: Fill = None,
    padding_mode: str = "constant",
) -> Any:
    """Add a border to a sample.

    Args:
        inpt: the sample.
        padding: its width: one number, [left and right, top and bottom], or [left, top, right,
            bottom]; negative numbers cut.
        fill: the value of a constant border, one for all channels or one for each.
        padding_mode: "constant", "edge" (the last pixel again), "reflect" (mirrored at the last
            pixel) or "symmetric" (mirrored beyond it).
    """


def parse_padding(padding: Any) -> list[int]:
    """The [left, right, top, bottom] of a padding in any of its forms."""
    if isinstance(padding, int):
        return [padding] * 4
    if not isinstance(padding, (tuple, list)):
        raise TypeError(
            f"pad: padding is {padding!r}. It is an integer or a tuple or list of integers."
        )
    if len(padding) == 1:
        return [padding[0]] * 4
    if len(padding) == 2:
        return [padding[0], padding[0], padding[1], padding[1]]
    if len(padding) == 4:
        return [padding[0], padding[2], padding[1], padding[3]]
    raise ValueError(
        f"pad: padding has {len(padding)} numbers. It has 1, 2 (left and right, top and bottom) "
        "or 4 (left, top, right, bottom)."
    )


def check_padding_mode(mode: Any) -> None:
    """Refuse what is no padding mode."""
    if mode not in PADDING_MODES:
        raise ValueError(f"pad: padding_mode is {mode!r}. It must be one of {PADDING_MODES}.")


def fill_values(fill: Fill) -> list[float]:
    """The values of a fill in any of its forms: one, or one for each channel."""
    if fill is None:
        return [0]
    return [fill] if isinstance(fill, (int, float)) else list(fill)


@kernel(pad, *IMAGES)
def pad_image(
    image: Tensor,
    padding: int | Sequence[int],
    fill: Fill = None,
    padding_mode: str = "constant",
) -> Tensor:
    edges = parse_padding(padding)
    check_padding_mode(padding_mode)
    values = fill_values(fill)
    if len(values) > 1 and padding_mode != "constant":
        raise ValueError(
            f"pad: padding_mode is {padding_mode!r} and fill has {len(values)} values. "
            "A fill for each channel goes with 'constant'."
        )
    if padding_mode == "symmetric":
        return _pad_symmetric(image, edges)
    if padding_mode != "constant":
        shape = image.shape
        mode = "replicate" if padding_mode == "edge" else padding_mode
        batch = image.reshape(-1, *shape[-3:])  # (B, C, H, W): only these modes ask for it
        output = nnf.pad(batch, edges, mode=mode)
        return output.reshape(*shape[:-2], *output.shape[-2:])
    if len(values) == 1:
        return nnf.pad(image, edges, value=float(values[0]))
    return _pad_channels(image, edges, values)


def _pad_channels(image: Tensor, edges: list[int], values: Sequence[float]) -> Tensor:
    output = nnf.pad(image, edges)
    left, right, top, bottom = edges
    fill = rl.tensor(values, device=image.device).to(image.dtype).reshape(-1, 1, 1)
    if top > 0:
        output[..., :top, :] = fill
    if left > 0:
        output[..., :, :left] = fill
    if bottom > 0:
        output[..., -bottom:, :] = fill
    if right > 0:
        output[..., :, -right:] = fill
    return output


def _pad_symmetric(image: Tensor, edges: list[int]) -> Tensor:
    for dim, before, after in ((-1, *edges[:2]), (-2, *edges[2:])):
        size = image.shape[dim]
        if max(before, after) > size:
            raise ValueError(
                f"pad: a symmetric border of {max(before, after)} pixels at {size}. "
                "It cannot be wider than the image. Pad twice."
            )
        indices = [
            *range(before - 1, -1, -1),
            *range(max(-before, 0), size + min(after, 0)),
            *range(size - 1, size - 1 - after, -1),
        ]
        image = image.index_select(dim, rl.tensor(indices, device=image.device))
    return image


pad_video = pad_image


@kernel(pad, Mask)
def pad_mask(
    mask: Tensor,
    padding: int | Sequence[int],
    fill: Fill = None,
    padding_mode: str = "constant",
) -> Tensor:
    if isinstance(fill, (tuple, list)):
        raise ValueError("pad: fill is a sequence. The border of a mask has one value.")
    return on_masks(pad_image, mask, padding, fill=fill, padding_mode=padding_mode)


@functional
def center_crop(inpt: Any, output_size: int | Sequence[int]) -> Any:
    """Cut the middle out of a sample; a smaller sample gets a border of zeros.

    Args:
        inpt: the sample.
        output_size: (height, width), or one number for both.
    """


def parse_size(size: Any) -> list[int]:
    """The [height, width] of a size that may be one number."""
    if isinstance(size, numbers.Number):
        return [int(size)] * 2  # pyright: ignore[reportArgumentType]
    sides = list(size)
    if len(sides) not in (1, 2):
        raise ValueError(f"size: got {len(sides)} numbers. It is (height, width) or one number.")
    return sides * (3 - len(sides))


def center_of(size: Sequence[int], image_size: Sequence[int]) -> tuple[int, int]:
    """The top and left of a window in the middle of an image."""
    return tuple(round((whole - part) / 2.0) for part, whole in zip(size, image_size, strict=True))  # pyright: ignore[reportReturnType]


@kernel(center_crop, *IMAGES, Mask, PillowImage)
def center_crop_image(image: Any, output_size: int | Sequence[int]) -> Any:
    height, width = parse_size(output_size)
    rows, columns = get_size(image)
    missing = max(height - rows, 0), max(width - columns, 0)
    if any(missing):
        # The odd pixel goes to the right and to the bottom.
        edges = [missing[1] // 2, missing[0] // 2, (missing[1] + 1) // 2, (missing[0] + 1) // 2]
        image = pad(image, edges, fill=0)
    top, left = center_of((height, width), get_size(image))
    return crop(image, top, left, height, width)


center_crop_mask = center_crop_video = center_crop_image


@functional
def five_crop(inpt: Any, size: int | Sequence[int]) -> Any:
    """The four corners of an image and its middle, as a tuple.

    Args:
        inpt: an image or a video.
        size: (height, width) of the crops, or one number for both.

    Raises:
        ValueError: if the image is smaller.
    """


@kernel(five_crop, *IMAGES, PillowImage)
def five_crop_image(image: Any, size: int | Sequence[int]) -> tuple[Any, ...]:
    height, width = parse_size(size)
    rows, columns = get_size(image)
    if height > rows or width > columns:
        raise ValueError(
            f"five_crop: size is {(height, width)} and the image {(rows, columns)}. "
            "The crops must lie inside the image. Resize it first."
        )
    bottom, right = rows - height, columns - width
    corners = ((0, 0), (0, right), (bottom, 0), (bottom, right))
    crops = tuple(crop(image, top, left, height, width) for top, left in corners)
    return (*crops, center_crop_image(image, [height, width]))


@functional
def ten_crop(inpt: Any, size: int | Sequence[int], vertical_flip: bool = False) -> Any:
    """The five crops of an image and those of the flipped image, as a tuple.

    Args:
        inpt: an image or a video.
        size: (height, width) of the crops, or one number for both.
        vertical_flip: whether the second five are flipped upside down instead of from left to
            right.

    Raises:
        ValueError: if the image is smaller.
    """


@kernel(ten_crop, *IMAGES, PillowImage)
def ten_crop_image(
    image: Any, size: int | Sequence[int], vertical_flip: bool = False
) -> tuple[Any, ...]:
    flipped = vflip(image) if vertical_flip else hflip(image)
    return five_crop_image(image, size) + five_crop_image(flipped, size)


five_crop_video = five_crop_image
ten_crop_video = ten_crop_image


@functional
def erase(inpt: Any, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool = False) -> Any:
    """Write a value over a window of an image.

    Args:
        inpt: an image or a video.
        i: the first row of the window.
        j: its first column.
        h: its number of rows.
        w: its number of columns.
        v: the value, broadcast to (C, h, w).
        inplace: whether to change the tensor itself.
    """


@kernel(erase, *IMAGES)
def erase_image(
    image: Tensor, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool = False
) -> Tensor:
    output = image if inplace else image.clone()
    output[..., i : i + h, j : j + w] = v
    return output


erase_video = erase_image
