"""What geometric transforms do to boxes and points.

Boxes of every format go through their corners where a formula of the format itself would not be
shorter. Kernels return the new canvas size with the result where it changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import rushlight as rl
from rushlight import Tensor
from rushlight.vision.transforms._functional import crops, resizing, warping
from rushlight.vision.transforms._functional.box_bounds import rectangle_around
from rushlight.vision.transforms._functional.box_formats import clamp, convert
from rushlight.vision.transforms._functional.matrices import (
    AffineMap,
    expanded_size,
    inverse_perspective,
    perspective_coefficients,
)
from rushlight.vision.transforms._functional.registry import kernel
from rushlight.vision.tv_tensors import (
    BoundingBoxes,
    BoundingBoxFormat,
    KeyPoints,
    is_rotated_bounding_format,
)

Canvas = tuple[int, int]

_F = BoundingBoxFormat


def _flip_points(points: Tensor, axis: int, length: float) -> Tensor:
    flipped = points.clone()
    flipped[..., axis] = length - points[..., axis]
    return flipped


@kernel(crops.horizontal_flip, KeyPoints)
def horizontal_flip_keypoints(keypoints: Tensor, canvas_size: Canvas) -> Tensor:
    return _flip_points(keypoints, 0, canvas_size[1] - 1)


@kernel(crops.vertical_flip, KeyPoints)
def vertical_flip_keypoints(keypoints: Tensor, canvas_size: Canvas) -> Tensor:
    return _flip_points(keypoints, 1, canvas_size[0] - 1)


def _flip_boxes(boxes: Tensor, format: _F, axis: int, length: int) -> Tensor:
    flipped = boxes.clone()
    if format is _F.XYXY:
        flipped[..., axis] = length - boxes[..., axis + 2]
        flipped[..., axis + 2] = length - boxes[..., axis]
    elif format is _F.XYWH:
        flipped[..., axis] = length - (boxes[..., axis] + boxes[..., axis + 2])
    elif format is _F.XYXYXYXY:
        flipped[..., axis::2] = length - boxes[..., axis::2]
        return flipped[..., [2, 3, 0, 1, 6, 7, 4, 5]]  # the direction of turning stays
    else:
        if format is _F.XYWHR:
            # What was the second corner becomes the first.
            angle = boxes[..., 4] * (math.pi / 180.0)
            flipped[..., 0] += boxes[..., 2] * angle.cos()
            flipped[..., 1] -= boxes[..., 2] * angle.sin()
        flipped[..., axis] = length - flipped[..., axis]
        if is_rotated_bounding_format(format):
            flipped[..., 4] = (180 if axis else 0) - boxes[..., 4]
    return flipped


@kernel(crops.horizontal_flip, BoundingBoxes)
def horizontal_flip_bounding_boxes(
    bounding_boxes: Tensor, format: _F, canvas_size: Canvas
) -> Tensor:
    return _flip_boxes(bounding_boxes, format, 0, canvas_size[1])


@kernel(crops.vertical_flip, BoundingBoxes)
def vertical_flip_bounding_boxes(bounding_boxes: Tensor, format: _F, canvas_size: Canvas) -> Tensor:
    return _flip_boxes(bounding_boxes, format, 1, canvas_size[0])


def _moved(boxes: Tensor, format: _F, x: int, y: int) -> Tensor:
    """Boxes shifted: by (x, y) in each of their places, which are all numbers or the first two."""
    everywhere = format in (_F.XYXY, _F.XYXYXYXY)
    shift = [x, y] * (boxes.shape[-1] // 2) if everywhere else [x, y, 0, 0, 0][: boxes.shape[-1]]
    return boxes + rl.tensor(shift, dtype=boxes.dtype, device=boxes.device)


@kernel(crops.crop, KeyPoints)
def crop_keypoints(
    keypoints: Tensor, top: int, left: int, height: int, width: int
) -> tuple[Tensor, Canvas]:
    return _moved(keypoints, _F.XYXY, -left, -top), (height, width)


@kernel(crops.crop, BoundingBoxes)
def crop_bounding_boxes(
    bounding_boxes: Tensor,
    format: _F,
    top: int,
    left: int,
    height: int,
    width: int,
    clamping_mode: str | None = "soft",
) -> tuple[Tensor, Canvas]:
    boxes = _moved(bounding_boxes, format, -left, -top)
    if format is _F.XYXYXYXY:
        boxes = rectangle_around(boxes)
    canvas_size = (height, width)
    return clamp(boxes, format, canvas_size, clamping_mode), canvas_size


@kernel(crops.center_crop, KeyPoints)
def center_crop_keypoints(
    inpt: Tensor, canvas_size: Canvas, output_size: int | Sequence[int]
) -> tuple[Tensor, Canvas]:
    size = crops.parse_size(output_size)
    return crop_keypoints(inpt, *crops.center_of(size, canvas_size), *size)


@kernel(crops.center_crop, BoundingBoxes)
def center_crop_bounding_boxes(
    bounding_boxes: Tensor,
    format: _F,
    canvas_size: Canvas,
    output_size: int | Sequence[int],
    clamping_mode: str | None = "soft",
) -> tuple[Tensor, Canvas]:
    size = crops.parse_size(output_size)
    start = crops.center_of(size, canvas_size)
    return crop_bounding_boxes(bounding_boxes, format, *start, *size, clamping_mode=clamping_mode)


def _padded(
    canvas_size: Canvas, padding: int | Sequence[int], mode: str
) -> tuple[int, int, Canvas]:
    if mode != "constant":
        raise ValueError(
            f"pad: padding_mode is {mode!r}. Boxes and points are not repeated in a border. "
            "Use 'constant'."
        )
    left, right, top, bottom = crops.parse_padding(padding)
    height, width = canvas_size
    return left, top, (height + top + bottom, width + left + right)


@kernel(crops.pad, KeyPoints)
def pad_keypoints(
    keypoints: Tensor,
    canvas_size: Canvas,
    padding: int | Sequence[int],
    padding_mode: str = "constant",
) -> tuple[Tensor, Canvas]:
    left, top, canvas_size = _padded(canvas_size, padding, padding_mode)
    return _moved(keypoints, _F.XYXY, left, top), canvas_size


@kernel(crops.pad, BoundingBoxes)
def pad_bounding_boxes(
    bounding_boxes: Tensor,
    format: _F,
    canvas_size: Canvas,
    padding: int | Sequence[int],
    padding_mode: str = "constant",
    clamping_mode: str | None = "soft",
) -> tuple[Tensor, Canvas]:
    left, top, canvas_size = _padded(canvas_size, padding, padding_mode)
    boxes = _moved(bounding_boxes, format, left, top)
    return clamp(boxes, format, canvas_size, clamping_mode), canvas_size


def _scaled(places: Tensor, old: Canvas, new: Canvas) -> Tensor:
    ratios = [new[1] / old[1], new[0] / old[0]] * (places.shape[-1] // 2)
    return places.mul(rl.tensor(ratios, device=places.device))


@kernel(resizing.resize, KeyPoints)
def resize_keypoints(
    keypoints: Tensor,
    size: int | Sequence[int] | None,
    canvas_size: Canvas,
    max_size: int | None = None,
) -> tuple[Tensor, Canvas]:
    new = resizing.resized_size(canvas_size, size, max_size)
    if new == tuple(canvas_size):
        return keypoints, canvas_size
    return _scaled(keypoints, canvas_size, new).to(keypoints.dtype), new


@kernel(resizing.resize, BoundingBoxes)
def resize_bounding_boxes(
    bounding_boxes: Tensor,
    canvas_size: Canvas,
    size: int | Sequence[int] | None,
    max_size: int | None = None,
    format: _F = _F.XYXY,
    clamping_mode: str | None = "soft",
) -> tuple[Tensor, Canvas]:
    new = resizing.resized_size(canvas_size, size, max_size)
    if new == tuple(canvas_size):
        return bounding_boxes, canvas_size
    if not is_rotated_bounding_format(format):
        return _scaled(bounding_boxes, canvas_size, new).to(bounding_boxes.dtype), new
    corners = _scaled(convert(bounding_boxes, format, _F.XYXYXYXY), canvas_size, new)
    held = clamp(rectangle_around(corners), _F.XYXYXYXY, new, clamping_mode)
    return convert(held, _F.XYXYXYXY, format).to(bounding_boxes.dtype), new


@kernel(resizing.resized_crop, KeyPoints)
def resized_crop_keypoints(
    keypoints: Tensor, top: int, left: int, height: int, width: int, size: int | Sequence[int]
) -> tuple[Tensor, Canvas]:
    points, canvas_size = crop_keypoints(keypoints, top, left, height, width)
    return resize_keypoints(points, size, canvas_size)


@kernel(resizing.resized_crop, BoundingBoxes)
def resized_crop_bounding_boxes(
    bounding_boxes: Tensor,
    format: _F,
    top: int,
    left: int,
    height: int,
    width: int,
    size: int | Sequence[int],
    clamping_mode: str | None = "soft",
) -> tuple[Tensor, Canvas]:
    boxes, canvas_size = crop_bounding_boxes(
        bounding_boxes, format, top, left, height, width, clamping_mode
    )
    return resize_bounding_boxes(
        boxes, canvas_size, size, format=format, clamping_mode=clamping_mode
    )


def _map_boxes(
    boxes: Tensor,
    format: _F,
    mapping: Callable[[Tensor], Tensor],
    canvas_size: Canvas,
    clamping_mode: str | None,
) -> Tensor:
    """The boxes about what a map of points (M, 2) makes of boxes, held inside the canvas."""
    rotated = is_rotated_bounding_format(format)
    corners = _F.XYXYXYXY if rotated else _F.XYXY
    exact = convert(boxes if boxes.is_floating_point() else boxes.float(), format, corners)
    flat = exact.reshape(-1, exact.shape[-1])
    points = flat if rotated else flat[:, [0, 1, 2, 1, 2, 3, 0, 3]]
    mapped = mapping(points.reshape(-1, 2)).reshape(-1, 4, 2)
    if rotated:
        around = rectangle_around(mapped.flatten(1))
    else:
        around = rl.cat(rl.aminmax(mapped, dim=1), dim=1)
    held = clamp(around, corners, canvas_size, clamping_mode)
    return convert(held, corners, format).to(boxes.dtype).reshape(boxes.shape)


def _apply(mapping: AffineMap, points: Tensor, canvas_size: Canvas) -> Tensor:
    center = mapping.center or (canvas_size[1] * 0.5, canvas_size[0] * 0.5)
    matrix = rl.tensor(mapping.forward(center), dtype=points.dtype, device=points.device).view(2, 3)
    return points @ matrix[:, :2].T + matrix[:, 2]


def _expanded(mapping: AffineMap, canvas_size: Canvas, like: Tensor) -> tuple[Tensor, Canvas]:
    """How far the canvas begins from zero after a map, and how large it must be to hold all."""
    height, width = canvas_size
    frame = [[0.0, 0.0], [0.0, height], [width, height], [width, 0.0]]
    corners = rl.tensor(frame, dtype=like.dtype, device=like.device)
    start = _apply(mapping, corners, canvas_size).amin(dim=0)
    new_width, new_height = expanded_size(mapping.about_middle(width, height), width, height)
    return start, (new_height, new_width)


def _affine_boxes(
    boxes: Tensor,
    format: _F,
    canvas_size: Canvas,
    mapping: AffineMap,
    expand: bool,
    clamping_mode: str | None,
) -> tuple[Tensor, Canvas]:
    if boxes.numel() == 0:
        return boxes, canvas_size
    like = boxes if boxes.is_floating_point() else boxes.float()
    start, new = (0, canvas_size) if not expand else _expanded(mapping, canvas_size, like)

    def moved(points: Tensor) -> Tensor:
        return _apply(mapping, points, canvas_size) - start

    return _map_boxes(boxes, format, moved, new, clamping_mode), new


def _affine_points(
    points: Tensor, canvas_size: Canvas, mapping: AffineMap, expand: bool
) -> tuple[Tensor, Canvas]:
    if points.numel() == 0:
        return points, canvas_size
    exact = points if points.is_floating_point() else points.float()
    start, new = (0, canvas_size) if not expand else _expanded(mapping, canvas_size, exact)
    return (_apply(mapping, exact, canvas_size) - start).to(points.dtype), new


@kernel(warping.affine, KeyPoints)
def affine_keypoints(
    keypoints: Tensor,
    canvas_size: Canvas,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: float | Sequence[float],
    center: Sequence[float] | None = None,
) -> tuple[Tensor, Canvas]:
    mapping = AffineMap(angle, translate, scale, shear, center)
    return _affine_points(keypoints, canvas_size, mapping, expand=False)


@kernel(warping.affine, BoundingBoxes)
def affine_bounding_boxes(
    bounding_boxes: Tensor,
    format: _F,
    canvas_size: Canvas,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: float | Sequence[float],
    center: Sequence[float] | None = None,
    clamping_mode: str | None = "soft",
) -> Tensor:
    mapping = AffineMap(angle, translate, scale, shear, center)
    return _affine_boxes(bounding_boxes, format, canvas_size, mapping, False, clamping_mode)[0]


@kernel(warping.rotate, KeyPoints)
def rotate_keypoints(
    keypoints: Tensor,
    canvas_size: Canvas,
    angle: float,
    expand: bool = False,
    center: Sequence[float] | None = None,
) -> tuple[Tensor, Canvas]:
    mapping = AffineMap(-angle, [0.0, 0.0], 1.0, 0.0, center)
    return _affine_points(keypoints, canvas_size, mapping, expand)


@kernel(warping.rotate, BoundingBoxes)
def rotate_bounding_boxes(
    bounding_boxes: Tensor,
    format: _F,
    canvas_size: Canvas,
    angle: float,
    expand: bool = False,
    center: Sequence[float] | None = None,
    clamping_mode: str | None = "soft",
) -> tuple[Tensor, Canvas]:
    mapping = AffineMap(-angle, [0.0, 0.0], 1.0, 0.0, center)
    return _affine_boxes(bounding_boxes, format, canvas_size, mapping, expand, clamping_mode)


def _perspective_of(
    startpoints: Sequence[Sequence[int]] | None,
    endpoints: Sequence[Sequence[int]] | None,
    coefficients: Sequence[float] | None,
) -> Callable[[Tensor], Tensor]:
    numbers = perspective_coefficients(startpoints, endpoints, coefficients)
    rows = inverse_perspective(numbers)

    def apply(points: Tensor) -> Tensor:
        matrix = rl.tensor(rows, dtype=points.dtype, device=points.device)
        mapped = points @ matrix[:, :2].T + matrix[:, 2]
        return mapped[:, :2] / mapped[:, 2:]

    return apply


@kernel(warping.perspective, KeyPoints)
def perspective_keypoints(
    keypoints: Tensor,
    canvas_size: Canvas,
    startpoints: Sequence[Sequence[int]] | None,
    endpoints: Sequence[Sequence[int]] | None,
    coefficients: Sequence[float] | None = None,
) -> Tensor:
    mapping = _perspective_of(startpoints, endpoints, coefficients)
    exact = keypoints if keypoints.is_floating_point() else keypoints.float()
    return mapping(exact.reshape(-1, 2)).to(keypoints.dtype).reshape(keypoints.shape)


@kernel(warping.perspective, BoundingBoxes)
def perspective_bounding_boxes(
    bounding_boxes: Tensor,
    format: _F,
    canvas_size: Canvas,
    startpoints: Sequence[Sequence[int]] | None,
    endpoints: Sequence[Sequence[int]] | None,
    coefficients: Sequence[float] | None = None,
    clamping_mode: str | None = "soft",
) -> Tensor:
    mapping = _perspective_of(startpoints, endpoints, coefficients)
    if bounding_boxes.numel() == 0:
        return bounding_boxes
    return _map_boxes(bounding_boxes, format, mapping, canvas_size, clamping_mode)


def _displaced(points: Tensor, displacement: Tensor, canvas_size: Canvas) -> Tensor:
    """Where points (M, 2) go: against the displacement at their pixel, which is a good estimate."""
    height, width = canvas_size
    displacement = displacement.to(points)
    x = points[:, 0].long().clamp(0, width - 1)
    y = points[:, 1].long().clamp(0, height - 1)
    grid = warping.identity_grid(canvas_size, points)[y, x] - displacement[0, y, x]
    half = rl.tensor([width, height], dtype=points.dtype, device=points.device) * 0.5
    return (grid + 1) * half - 0.5


@kernel(warping.elastic, KeyPoints)
def elastic_keypoints(keypoints: Tensor, canvas_size: Canvas, displacement: Tensor) -> Tensor:
    warping.check_displacement(displacement, canvas_size)
    exact = keypoints if keypoints.is_floating_point() else keypoints.float()
    mapped = _displaced(exact.reshape(-1, 2), displacement, canvas_size)
    return mapped.to(keypoints.dtype).reshape(keypoints.shape)


@kernel(warping.elastic, BoundingBoxes)
def elastic_bounding_boxes(
    bounding_boxes: Tensor,
    format: _F,
    canvas_size: Canvas,
    displacement: Tensor,
    clamping_mode: str | None = "soft",
) -> Tensor:
    warping.check_displacement(displacement, canvas_size)
    if bounding_boxes.numel() == 0:
        return bounding_boxes

    def moved(points: Tensor) -> Tensor:
        return _displaced(points.ceil(), displacement, canvas_size)

    if not is_rotated_bounding_format(format):
        return _map_boxes(bounding_boxes, format, moved, canvas_size, clamping_mode)
    # The middle moves; size and angle stay.
    boxes = convert(bounding_boxes, format, _F.CXCYWHR)
    flat = boxes.reshape(-1, 5)
    flat = rl.cat((moved(flat[:, :2]), flat[:, 2:]), dim=1).reshape(boxes.shape)
    held = clamp(flat, _F.CXCYWHR, canvas_size, clamping_mode)
    return convert(held, _F.CXCYWHR, format)
