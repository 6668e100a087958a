"""What boxes and points are, apart from images: formats, bounds, which of them are sound.

A rotated box in corners lists them counter-clockwise on the wheel of angles: the left upper one of
the box before its rotation, then right upper, right lower, left lower. Angles are degrees.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.vision.transforms._functional.box_bounds import clamp_rotated
from rushlight.vision.transforms._functional.registry import is_pure_tensor
from rushlight.vision.tv_tensors import (
    BoundingBoxes,
    BoundingBoxFormat,
    KeyPoints,
    is_rotated_bounding_format,
    wrap,
)
from rushlight.vision.tv_tensors._places import parse_format

Format = BoundingBoxFormat | str

_F = BoundingBoxFormat


def _halved(lengths: Tensor) -> Tensor:
    return lengths / 2 if lengths.is_floating_point() else lengths // 2


def _join(*parts: Tensor) -> Tensor:
    return rl.cat(parts, dim=-1)


def _xywh_to_xyxy(boxes: Tensor) -> Tensor:
    start, size = boxes[..., :2], boxes[..., 2:]
    return _join(start, start + size)


def _xyxy_to_xywh(boxes: Tensor) -> Tensor:
    start, end = boxes[..., :2], boxes[..., 2:]
    return _join(start, end - start)


def _xywh_to_cxcywh(boxes: Tensor) -> Tensor:
    start, size = boxes[..., :2], boxes[..., 2:]
    return _join(start + _halved(size), size)


def _xyxy_to_cxcywh(boxes: Tensor) -> Tensor:
    start, end = boxes[..., :2], boxes[..., 2:]
    return _join(_halved(start + end), end - start)


def _cxcywh_to_xyxy(boxes: Tensor) -> Tensor:
    # Half pixels matter until the ends are there, so integers are computed as floats.
    exact = boxes if boxes.is_floating_point() else boxes.float()
    start = exact[..., :2] - exact[..., 2:] / 2
    return _join(start, start + exact[..., 2:]).to(boxes.dtype)


def _cxcywh_to_xywh(boxes: Tensor) -> Tensor:
    return _xyxy_to_xywh(_cxcywh_to_xyxy(boxes))


def _sides(boxes: Tensor) -> tuple[Tensor, Tensor]:
    """The vectors along the width and the height of boxes with an angle, (..., 1, 2) each."""
    angle = boxes[..., 4:] * (math.pi / 180.0)
    cos, sin = angle.cos(), angle.sin()
    width, height = boxes[..., 2:3], boxes[..., 3:4]
    return _join(width * cos, -width * sin), _join(height * sin, height * cos)


def _shifted(boxes: Tensor, part: float) -> Tensor:
    along, across = _sides(boxes)
    return _join(boxes[..., :2] + (along + across) * part, boxes[..., 2:])


def _xywhr_to_corners(boxes: Tensor) -> Tensor:
    along, across = _sides(boxes)
    start = boxes[..., :2]
    return _join(start, start + along, start + along + across, start + across)


def _corners_to_xywhr(boxes: Tensor) -> Tensor:
    exact = boxes if boxes.dtype in (rl.float32, rl.float64) else boxes.float()
    along = exact[..., 2:4] - exact[..., :2]
    across = exact[..., 4:6] - exact[..., 2:4]
    angle = rl.atan2(-along[..., 1:], along[..., :1]) / math.pi * 180.0
    lengths = [side.pow(2).sum(dim=-1, keepdim=True).sqrt() for side in (along, across)]
    return _join(exact[..., :2], *lengths, angle).to(boxes.dtype)


# By way of XYXY or XYWHR where there is no direct entry.
_CONVERSIONS: dict[tuple[BoundingBoxFormat, BoundingBoxFormat], Callable[[Tensor], Tensor]] = {
    (_F.XYWH, _F.XYXY): _xywh_to_xyxy,
    (_F.XYXY, _F.XYWH): _xyxy_to_xywh,
    (_F.XYWH, _F.CXCYWH): _xywh_to_cxcywh,
    (_F.XYXY, _F.CXCYWH): _xyxy_to_cxcywh,
    (_F.CXCYWH, _F.XYXY): _cxcywh_to_xyxy,
    (_F.CXCYWH, _F.XYWH): _cxcywh_to_xywh,
    (_F.CXCYWHR, _F.XYWHR): lambda boxes: _shifted(boxes, -0.5),
    (_F.XYWHR, _F.CXCYWHR): lambda boxes: _shifted(boxes, 0.5),
    (_F.XYWHR, _F.XYXYXYXY): _xywhr_to_corners,
    (_F.XYXYXYXY, _F.XYWHR): _corners_to_xywhr,
}


def convert(boxes: Tensor, old: BoundingBoxFormat, new: BoundingBoxFormat) -> Tensor:
    """Plain boxes of one format as those of another; the same tensor if there is no change."""
    if old is new:
        return boxes
    if is_rotated_bounding_format(old) != is_rotated_bounding_format(new):
        raise ValueError(
            f"convert_bounding_box_format: from {old.value} to {new.value}. "
            "Rotated boxes stay rotated, and others do not become so."
        )
    direct = _CONVERSIONS.get((old, new))
    if direct is not None:
        return direct(boxes)
    between = _CONVERSIONS[old, _F.XYWHR](boxes)
    return _CONVERSIONS[_F.XYWHR, new](between)


def convert_bounding_box_format(
    inpt: Tensor,
    old_format: Format | None = None,
    new_format: Format | None = None,
    inplace: bool = False,
) -> Any:
    """Convert boxes to another format.

    Args:
        inpt: BoundingBoxes, or a plain tensor.
        old_format: the format of a plain tensor.
        new_format: the format of the result.
        inplace: whether to change the tensor itself, where the new format has as many numbers.

    Raises:
        TypeError: if new_format is missing or the input is neither.
        ValueError: if old_format is missing or superfluous, or for a rotated and another format.

    Example:
        >>> boxes = tv_tensors.BoundingBoxes([1, 2, 3, 4], format="XYXY", canvas_size=(9, 9))
        >>> v2.functional.convert_bounding_box_format(boxes, new_format="XYWH").tolist()
        [[1, 2, 2, 2]]
    """
    if new_format is None:
        raise TypeError("convert_bounding_box_format: new_format is missing. Pass it.")
    new = parse_format(new_format)
    if is_pure_tensor(inpt):
        if old_format is None:
            raise ValueError(
                "convert_bounding_box_format: old_format is missing. "
                "A plain tensor does not know its format. Pass it."
            )
        return _into(inpt, convert(inpt, parse_format(old_format), new), inplace)
    if not isinstance(inpt, BoundingBoxes):
        raise TypeError(
            f"convert_bounding_box_format: got {type(inpt).__name__}. "
            "It takes BoundingBoxes or a plain tensor."
        )
    if old_format is not None:
        raise ValueError(
            "convert_bounding_box_format: old_format is given. BoundingBoxes know their format. "
            "Leave it out."
        )
    plain = inpt.as_subclass(Tensor)
    return wrap(_into(plain, convert(plain, inpt.format, new), inplace), like=inpt, format=new)


def _into(boxes: Tensor, result: Tensor, inplace: bool) -> Tensor:
    return boxes.copy_(result) if inplace and result.shape == boxes.shape else result


def clamp(
    boxes: Tensor, format: BoundingBoxFormat, canvas_size: tuple[int, int], mode: str | None
) -> Tensor:
    """Plain boxes held inside a canvas."""
    if mode is None:
        return boxes.clone()
    if is_rotated_bounding_format(format):
        corners = convert(boxes, format, _F.XYXYXYXY)
        held = clamp_rotated(corners.reshape(-1, 8), canvas_size, mode).reshape(corners.shape)
        return convert(held, _F.XYXYXYXY, format)
    height, width = canvas_size
    exact = boxes if boxes.is_floating_point() else boxes.float()
    corners = convert(exact, format, _F.XYXY)
    limits = rl.tensor([width, height] * 2, dtype=corners.dtype, device=corners.device)
    held = rl.minimum(corners.clamp(min=0), limits)
    return convert(held, _F.XYXY, format).to(boxes.dtype)


def clamp_bounding_boxes(
    inpt: Tensor,
    format: Format | None = None,
    canvas_size: tuple[int, int] | None = None,
    clamping_mode: str | None = "auto",
) -> Any:
    """Hold boxes inside the image.

    Args:
        inpt: BoundingBoxes, or a plain tensor.
        format: the format of a plain tensor.
        canvas_size: (height, width) of the image of a plain tensor.
        clamping_mode: "soft" or "hard", which matters to rotated boxes, None to leave all alone, or
            "auto" for what BoundingBoxes say.

    Raises:
        TypeError: if the input is neither.
        ValueError: if what a plain tensor needs is missing, or given for BoundingBoxes.
    """
    if clamping_mode not in (None, "soft", "hard", "auto"):
        raise ValueError(
            f"clamp_bounding_boxes: clamping_mode is {clamping_mode!r}. "
            "It must be 'soft', 'hard', 'auto' or None."
        )
    if is_pure_tensor(inpt):
        if format is None or canvas_size is None or clamping_mode == "auto":
            raise ValueError(
                "clamp_bounding_boxes: format, canvas_size or clamping_mode is missing. "
                "A plain tensor does not know them. Pass all three."
            )
        return clamp(inpt, parse_format(format), canvas_size, clamping_mode)
    if not isinstance(inpt, BoundingBoxes):
        raise TypeError(
            f"clamp_bounding_boxes: got {type(inpt).__name__}. "
            "It takes BoundingBoxes or a plain tensor."
        )
    if format is not None or canvas_size is not None:
        raise ValueError(
            "clamp_bounding_boxes: format or canvas_size is given. BoundingBoxes know them. "
            "Leave them out."
        )
    mode = inpt.clamping_mode if clamping_mode == "auto" else clamping_mode
    return wrap(clamp(inpt.as_subclass(Tensor), inpt.format, inpt.canvas_size, mode), like=inpt)


def _canvas_of(name: str, inpt: Any, cls: Any, canvas_size: Any) -> tuple[Tensor, Any]:
    """The plain tensor and the canvas of points or boxes, which only tv_tensors know."""
    if is_pure_tensor(inpt):
        if canvas_size is None:
            raise ValueError(
                f"{name}: canvas_size is missing. A plain tensor does not know it. Pass it."
            )
        return inpt, canvas_size
    if not isinstance(inpt, cls):
        # ValueError where the sanitizers say so, TypeError where clamping does, as in torchvision.
        error = TypeError if name.startswith("clamp") else ValueError
        raise error(
            f"{name}: got {type(inpt).__name__}. It takes {cls.__name__} or a plain tensor."
        )
    if canvas_size is not None:
        raise ValueError(f"{name}: canvas_size is given. {cls.__name__} know it. Leave it out.")
    return inpt.as_subclass(Tensor), inpt.canvas_size


def clamp_keypoints(inpt: Tensor, canvas_size: tuple[int, int] | None = None) -> Any:
    """Hold points inside the image, on its last pixels at most.

    Args:
        inpt: KeyPoints, or a plain tensor (..., 2).
        canvas_size: (height, width) of the image of a plain tensor.

    Raises:
        TypeError: if the input is neither.
        ValueError: if the canvas is missing, or given for KeyPoints.
    """
    points, (height, width) = _canvas_of("clamp_keypoints", inpt, KeyPoints, canvas_size)
    last = rl.tensor([width - 1, height - 1], dtype=points.dtype, device=points.device)
    held = rl.minimum(points.clamp(min=0), last)
    return held if is_pure_tensor(inpt) else wrap(held, like=inpt)


def sound_boxes(
    boxes: Tensor,
    format: BoundingBoxFormat,
    canvas_size: tuple[int, int],
    min_size: float,
    min_area: float,
) -> Tensor:
    """Which plain boxes lie inside the image and are large enough, (N,) bools."""
    height, width = canvas_size
    if is_rotated_bounding_format(format):
        corners = convert(boxes, format, _F.XYXYXYXY)
        along = corners[..., 2:4] - corners[..., :2]
        across = corners[..., 4:6] - corners[..., 2:4]
        widths, heights = along.pow(2).sum(-1).sqrt(), across.pow(2).sum(-1).sqrt()
    else:
        corners = convert(boxes, format, _F.XYXY)
        widths, heights = corners[..., 2] - corners[..., 0], corners[..., 3] - corners[..., 1]
    xs, ys = corners[..., 0::2], corners[..., 1::2]
    inside = ((xs >= 0) & (xs <= width) & (ys >= 0) & (ys <= height)).all(dim=-1)
    large = (widths >= min_size) & (heights >= min_size) & (widths * heights >= min_area)
    return inside & large


def sanitize_bounding_boxes(
    bounding_boxes: Tensor,
    format: Format | None = None,
    canvas_size: tuple[int, int] | None = None,
    min_size: float = 1.0,
    min_area: float = 1.0,
) -> tuple[Any, Tensor]:
    """Drop boxes that are too small or outside of the image.

    Args:
        bounding_boxes: BoundingBoxes, or a plain tensor.
        format: the format of a plain tensor.
        canvas_size: (height, width) of the image of a plain tensor.
        min_size: the least width and height.
        min_area: the least area.

    Returns:
        The boxes that are left and which of all they are, (N,) bools.

    Raises:
        ValueError: if what a plain tensor needs is missing, or given for BoundingBoxes.
    """
    name = "sanitize_bounding_boxes"
    boxes, canvas = _canvas_of(name, bounding_boxes, BoundingBoxes, canvas_size)
    if isinstance(bounding_boxes, BoundingBoxes) != (format is None):
        raise ValueError(
            f"{name}: format is {format!r}. It is passed for a plain tensor, and for that alone."
        )
    known = bounding_boxes.format if isinstance(bounding_boxes, BoundingBoxes) else format
    valid = sound_boxes(boxes, parse_format(known or ""), canvas, min_size, min_area)
    left = boxes[valid]
    return (left if is_pure_tensor(bounding_boxes) else wrap(left, like=bounding_boxes)), valid


def sound_points(points: Tensor, canvas_size: tuple[int, int]) -> Tensor:
    """Which entries of a plain tensor have all their points inside the image, (N,) bools."""
    height, width = canvas_size
    x, y = points[..., 0], points[..., 1]
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    return inside.flatten(start_dim=1).all(dim=1) if inside.ndim > 1 else inside


def sanitize_keypoints(
    key_points: Tensor, canvas_size: tuple[int, int] | None = None
) -> tuple[Any, Tensor]:
    """Drop points outside of the image; of groups, those that have such a point.

    Args:
        key_points: KeyPoints, or a plain tensor (N, ..., 2).
        canvas_size: (height, width) of the image of a plain tensor.

    Returns:
        The points that are left and which of all they are, (N,) bools.

    Raises:
        ValueError: if the canvas is missing, or given for KeyPoints.
    """
    points, canvas = _canvas_of("sanitize_keypoints", key_points, KeyPoints, canvas_size)
    valid = sound_points(points, canvas)
    left = points[valid]
    return (left if is_pure_tensor(key_points) else wrap(left, like=key_points)), valid
