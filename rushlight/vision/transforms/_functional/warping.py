"""Rotations, affine and perspective maps and elastic displacements of images.

Each output pixel is looked up where it comes from; the map is a grid of such places in [-1, 1], as
grid_sample wants it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as nnf
from rushlight.vision.transforms._functional.crops import Fill, fill_values
from rushlight.vision.transforms._functional.interpolation import (
    InterpolationMode,
    parse_interpolation,
)
from rushlight.vision.transforms._functional.matrices import (
    AffineMap,
    expanded_size,
    perspective_coefficients,
)
from rushlight.vision.transforms._functional.registry import (
    IMAGES,
    functional,
    kernel,
    on_masks,
)
from rushlight.vision.transforms._functional.resizing import Interpolation
from rushlight.vision.tv_tensors import Mask

_BILINEAR, _NEAREST = InterpolationMode.BILINEAR, InterpolationMode.NEAREST


def _grid_dtype(image: Tensor) -> rl.dtype:
    return image.dtype if image.dtype.is_floating_point else rl.float32


def _centers(size: int, like: Tensor, start: float) -> Tensor:
    return rl.arange(size, dtype=_grid_dtype(like), device=like.device) + start


def _affine_grid(image: Tensor, matrix: list[float], width: int, height: int) -> Tensor:
    """Where the pixels of an output (height, width) come from; both middles are the origin."""
    a, b, x, c, d, y = matrix
    half_rows, half_columns = image.shape[-2] * 0.5, image.shape[-1] * 0.5
    xs = _centers(width, image, (1 - width) * 0.5)
    ys = _centers(height, image, (1 - height) * 0.5)[:, None]
    u = (xs * a + (ys * b + x)) / half_columns
    v = (xs * c + (ys * d + y)) / half_rows
    return rl.stack((u, v), dim=-1)  # (height, width, 2)


def _perspective_grid(image: Tensor, coefficients: Sequence[float]) -> Tensor:
    a, b, c, d, e, f, g, h = coefficients
    height, width = image.shape[-2:]
    xs = _centers(width, image, 0.5)
    ys = _centers(height, image, 0.5)[:, None]
    w = xs * g + (ys * h + 1.0)
    u = (xs * a + (ys * b + c)) / (w * (0.5 * width)) - 1.0
    v = (xs * d + (ys * e + f)) / (w * (0.5 * height)) - 1.0
    return rl.stack((u, v), dim=-1)


def identity_grid(size: Sequence[int], like: Tensor) -> Tensor:
    """Where each pixel is, (height, width, 2)."""
    height, width = size
    xs = _centers(width, like, (1 - width) * 0.5) / (width * 0.5)
    ys = _centers(height, like, (1 - height) * 0.5) / (height * 0.5)
    return rl.stack((xs.expand(height, width), ys[:, None].expand(height, width)), dim=-1)


def _check_fill(image: Tensor, fill: Any) -> None:
    if fill is not None and not isinstance(fill, (int, float, tuple, list)):
        raise ValueError(f"warp: fill is {fill!r}. It must be a number or one for each channel.")
    channels = image.shape[-3] if image.ndim > 2 else 1
    if isinstance(fill, (tuple, list)) and len(fill) not in (1, channels):
        raise ValueError(
            f"warp: fill has {len(fill)} values and the image {channels} channels. "
            "Give one value, or one for each channel."
        )


def _check_warp(image: Tensor, mode: InterpolationMode, fill: Any) -> None:
    _check_fill(image, fill)
    if mode not in (_NEAREST, _BILINEAR):
        raise ValueError(
            f"warp: interpolation is {mode.value!r}. Tensors are warped by nearest and bilinear. "
            "Choose one of these."
        )


def _sample(image: Tensor, grid: Tensor, mode: InterpolationMode, fill: Any) -> Tensor:
    shape = (*image.shape[:-2], *grid.shape[:2])
    if image.numel() == 0:
        return image.reshape(shape)
    batch = image.reshape(-1, *image.shape[-3:]).to(grid.dtype)
    channels = batch.shape[1]
    values = fill_values(fill)
    # Outside the image grid_sample finds zero, so only another fill needs to know where that is;
    # at the border of an image that is interpolated the fill is mixed in, zero too.
    needs_mask = fill is not None and (mode is not _NEAREST or any(values))
    if needs_mask:
        batch = rl.cat((batch, rl.ones_like(batch[:, :1])), dim=1)
    grid = grid.expand(batch.shape[0], *grid.shape)
    output = nnf.grid_sample(
        batch, grid, mode=mode.value, padding_mode="zeros", align_corners=False
    )
    if needs_mask:
        output, mask = output[:, :channels], output[:, channels:]
        color = rl.tensor(values, dtype=output.dtype, device=output.device).view(1, -1, 1, 1)
        if mode is _NEAREST:
            output = rl.where(mask < 0.5, color, output)
        else:
            output = (output - color).mul_(mask).add_(color)
    if image.dtype != output.dtype:
        output = output.round_().to(image.dtype)
    return output.reshape(shape)


@functional
def affine(
    inpt: Any,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: float | Sequence[float],
    interpolation: Interpolation = _NEAREST,
    fill: Fill = None,
    center: Sequence[float] | None = None,
) -> Any:
    """Rotate, shear, scale and move a sample; its size stays.

    Args:
        inpt: the sample.
        angle: degrees, clockwise.
        translate: (x, y) in pixels.
        scale: the factor, positive.
        shear: degrees along x, or (x, y).
        interpolation: nearest or bilinear, for Pillow images also bicubic; masks take the nearest.
        fill: the value outside the sample, one or one for each channel; by default zero.
        center: (x, y) of the point about which it is done; by default the middle.

    Raises:
        TypeError: if an argument is of another type.
        ValueError: if the scale is not positive or a sequence has another length.
    """


@kernel(affine, *IMAGES)
def affine_image(
    image: Tensor,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: float | Sequence[float],
    interpolation: Interpolation = _NEAREST,
    fill: Fill = None,
    center: Sequence[float] | None = None,
) -> Tensor:
    mapping = AffineMap(angle, translate, scale, shear, center)
    return _affine(image, mapping, interpolation, fill, expand=False)


def _affine(
    image: Tensor, mapping: AffineMap, interpolation: Interpolation, fill: Any, expand: bool
) -> Tensor:
    mode = parse_interpolation(interpolation)
    _check_warp(image, mode, fill)
    height, width = image.shape[-2:]
    matrix = mapping.about_middle(width, height)
    new_width, new_height = expanded_size(matrix, width, height) if expand else (width, height)
    return _sample(image, _affine_grid(image, matrix, new_width, new_height), mode, fill)


affine_video = affine_image


@kernel(affine, Mask)
def affine_mask(
    mask: Tensor,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: float | Sequence[float],
    fill: Fill = None,
    center: Sequence[float] | None = None,
) -> Tensor:
    return on_masks(affine_image, mask, angle, translate, scale, shear, fill=fill, center=center)


@functional
def rotate(
    inpt: Any,
    angle: float,
    interpolation: Interpolation = _NEAREST,
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Fill = None,
) -> Any:
    """Rotate a sample.

    Args:
        inpt: the sample.
        angle: degrees, counter-clockwise.
        interpolation: nearest or bilinear, for Pillow images also bicubic; masks take the nearest.
        expand: whether the result is as large as it must be to hold all of the sample.
        center: (x, y) of the point about which it turns; by default the middle.
        fill: the value outside the sample, one or one for each channel; by default zero.
    """


@kernel(rotate, *IMAGES)
def rotate_image(
    image: Tensor,
    angle: float,
    interpolation: Interpolation = _NEAREST,
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Fill = None,
) -> Tensor:
    mapping = AffineMap(-angle, [0.0, 0.0], 1.0, 0.0, center)
    if center is None:
        quarters, rest = divmod(angle % 360, 90)
        square = expand or image.shape[-1] == image.shape[-2]
        if rest == 0 and (square or quarters % 2 == 0):
            # Nothing to interpolate.
            return rl.rot90(image, k=int(quarters), dims=(-2, -1)) if quarters else image.clone()
    return _affine(image, mapping, interpolation, fill, expand)


rotate_video = rotate_image


@kernel(rotate, Mask)
def rotate_mask(
    mask: Tensor,
    angle: float,
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Fill = None,
) -> Tensor:
    return on_masks(rotate_image, mask, angle, expand=expand, center=center, fill=fill)


@functional
def perspective(
    inpt: Any,
    startpoints: Sequence[Sequence[int]] | None,
    endpoints: Sequence[Sequence[int]] | None,
    interpolation: Interpolation = _BILINEAR,
    fill: Fill = None,
    coefficients: Sequence[float] | None = None,
) -> Any:
    """Show a sample as seen from elsewhere: four of its points come to four others.

    Args:
        inpt: the sample.
        startpoints: four points (x, y) of the sample, usually its corners from the top left on,
            clockwise.
        endpoints: where they come to.
        interpolation: nearest or bilinear, for Pillow images also bicubic; masks take the nearest.
        fill: the value outside the sample, one or one for each channel; by default zero.
        coefficients: the eight numbers of the map, instead of the points.

    Raises:
        ValueError: unless either the points or the coefficients are given.
    """


@kernel(perspective, *IMAGES)
def perspective_image(
    image: Tensor,
    startpoints: Sequence[Sequence[int]] | None,
    endpoints: Sequence[Sequence[int]] | None,
    interpolation: Interpolation = _BILINEAR,
    fill: Fill = None,
    coefficients: Sequence[float] | None = None,
) -> Tensor:
    numbers = perspective_coefficients(startpoints, endpoints, coefficients)
    mode = parse_interpolation(interpolation)
    _check_warp(image, mode, fill)
    return _sample(image, _perspective_grid(image, numbers), mode, fill)


perspective_video = perspective_image


@kernel(perspective, Mask)
def perspective_mask(
    mask: Tensor,
    startpoints: Sequence[Sequence[int]] | None,
    endpoints: Sequence[Sequence[int]] | None,
    fill: Fill = None,
    coefficients: Sequence[float] | None = None,
) -> Tensor:
    return on_masks(
        perspective_image,
        mask,
        startpoints,
        endpoints,
        interpolation=_NEAREST,
        fill=fill,
        coefficients=coefficients,
    )


@functional
def elastic(
    inpt: Any,
    displacement: Tensor,
    interpolation: Interpolation = _BILINEAR,
    fill: Fill = None,
) -> Any:
    """Look each pixel of a sample up a little beside itself.

    Args:
        inpt: the sample.
        displacement: by how much, (1, H, W, 2), in units of half the width and half the height.
        interpolation: nearest, bilinear or bicubic; masks take the nearest.
        fill: the value outside the sample, one or one for each channel; by default zero.

    Raises:
        TypeError: if the displacement is no tensor.
        ValueError: if its shape does not fit.
    """


elastic_transform = elastic


def check_displacement(displacement: Any, size: Sequence[int]) -> None:
    """Refuse what is no displacement of images of this (height, width)."""
    if not isinstance(displacement, Tensor):
        raise TypeError(
            f"elastic: displacement is {type(displacement).__name__}. It must be a tensor."
        )
    if tuple(displacement.shape) != (1, *size, 2):
        raise ValueError(
            f"elastic: displacement has the shape {tuple(displacement.shape)}. "
            f"Here it must be {(1, *size, 2)}."
        )


@kernel(elastic, *IMAGES)
def elastic_image(
    image: Tensor,
    displacement: Tensor,
    interpolation: Interpolation = _BILINEAR,
    fill: Fill = None,
) -> Tensor:
    size = image.shape[-2:]
    check_displacement(displacement, size)
    mode = parse_interpolation(interpolation)
    _check_fill(image, fill)
    shift = displacement[0].to(dtype=_grid_dtype(image), device=image.device)
    return _sample(image, identity_grid(size, image) + shift, mode, fill)


elastic_video = elastic_image


@kernel(elastic, Mask)
def elastic_mask(mask: Tensor, displacement: Tensor, fill: Fill = None) -> Tensor:
    return on_masks(elastic_image, mask, displacement, interpolation=_NEAREST, fill=fill)
