"""Resizing of images, and crops that are resized."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as nnf
from rushlight.vision.transforms._functional.crops import crop, crop_image
from rushlight.vision.transforms._functional.interpolation import (
    InterpolationMode,
    parse_interpolation,
)
from rushlight.vision.transforms._functional.registry import (
    IMAGES,
    PillowImage,
    functional,
    kernel,
    on_masks,
)
from rushlight.vision.tv_tensors import Mask

Interpolation = InterpolationMode | str | int

_BILINEAR = InterpolationMode.BILINEAR
_NEAREST = (InterpolationMode.NEAREST, InterpolationMode.NEAREST_EXACT)


def resized_size(
    image_size: Sequence[int], size: int | Sequence[int] | None, max_size: int | None = None
) -> tuple[int, int]:
    """What (height, width) becomes.

    One number is the shorter side of the result, max_size the most that the longer one may be;
    without a size the longer one is max_size.
    """
    height, width = image_size
    short, long = sorted((height, width))
    if isinstance(size, int):
        size = (size,)
    if size is None:
        if not isinstance(max_size, int):
            raise ValueError(
                f"resize: size is None and max_size {max_size!r}. One of them must be given."
            )
        new_short, new_long = int(max_size * short / long), max_size
    elif len(size) == 1:
        new_short, new_long = size[0], int(size[0] * long / short)
        if max_size is not None and max_size <= size[0]:
            raise ValueError(
                f"resize: max_size is {max_size} and size {size[0]}. The longest side allowed must "
                "be greater than the shorter side asked for."
            )
        if max_size is not None and new_long > max_size:
            new_short, new_long = int(max_size * new_short / new_long), max_size
    elif len(size) == 2:
        if max_size is not None:
            raise ValueError(
                f"resize: size is {tuple(size)} and max_size {max_size}. A size of two sides "
                "leaves nothing to limit. Pass one number or None as the size."
            )
        return size[0], size[1]
    else:
        raise ValueError(
            f"resize: size has {len(size)} numbers. It is (height, width) or one number."
        )
    return (new_long, new_short) if height > width else (new_short, new_long)


@functional
def resize(
    inpt: Any,
    size: int | Sequence[int] | None,
    interpolation: Interpolation = _BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    """Resize a sample.

    Args:
        inpt: the sample.
        size: (height, width), or one number for the shorter side; None to go by max_size.
        interpolation: how pixels are found; masks take the nearest.
        max_size: the most that the longer side may be.
        antialias: whether pixels are averaged when a tensor becomes smaller; Pillow always does so.

    Raises:
        ValueError: if size and max_size contradict each other.
    """


@kernel(resize, *IMAGES)
def resize_image(
    image: Tensor,
    size: int | Sequence[int] | None,
    interpolation: Interpolation = _BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Tensor:
    mode = parse_interpolation(interpolation)
    shape = image.shape
    new_size = resized_size(shape[-2:], size, max_size)
    if new_size == tuple(shape[-2:]):
        return image
    if 0 in shape[-2:] and 0 not in new_size:
        raise RuntimeError(
            f"resize: the image has the shape {tuple(shape)}. There is no pixel to resize."
        )
    if image.numel() == 0:
        return image.new_empty((*shape[:-2], *new_size))
    if mode not in (*_NEAREST, _BILINEAR, InterpolationMode.BICUBIC):
        raise ValueError(
            f"resize: interpolation is {mode.value!r}. Tensors are resized by nearest, "
            "nearest-exact, bilinear and bicubic. Resize the Pillow image instead."
        )
    if image.ndim == 3:  # a stride of the batch that tells images of pixels from those of planes
        batch = image.movedim(0, -1)[None].movedim(-1, 1)
    else:
        batch = image.reshape(-1, *shape[-3:]) if image.ndim > 2 else image[None, None]
    return _interpolated(batch, new_size, mode, bool(antialias)).reshape(*shape[:-2], *new_size)


def _interpolated(
    batch: Tensor, size: tuple[int, int], mode: InterpolationMode, antialias: bool
) -> Tensor:
    """A batch (B, C, H, W) of another size, of the same dtype; integers are rounded."""
    dtype = batch.dtype
    nearest = mode in _NEAREST
    if not dtype.is_floating_point and dtype != rl.uint8:  # bytes are the op's work
        exact = nearest and dtype.itemsize > 2  # the classes of a mask
        batch = batch.contiguous().to(rl.float64 if exact else rl.float32)
    resized = nnf.interpolate(
        batch,
        size=size,
        mode=mode.value,
        align_corners=None if nearest else False,
        antialias=antialias and not nearest,
    )
    return resized if resized.dtype == dtype else resized.round_().to(dtype)


resize_video = resize_image


@kernel(resize, Mask)
def resize_mask(
    mask: Tensor,
    size: int | Sequence[int] | None,
    interpolation: Interpolation = InterpolationMode.NEAREST,
    max_size: int | None = None,
) -> Tensor:
    mode = parse_interpolation(interpolation)
    mode = mode if mode in _NEAREST else InterpolationMode.NEAREST
    return on_masks(resize_image, mask, size, interpolation=mode, max_size=max_size)


@functional
def resized_crop(
    inpt: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: int | Sequence[int],
    interpolation: Interpolation = _BILINEAR,
    antialias: bool | None = True,
) -> Any:
    """Cut a window out of a sample and resize it.

    Args:
        inpt: the sample.
        top: the first row of the window.
        left: its first column.
        height: its number of rows.
        width: its number of columns.
        size: (height, width) of the result, or one number for the shorter side.
        interpolation: how pixels are found; masks take the nearest.
        antialias: whether pixels are averaged when a tensor becomes smaller.
    """


@kernel(resized_crop, *IMAGES)
def resized_crop_image(
    image: Tensor,
    top: int,
    left: int,
    height: int,
    width: int,
    size: int | Sequence[int],
    interpolation: Interpolation = _BILINEAR,
    antialias: bool | None = True,
) -> Tensor:
    window = crop_image(image, top, left, height, width)
    return resize_image(window, size, interpolation=interpolation, antialias=antialias)


@kernel(resized_crop, PillowImage)
def resized_crop_pil(
    image: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: int | Sequence[int],
    interpolation: Interpolation = _BILINEAR,
    antialias: bool | None = True,
) -> Any:
    window = crop(image, top, left, height, width)
    return resize(window, size, interpolation=interpolation, antialias=antialias)


resized_crop_video = resized_crop_image


@kernel(resized_crop, Mask)
def resized_crop_mask(
    mask: Tensor, top: int, left: int, height: int, width: int, size: int | Sequence[int]
) -> Tensor:
    return resize_mask(crop_image(mask, top, left, height, width), size)
